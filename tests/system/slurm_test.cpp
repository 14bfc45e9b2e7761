/// `moelab slurm` with a real Slurm of one machine, see slurm_cluster.h. Where it does not start, the test
/// says so and ctest counts it as skipped.

#include <algorithm>

#include "tests/system/run_directory.h"
#include "tests/system/slurm_cluster.h"

namespace moelab::slurm_test {
namespace {

/// Forty cells of some tenths of a second each, on a machine that does other work besides.
constexpr std::chrono::seconds kJobPatience{900};
constexpr int kTasks = 20;
constexpr int kCells = 40;

Json status_of(const fs::path& run, const fs::path& out) {
  REQUIRE(call({"status", run.string(), "--json"}, out) == 0);
  return Json::parse(file_text(out)).at("total");
}

std::string export_of(const fs::path& run, const fs::path& out) {
  REQUIRE(call({"export", run.string()}, out) == 0);
  return file_text(out);
}

Json forty_cells() {
  return Json::parse(R"({
    "name": "forty",
    "data": {"generator": "gaussian_mixture", "clusters": 4, "dim": 6, "mean_std": 2, "noise_std": 1,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 20, "test_samples": 50},
    "model": {"experts": 4, "router": {"kind": "linear"}, "expert": {"kind": "mlp", "depth": 2, "width": 8}},
    "train": {"optimizer": "sgd", "lr": 0.01, "batch_size": 16, "steps": 40000},
    "metrics": ["task", "sparsity"],
    "arms": {"learned": {}, "frozen": {"model.router.trainable": false}},
    "sweep": {"data.train_samples": [20, 40]},
    "seeds": {"root": 1, "count": 10}
  })");
}

/// Kills a task of the array while it runs, as a machine that fails would. Its id.
std::string kill_a_task(const Cluster& cluster) {
  std::string killed;
  const auto kill_one = [&] {
    const std::vector<std::string> ids = cluster.running();
    if (ids.empty()) return false;
    // The last to start has most of its work before it; one that ends in between was not killed.
    const std::string& id = ids.back();
    wait_for(start_program({"scancel", "--signal=KILL", "--batch", id}, cluster.log("scancel")));
    // Between running and either end a task is COMPLETING for a moment.
    std::string task;
    const auto is_in = [&](const char* state) { return task.find(state) != std::string::npos; };
    const auto has_ended = [&] {
      task = cluster.task(id);
      return is_in("JobState=COMPLETED") || is_in("JobState=FAILED");
    };
    REQUIRE(wait_until(has_ended));
    if (is_in("JobState=FAILED")) killed = id;
    return !killed.empty();
  };
  REQUIRE(wait_until(kill_one));
  return killed;
}

/// Submits the job of these words and waits until Slurm has no jobs. What slurm told.
Json run_job(const Cluster& cluster, std::vector<std::string> words) {
  const fs::path log = cluster.log("log");
  words.insert(words.begin(), "slurm");
  words.insert(words.end(), {"--threads", "1", "--submit", "--json"});
  REQUIRE(call(words, log) == 0);
  // Behind the answer stands what sbatch says.
  const std::string text = file_text(log);
  const Json answer = Json::parse(text.substr(0, text.find("\n}\n") + 2));
  REQUIRE(wait_until([&] { return !cluster.has_jobs(); }, kJobPatience));
  return answer;
}

std::ptrdiff_t logs_of(const fs::path& run) {
  return std::count_if(fs::directory_iterator(run), {}, [](const fs::directory_entry& entry) {
    return entry.path().filename().string().starts_with("slurm-");
  });
}

}  // namespace

