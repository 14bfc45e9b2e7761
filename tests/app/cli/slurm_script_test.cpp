/// The verb slurm: an array job with the shares of a run, and what its script quotes.

#include <doctest/doctest.h>

#include <filesystem>

#include "app/run/session.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::slurm_script_test {
namespace {

namespace fs = std::filesystem;

TEST_CASE("slurm writes an array job with a task for each share") {
  const Bench bench;
  const std::vector<std::string> job = {"slurm", bench.file, "--out", bench.run, "--set", "train.steps=5"};
  CHECK(ask(job).out.find("1 task for 8 cells, about ") != std::string::npos);
  CHECK(ask(job).out.find("none of the 8 cells is done") !=
        std::string::npos);  // nothing is recorded that tells more
  std::vector<std::string> timed = job;
  timed.insert(timed.end(), {"--minutes-per-cell", "10", "--minutes-per-task", "30"});
  const Json answer = Json::parse([&] {
    auto words = timed;
    words.push_back("--json");
    return ask(words).out;
  }());
  CHECK(answer.at("tasks") == 3);  // 8 cells of 10 minutes in tasks of 30
  const std::string script = file_text(fs::path(bench.run) / "slurm.sh");
  CHECK(script.find("#SBATCH --array=0-2\n") != std::string::npos);
  CHECK(script.find("--requeue") != std::string::npos);
  CHECK(script.find("--set train.steps=5") != std::string::npos);
  CHECK(script.find("--share \"$SLURM_ARRAY_TASK_ID/3\"") != std::string::npos);
  for (const char* minutes : {"0", "-1", "nan", "inf", "1e7", "soon"}) {
    auto wrong = job;
    wrong.insert(wrong.end(), {"--minutes-per-cell", minutes});
    const Answer refused = ask(wrong);
    CHECK(refused.status == 2);
    CHECK(refused.err.find("--minutes-per-cell: ") != std::string::npos);
  }
  auto many = job;
  many.insert(many.end(), {"--minutes-per-cell", "30", "--set", "seeds.count=300"});
  CHECK(ask(many).err.find("1200 tasks; an array of Slurm holds 1000") != std::string::npos);
}

TEST_CASE("slurm leaves a folder the plan that it shows, until a task runs") {
  const Bench bench;
  REQUIRE(ask({"run", bench.file, "--out", bench.run, "--threads", "1"}).status == 0);
  const std::string shown = file_text(fs::path(bench.run) / "plan.json");
  REQUIRE(ask({"slurm", bench.file, "--out", bench.run, "--set", "train.steps=5"}).status == 0);
  CHECK(file_text(fs::path(bench.run) / "plan.json") == shown);
  const auto plans = fs::directory_iterator(fs::path(bench.run) / "plans");
  CHECK(std::distance(begin(plans), end(plans)) == 2);
}

TEST_CASE("slurm quotes what its script can hold and refuses a folder that it cannot") {
  const Bench bench;
  for (const char* name : {"new\nline", "re\rturn", "escape\x1b", "back\\slash"}) {
    const fs::path folder = bench.folder.path() / name;
    const Answer refused = ask({"slurm", bench.file, "--out", folder.string()});
    CHECK(refused.status == 2);
    CHECK(refused.err.find("--out: got the folder \"") != std::string::npos);
    CHECK_FALSE(fs::exists(folder));
  }
  // A file's name stands in the command alone, where sh reads a quoted line break.
  const fs::path file = bench.folder.path() / "a\n#SBATCH --wrap=x\n'$(touch x)'.json";
  fs::copy_file(bench.file, file);
  const fs::path folder = bench.folder.path() / "it's 100 % \"quoted\"";
  REQUIRE(ask({"slurm", file.string(), "--out", folder.string()}).status == 0);
  const std::string script = file_text(folder / "slurm.sh");
  CHECK(script.find("/it's 100 %% \\\"quoted\\\"/slurm-%A_%a.log\"\n") != std::string::npos);
  CHECK(script.find(shell_word(file.string())) != std::string::npos);
  // Slurm reads its options up to the first command.
  const std::size_t first_command = script.find("\ncd ");
  REQUIRE(first_command != std::string::npos);
  CHECK(script.find("--wrap") > first_command);
}

/// A claim of both arms at the larger size.
Json claiming() {
  Json scenario = tiny();
  scenario["claims"] = Json::parse(R"([
    {"id": "open", "left": {"arm": "learned", "metric": "test_nmse_soft"}, "op": "<",
     "right": {"arm": "frozen", "metric": "test_nmse_soft"}, "at": [40]}])");
  scenario["tune"] = {{"train.lr", {{"low", 0.01}, {"high", 0.1}}}};
  return scenario;
}

/// The answer of slurm with further words.
Json job_of(const Bench& bench, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"slurm", bench.file, "--out", bench.run, "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const Answer answer = ask(words);
  REQUIRE_MESSAGE(answer.status == 0, answer.out);
  return Json::parse(answer.out);
}

