/// Runs that search a crossing, and several processes on one run that grows: results, and what kills leave.

#include <doctest/doctest.h>

#include <set>

#include "tests/app/cli/tiny_run.h"
#include "tests/system/run_directory.h"

namespace moelab::crossing_test {
namespace {

namespace fs = std::filesystem;

/// The faster the rate the lower the loss; a level in the middle of its range.
Json searched() {
  Json scenario = tiny();
  scenario["train"]["steps"] = 40;
  scenario["sweep"] = Json::parse(R"({"train.lr": {"crossing":
    {"metric": "train_loss", "level": 0.7, "low": 0.0001, "high": 0.1, "scale": "log"}}})");
  return scenario;
}

/// A claim of equal sides, which only the cap of seeds ends.
Json undecided() {
  Json scenario = tiny();
  scenario["train"]["steps"] = 60;
  scenario["train"]["lr"] = 0.3;
  scenario["claims"] = Json::parse(R"([
    {"id": "open", "left": {"arm": "learned", "metric": "test_nmse_soft"}, "op": "~", "tolerance": 1e-9,
     "right": {"arm": "frozen", "metric": "test_nmse_soft"}}])");
  return scenario;
}

/// Cells by how many records they have.
std::map<std::string, int> records_of(const fs::path& run) {
  std::map<std::string, int> records;
  for (const fs::directory_entry& journal : fs::directory_iterator(run / "journal")) {
    std::istringstream lines(file_text(journal.path()));
    for (std::string line; std::getline(lines, line);)
      ++records[Json::parse(line).at("record").at("cell").get<std::string>()];
  }
  return records;
}

/// Runs the command in two processes at a time. Kills one of them and starts it again, as long as `kills`
/// last.
void run_twice_through_kills(const std::vector<std::string>& words, const fs::path& log, int kills,
                             std::chrono::microseconds whole) {
  const fs::path other_log = log.string() + "-other";
  const pid_t steady = start(words, log);
  for (int kill = 0; kill < kills; ++kill) {
    const pid_t killed = start(words, other_log);
    std::this_thread::sleep_for(whole * (kill + 1) / (kills + 1));
    ::kill(killed, SIGKILL);
    wait_for(killed);
  }
  const pid_t last = start(words, other_log);
  CHECK(wait_for(last) == 0);
  CHECK(wait_for(steady) == 0);
}

std::chrono::microseconds time_of(const std::vector<std::string>& words, const fs::path& log) {
  const Clock::time_point begin = Clock::now();
  REQUIRE(call(words, log) == 0);
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
}

}  // namespace

TEST_CASE("program: a crossing is planned, searched, told and its cells made again") {
  const Bench bench(searched());
  const fs::path log = bench.folder.path() / "log", run = bench.run;
  REQUIRE(call({"plan", bench.file, "--out", bench.run, "--json"}, log) == 0);
  const Json plan = Json::parse(file_text(log));
  CHECK(plan.at("cells") == 8);
  CHECK(plan.at("crossing").at("fewest_cells") == 8);
  CHECK(plan.at("crossing").at("most_cells") == 28);
  CHECK(call({"plan", bench.file, "--out", bench.run}, log) == 0);
  CHECK(file_text(log).find("28 in all at most") != std::string::npos);
  CHECK(call({"validate", bench.file}, log) == 0);
  REQUIRE(call({"run", bench.file, "--out", bench.run, "--json"}, log) == 0);
  const Json crossings = Json::parse(file_text(log)).at("crossings");
  REQUIRE(crossings.size() == 2);
  CHECK(crossings[0].at("state") == "crosses");
  CHECK(crossings[0].at("estimate").get<double>() > crossings[0].at("bracket")[0].get<double>());
  CHECK(crossings[0].at("estimate").get<double>() < crossings[0].at("bracket")[1].get<double>());
  CHECK(crossings[0].at("points") == 7);
  REQUIRE(call({"status", bench.run, "--json"}, log) == 0);
  CHECK(Json::parse(file_text(log)).at("crossings") == crossings);
  CHECK(call({"verify", bench.run}, log) == 0);
  CHECK(call({"claims", bench.run}, log) == 0);
  CHECK(file_text(log).find("where the mean of train_loss crosses 0.7") != std::string::npos);
  const Json cells = read_json_file(run / "plan.json").at("cells");
  CHECK(cells.size() <= 28);
  CHECK(call({"reproduce", bench.run, cells[4].at("id").get<std::string>()}, log) == 0);
  REQUIRE(call({"report", bench.run, "--follow"}, log) == 0);
  CHECK(file_text(run / "report.html").find("where the mean of train_loss crosses 0.7") != std::string::npos);
  // An ordinary sweep at a placed point has the same cells, and runs none of them again.
  Json grid = searched();
  grid["sweep"]["train.lr"] = Json::array({cells[4].at("point").at("train.lr")});
  const Bench ordinary(grid);
  REQUIRE(call({"plan", ordinary.file, "--out", bench.run, "--json"}, log) == 0);
  CHECK(Json::parse(file_text(log)).at("recorded").get<int>() >= 2);  // of one arm, or of both
  CHECK(call({"run", bench.file, "--out", bench.run, "--share", "0/2"}, log) == 2);
  CHECK(call({"run", bench.file, "--out", bench.run, "--until-decided"}, log) == 2);
  CHECK(call({"run", bench.file, "--out", bench.run, "--leases", "--share", "0/2"}, log) == 2);
}

