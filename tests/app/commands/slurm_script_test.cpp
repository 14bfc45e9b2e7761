/// The verb slurm: an array job with the shares of a run, and what its script quotes.

#include <doctest/doctest.h>

#include <filesystem>

#include "app/run/shell_word.h"
#include "tests/app/commands/answer.h"
#include "tests/app/commands/tiny_run.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::slurm_script_test {
namespace {

namespace fs = std::filesystem;

TEST_CASE("slurm writes an array job with a task for each share") {
  const Bench bench;
  const std::vector<std::string> job = {"slurm", bench.file, "--out", bench.run, "--set", "train.steps=5"};
  CHECK(ask(job).out.find("1 tasks for 8 cells, about ") != std::string::npos);
  CHECK(ask(job).out.find("no cell is done (8)") !=
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

}  // namespace
}  // namespace moelab::slurm_script_test