TEST_CASE("slurm: a run until decided is sized by the most seeds of what claims read") {
  const Bench bench(claiming());
  const Json answer = job_of(bench, {"--until-decided", "--max-seeds", "30", "--minutes-per-cell", "10"});
  // Both arms at 40 have 30 seeds at most; at 20, which no claim reads, the scenario's two.
  CHECK(answer.at("cells") == 64);
  CHECK(answer.at("minutes_estimate") == 640);
  CHECK(answer.at("tasks") == 22);
  const std::string script = file_text(fs::path(bench.run) / "slurm.sh");
  CHECK(script.find("#SBATCH --array=0-21\n") != std::string::npos);
  CHECK(script.find(" run ") != std::string::npos);
  CHECK(script.find("--until-decided --max-seeds 30 --leases\n") != std::string::npos);
  const std::vector<std::string> words = {"slurm",           bench.file,    "--out", bench.run,
                                          "--until-decided", "--max-seeds", "30"};
  CHECK(ask(words).out.find(" for up to 64 cells") != std::string::npos);
  // The folder keeps the run that the tasks begin with.
  CHECK(read_json_file(fs::path(bench.run) / "plan.json").at("cells").size() == 8);
}

TEST_CASE("slurm: a search is sized by the most points that it may place") {
  Json scenario = tiny();
  scenario["sweep"] = Json::parse(R"({"train.lr": {"crossing":
    {"metric": "train_loss", "level": 0.7, "low": 0.0001, "high": 0.1, "scale": "log"}}})");
  const Bench bench(scenario);
  const Json answer = job_of(bench, {"--minutes-per-cell", "10"});
  CHECK(answer.at("cells") == 28);
  CHECK(answer.at("minutes_estimate") == 280);
  CHECK(answer.at("tasks") == 8);  // no more than the eight cells at the ends, which can run at a time
  CHECK(file_text(fs::path(bench.run) / "slurm.sh").find(" --leases\n") != std::string::npos);
}

TEST_CASE("slurm --tune: tasks of tune share the trainings of the halving by leases") {
  const Bench bench(claiming());
  const Json answer =
      job_of(bench, {"--tune", "--arms", "learned", "--budget", "30", "--metric", "test_loss_soft",
                     "--maximize", "--minutes-per-cell", "10", "--set", "train.steps=5"});
  CHECK(answer.at("cells") == 30);
  CHECK(answer.at("minutes_estimate") == 300);
  CHECK(answer.at("tasks") == 10);
  const std::string script = file_text(fs::path(bench.run) / "slurm.sh");
  CHECK(script.find(" tune " + shell_word(bench.file) + " --set train.steps=5 --out ") != std::string::npos);
  CHECK(script.find(" --arms learned --budget 30 --metric test_loss_soft --maximize --leases\n") !=
        std::string::npos);
  CHECK(script.find("--share") == std::string::npos);
  CHECK(script.find("tune.json has the choice") != std::string::npos);
  // What it keeps is the first rung, so that the tasks go on with it.
  const Answer tuned = ask({"tune", bench.file, "--out", bench.run, "--set", "train.steps=5", "--arms",
                            "learned", "--budget", "30", "--leases", "--threads", "1"});
  CHECK(tuned.status == 0);
  CHECK(tuned.err.find("showed plan") == std::string::npos);
  // Without options there are none in the script.
  job_of(bench, {"--tune"});
  CHECK(file_text(fs::path(bench.run) / "slurm.sh").find("--budget") == std::string::npos);
}

TEST_CASE("slurm: options of tune and of run do not go together") {
  const Bench bench(claiming());
  const auto refused = [&](const std::vector<std::string>& more, const std::string& message) {
    std::vector<std::string> words = {"slurm", bench.file, "--out", bench.run};
    words.insert(words.end(), more.begin(), more.end());
    const Answer answer = ask(words);
    CHECK(answer.status == 2);
    CHECK_MESSAGE(answer.err.find(message) != std::string::npos, answer.err);
    CHECK_FALSE(fs::exists(bench.run));
  };
  refused({"--arms", "learned"}, "--arms: given without --tune");
  refused({"--budget", "30"}, "--budget: given without --tune");
  refused({"--metric", "test_loss_soft"}, "--metric: given without --tune");
  refused({"--maximize"}, "--maximize: given without --tune");
  refused({"--tune", "--until-decided"}, "--until-decided: cannot be combined with --tune");
  refused({"--tune", "--max-seeds", "9"}, "--max-seeds: cannot be combined with --tune");
  refused({"--tune", "--hours", "9"}, "--hours: cannot be combined with --tune");
  refused({"--tune", "--seeds", "2..3"}, "--seeds: cannot be combined with --tune");
  refused({"--tune", "--arms", "leaned"}, "--arms: unknown arm 'leaned'");
  refused({"--tune", "--budget", "3"}, "--budget: got 3 cells an arm");
}

}  // namespace
}  // namespace moelab::slurm_script_test