TEST_CASE("program: a search through kills is the undisturbed one, to the bit") {
  constexpr int kKills = 20;
  const Bench bench(searched());
  const fs::path log = bench.folder.path() / "log", killed = bench.folder.path() / "killed";
  const auto words = [&](const fs::path& run) -> std::vector<std::string> {
    return {"run", bench.file, "--out", run.string(), "--threads", "2"};
  };
  const std::chrono::microseconds whole = time_of(words(bench.run), log);
  for (int kill = 0; kill < kKills; ++kill) {
    const pid_t process = start(words(killed), log);
    std::this_thread::sleep_for(whole * (kill + 1) / (kKills + 1));
    ::kill(process, SIGKILL);
    wait_for(process);
  }
  REQUIRE(call(words(killed), log) == 0);
  CHECK(exported(bench.folder, killed, true) == exported(bench.folder, bench.run, true));
  CHECK(file_text(killed / "plan.json") == file_text(fs::path(bench.run) / "plan.json"));
}

TEST_CASE("program: two processes take the cells of a run by leases, each cell once") {
  const Bench bench(undecided());
  const fs::path log = bench.folder.path() / "log";
  const std::vector<std::string> words = {
      "run", bench.file, "--out", bench.run, "--set", "train.steps=2000", "--leases", "--threads", "1"};
  const pid_t first = start(words, log), second = start(words, log.string() + "2");
  CHECK(wait_for(first) == 0);
  CHECK(wait_for(second) == 0);
  const std::map<std::string, int> records = records_of(bench.run);
  CHECK(records.size() == 8);
  for (const auto& [cell, count] : records) CHECK(count == 1);
}

TEST_CASE(
    "program: two processes on a search and on a decided run, one of them killed: the undisturbed result") {
  for (const bool is_search : {true, false}) {
    CAPTURE(is_search);
    const Bench bench(is_search ? searched() : undecided());
    const fs::path log = bench.folder.path() / "log", shared = bench.folder.path() / "shared";
    const auto words = [&](const fs::path& run) {
      std::vector<std::string> all = {"run", bench.file, "--out", run.string(), "--leases"};
      if (!is_search) all.insert(all.end(), {"--until-decided", "--max-seeds", "14"});
      return all;
    };
    const std::chrono::microseconds whole = time_of(words(bench.run), log);
    if (!is_search)
      CHECK(read_json_file(fs::path(bench.run) / "plan.json").at("decided").at("seeds")[0] == 14);
    run_twice_through_kills(words(shared), log, 8, whole);
    CHECK(exported(bench.folder, shared, true) == exported(bench.folder, bench.run, true));
    CHECK(file_text(shared / "plan.json") == file_text(fs::path(bench.run) / "plan.json"));
    CHECK(file_text(shared / "claims.json") == file_text(fs::path(bench.run) / "claims.json"));
    CHECK(call({"verify", shared.string()}, log) == 0);
  }
}