TEST_CASE("slurm: an array of twenty tasks, one of them killed and requeued, gives what a local run gives") {
  const Cluster cluster;
  if (!cluster.reason().empty()) {
    MESSAGE("slurm test skipped: " << cluster.reason());
    return;
  }
  // A folder whose name needs quoting.
  const fs::path folder = cluster.path() / "a run's folder, 100%A";
  fs::create_directory(folder);
  const fs::path file = folder / "forty.json", run = folder / "run", log = cluster.log("log");
  std::ofstream(file) << forty_cells().dump();
  REQUIRE(call({"slurm", file.string(), "--out", run.string(), "--threads", "1", "--minutes-per-cell", "5",
                "--minutes-per-task", "10", "--submit"},
               log) == 0);
  CHECK(file_text(log).find("20 tasks for 40 cells") != std::string::npos);

  const std::string killed = kill_a_task(cluster);
  // While the job runs, every reader sees the whole plan and its recorded cells.
  const Json before = status_of(run, log);
  CHECK(before.at("missing") > 0);
  CHECK(before.at("failed") == 0);
  const std::string partial = export_of(run, log);
  CHECK(std::count(partial.begin(), partial.end(), '\n') == kCells + 1);

  REQUIRE(wait_for(start_program({"scontrol", "requeue", killed}, log)) == 0);
  REQUIRE(wait_until([&] { return !cluster.has_jobs(); }, kJobPatience));
  const std::string task = cluster.task(killed);
  CHECK_MESSAGE(task.find("JobState=COMPLETED") != std::string::npos, task);
  CHECK_MESSAGE(task.find("Restarts=1") != std::string::npos, task);
  CHECK(status_of(run, log).at("done") == kCells);

  CHECK(logs_of(run) == kTasks);
  CHECK(recorded_lines(run) == kCells);  // what the killed task had recorded was not run again

  const fs::path local = folder / "local";
  REQUIRE(call({"run", file.string(), "--out", local.string(), "--threads", "2"}, log) == 0);
  CHECK(export_of(run, log) == export_of(local, log));
}

TEST_CASE(
    "slurm: tasks of a decided run, of a search and of tune share the cells, each once, as one process "
    "does") {
  const Cluster cluster;
  if (!cluster.reason().empty()) {
    MESSAGE("slurm test skipped: " << cluster.reason());
    return;
  }
  const fs::path log = cluster.log("log");
  Json scenario = forty_cells();
  scenario["seeds"]["count"] = 2;
  scenario["train"]["steps"] = 4000;
  scenario["tune"] = {{"train.lr", {{"low", 1e-3}, {"high", 0.1}}}};
  scenario["claims"] = Json::parse(R"([
    {"id": "open", "left": {"arm": "learned", "metric": "test_nmse_soft"}, "op": "~", "tolerance": 1e-9,
     "right": {"arm": "frozen", "metric": "test_nmse_soft"}}])");
  Json searching = scenario;
  searching.erase("claims");
  searching["sweep"] = Json::parse(R"({"train.lr": {"crossing":
    {"metric": "train_loss", "level": 0.5, "low": 0.00001, "high": 0.01, "scale": "log"}}})");
  searching.erase("tune");
  struct Shared {
    const char* name;
    Json scenario;
    std::vector<std::string> job, local;
    std::ptrdiff_t cells;  ///< that slurm tells at most
  };
  const std::vector<Shared> all = {
      {"decided",
       scenario,
       {"--until-decided", "--max-seeds", "9"},
       {"run", "--until-decided", "--max-seeds", "9"},
       36},
      {"search", searching, {}, {"run"}, 28},
      {"tune", scenario, {"--tune", "--budget", "30"}, {"tune", "--budget", "30"}, 60}};
  for (const Shared& shared : all) {
    CAPTURE(std::string(shared.name));
    const fs::path file = cluster.path() / (std::string(shared.name) + ".json"),
                   run = cluster.path() / shared.name,
                   local = cluster.path() / (file.stem().string() + "-local");
    std::ofstream(file) << shared.scenario.dump();
    std::vector<std::string> words = {file.string(),        "--out", run.string(), "--minutes-per-cell", "10",
                                      "--minutes-per-task", "90"};
    words.insert(words.end(), shared.job.begin(), shared.job.end());
    const Json told = run_job(cluster, words);
    CHECK(told.at("cells") == shared.cells);
    CHECK(logs_of(run) == told.at("tasks").get<std::ptrdiff_t>());
    CHECK(logs_of(run) > 1);
    words = {shared.local.front(), file.string(), "--out", local.string()};
    words.insert(words.end(), shared.local.begin() + 1, shared.local.end());
    REQUIRE(call(words, log) == 0);
    CHECK(export_of(run, log) == export_of(local, log));
    CHECK(recorded_lines(run) == recorded_lines(local));
    CHECK(recorded_lines(run) <= shared.cells);
    if (fs::exists(local / "tune.json")) {
      Json choice = read_json_file(run / "tune.json");
      choice["directory"] = local.string();
      CHECK(choice == read_json_file(local / "tune.json"));
    } else {
      CHECK(file_text(run / "claims.json") == file_text(local / "claims.json"));
    }
  }
}

}  // namespace moelab::slurm_test