TEST_CASE(
    "program: two processes tune by leases, each cell once, and one of them killed to the same choice") {
  Json scenario = tiny();
  scenario["tune"] = {{"train.lr", {{"low", 1e-4}, {"high", 1.0}}}};
  scenario["train"]["steps"] = 600;
  const Bench bench(scenario);
  const fs::path log = bench.folder.path() / "log", shared = bench.folder.path() / "shared",
                 killed = bench.folder.path() / "killed";
  const auto words = [&](const fs::path& run) -> std::vector<std::string> {
    return {"tune", bench.file, "--out", run.string(), "--budget", "30", "--threads", "1", "--leases"};
  };
  const auto choice_of = [](const fs::path& run) {
    Json choice = read_json_file(run / "tune.json");
    choice.erase("directory");
    return choice;
  };
  const std::chrono::microseconds whole = time_of(words(bench.run), log);
  const fs::path other_log = log.string() + "-other";
  const pid_t first = start(words(shared), log), second = start(words(shared), other_log);
  CHECK(wait_for(first) == 0);
  CHECK(wait_for(second) == 0);
  const std::map<std::string, int> records = records_of(shared);
  CHECK(records.size() == 60);  // thirty of each of two arms
  for (const auto& record : records) CHECK(record.second == 1);
  CHECK(choice_of(shared) == choice_of(bench.run));
  CHECK(file_text(log) != "");
  CHECK(file_text(log) == file_text(other_log));
  CHECK(file_text(log.string() + ".err").find("showed plan") == std::string::npos);
  run_twice_through_kills(words(killed), log, 8, whole);
  CHECK(choice_of(killed) == choice_of(bench.run));
  CHECK(exported(bench.folder, killed, true) == exported(bench.folder, bench.run, true));
  for (const fs::path& run : {shared, killed}) CHECK(call({"verify", run.string()}, log) == 0);
}

TEST_CASE("program: tasks of slurm share a search and a decided run by leases") {
  const Bench bench(searched());
  const fs::path log = bench.folder.path() / "log", script = fs::path(bench.run) / "slurm.sh";
  REQUIRE(call({"slurm", bench.file, "--out", bench.run}, log) == 0);
  CHECK(file_text(script).find("--leases") != std::string::npos);
  CHECK(file_text(script).find("--share") == std::string::npos);
  const Bench decided(undecided());
  REQUIRE(call({"slurm", decided.file, "--out", decided.run, "--until-decided", "--max-seeds", "9"}, log) ==
          0);
  CHECK(file_text(fs::path(decided.run) / "slurm.sh").find("--until-decided --max-seeds 9 --leases") !=
        std::string::npos);
  CHECK(call({"slurm", decided.file, "--out", decided.run, "--hours", "1"}, log) == 2);
}

TEST_CASE("program: a decided run is compared by its sequential intervals") {
  const Bench bench(undecided());
  const fs::path log = bench.folder.path() / "log", fixed = bench.folder.path() / "fixed";
  REQUIRE(call({"run", bench.file, "--out", bench.run, "--until-decided", "--max-seeds", "8"}, log) == 0);
  REQUIRE(call({"run", bench.file, "--out", fixed.string(), "--set", "seeds.count=8"}, log) == 0);
  REQUIRE(call({"compare", bench.run, fixed.string(), "--json"}, log) == 0);
  const Json answer = Json::parse(file_text(log));
  CHECK(answer.at("decided") == Json::array({true, false}));
  const Json& values = answer.at("rows")[0].at("values");
  CHECK(values[0].at("test") == "t mixture");
  CHECK_FALSE(values[1].contains("test"));
  CHECK(values[0].at("mean").get<double>() == doctest::Approx(values[1].at("mean").get<double>()));
  // One may look at a sequence as often as one likes: it is the wider.
  CHECK(values[0].at("interval")[0].get<double>() < values[1].at("interval")[0].get<double>());
  CHECK(values[0].at("interval")[1].get<double>() > values[1].at("interval")[1].get<double>());
  CHECK(answer.at("differences")[0].at("values")[0].at("test") == "t mixture");
}

TEST_CASE("program: a share tells in JSON what it did") {
  const Bench bench;
  const fs::path log = bench.folder.path() / "log";
  for (const char* share : {"0/2", "1/2"}) {
    REQUIRE(call({"run", bench.file, "--out", bench.run, "--share", share, "--json"}, log) == 0);
    CHECK(Json::parse(file_text(log)) == Json({{"directory", bench.run}, {"share", share}, {"failed", 0}}));
  }
  CHECK(recorded_lines(bench.run) == 8);
}

}  // namespace moelab::crossing_test
