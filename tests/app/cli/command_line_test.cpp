#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "app/cli/verbs.h"
#include "app/scenario/json.h"
#include "sim/base/kernels/kernels.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::command_line_test {

namespace fs = std::filesystem;

TEST_CASE("command line: help and version answer, and are no errors") {
  CHECK(ask({"--help"}).status == 0);
  CHECK(ask({"--version"}).out.starts_with("moelab "));
  for (const char* verb :
       {"run", "plan", "validate", "schema", "list", "claims", "export", "plot", "status", "sample", "report",
        "compare", "agreement", "reproduce", "verify", "slurm", "completion", "docs", "new"}) {
    const Answer answer = ask({verb, "--help"});
    CHECK(answer.status == 0);
    CHECK(answer.out.find(std::string("Example: moelab ") + verb) != std::string::npos);
  }
}

TEST_CASE("command line: every usual form of asking for help") {
  const std::string help = ask({"--help"}).out;
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"help"}, {"-h"}}) {
    CHECK(ask(words).status == 0);
    CHECK(ask(words).out == help);
  }
  const std::string of_run = ask({"run", "--help"}).out;
  CHECK(ask({"help", "run"}).out == of_run);
  CHECK(ask({"run", "-h"}).out == of_run);
  CHECK(ask({"help", "rnu"}).err.find("'run'") != std::string::npos);
}

TEST_CASE("command line: list is an overview, and goes deeper by name") {
  const std::string overview = ask({"list"}).out;
  CHECK(std::count(overview.begin(), overview.end(), '\n') <= 40);
  std::istringstream lines(overview);
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() < 90, line);
  CHECK(ask({"list", "cosine"}).out.find("routers (model.router.kind)") == 0);
  CHECK(ask({"list", "cosine"}).out.find("mlp: ") == std::string::npos);
  const std::string linear = ask({"list", "linear"}).out;
  for (const char* axis : {"targets", "routers", "experts"}) CHECK(linear.find(axis) != std::string::npos);
  const std::string metric = ask({"list", "top1_cluster_ari"}).out;
  CHECK(metric.find("sparsity") != std::string::npos);
  CHECK(metric.find("top1_cluster_ari") != std::string::npos);
  CHECK(metric.find("top1_cluster_nmi") == std::string::npos);
  const std::string of_analysis = ask({"list", "coverage_4"}).out;
  CHECK(of_analysis.find("analysis (a metric of moelab analyze)") == 0);
  CHECK(of_analysis.find("share of the 4 largest loads in N; follows K choices") != std::string::npos);
  const Answer unknown = ask({"list", "ari"});
  CHECK(unknown.status == 2);
  CHECK(unknown.err.find("did you mean 'top1_cluster_ari'?") != std::string::npos);
  CHECK(Json::parse(ask({"list", "cosine", "--json"}).out).at("routers").at("kinds").size() == 1);
}

TEST_CASE("command line: unknown verbs and options, with the nearest") {
  const Answer verb = ask({"exprot"});
  CHECK(verb.status == 2);
  CHECK(verb.err.find("'export'") != std::string::npos);
  CHECK(verb.err.starts_with("moelab: error: "));
  const Answer option = ask({"run", "x.json", "--thread", "2"});
  CHECK(option.status == 2);
  CHECK(option.err.find("'--threads'") != std::string::npos);
  const std::vector<std::vector<std::string>> wrong = {{"run"},
                                                       {"-x"},
                                                       {"run", "a", "b"},
                                                       {"run", "a", "--threads", "0"},
                                                       {"run", "a", "--threads", "1.5"},
                                                       {"run", "a", "--threads", "-1"},
                                                       {"run", "a", "--set"},
                                                       {"list", "routter"},
                                                       {"status", "no/such/folder"}};
  for (const std::vector<std::string>& words : wrong) {
    const Answer answer = ask(words);
    CHECK(answer.status == 2);
    CHECK(answer.out.empty());
    CHECK(answer.err.starts_with("moelab: error: "));
  }
}

TEST_CASE("command line: an option without its value says so") {
  const Answer answer = ask({"validate", "x.json", "--set"});
  CHECK(answer.status == 2);
  CHECK(answer.err == "moelab: error: --set: missing; needs a value; see moelab validate --help\n");
}

TEST_CASE("command line: errors in JSON") {
  const Answer answer = ask({"validate", "no-such-file.json", "--json"});
  CHECK(answer.status == 2);
  CHECK(answer.err.empty());
  const Json error = Json::parse(answer.out).at("error");
  CHECK(error.at("path").is_string());
  CHECK(error.at("message").is_string());
  CHECK(Json::parse(ask({"exprot", "--json"}).out).contains("error"));
}

TEST_CASE("command line: bad scenarios are refused with their path, and nothing is written") {
  Json unknown = tiny();
  unknown["model"]["routr"] = 1;
  Json wrong_sweep = tiny();
  wrong_sweep["sweep"] = {{"data.no_such_field", {1, 2}}};
  for (const Json& scenario : {unknown, wrong_sweep}) {
    const Bench bench(scenario);
    for (const std::string verb : {"run", "sample", "plan"}) {
      CHECK(ask({verb, bench.file, "--out", bench.run}).status == 2);
      CHECK_FALSE(fs::exists(bench.run));
    }
  }
  const Bench bench;
  CHECK(ask({"run", bench.file, "--out", bench.run, "--set", "model.experts=0"}).status == 2);
  CHECK(ask({"run", bench.file, "--out", bench.run, "--profile", "none"}).status == 2);
  CHECK_FALSE(fs::exists(bench.run));
}

TEST_CASE("command line: validate and plan count cells; --set takes one value and leaves FILE alone") {
  const Bench bench;
  CHECK(ask({"validate", bench.file}).out == "valid: 8 cells\n");
  CHECK(ask({"validate", "--set", "seeds.count=3", bench.file}).out == "valid: 12 cells\n");
  const Answer answer = ask({"plan", bench.file, "--out", bench.run, "--set", "seeds.count=1", "--set",
                             "data.test_samples=50", "--set", "sweep={\"data.dim\": [2, 3, 4]}", "--json"});
  REQUIRE_MESSAGE(answer.status == 0, answer.out);
  const Json plan = Json::parse(answer.out);
  CHECK(plan.at("cells") == 6);
  CHECK(plan.at("to_run") == 6);
  CHECK(plan.at("recorded") == 0);
  CHECK(plan.at("seconds_estimate") > 0);
  CHECK(plan.at("seconds_from").get<std::string>().find("none of the 6 cells is done") != std::string::npos);
  CHECK(plan.at("memory_estimate_bytes") > 1e6);
  CHECK(plan.at("sweep").at("data.dim") == Json({2, 3, 4}));
  CHECK_FALSE(fs::exists(bench.run));
}

TEST_CASE("command line: schema and list answer from the tables") {
  const Json schema = Json::parse(ask({"schema"}).out);
  CHECK(schema.at("properties").contains("model"));
  const Json list = Json::parse(ask({"list", "--json"}).out);
  for (const char* axis : {"generators", "targets", "contaminations", "models", "mixers", "routers",
                           "start_laws", "experts", "gatings", "losses", "auxiliary_losses", "optimizers",
                           "schedules", "metrics", "operators", "figures"}) {
    REQUIRE(list.contains(axis));
    CHECK(list.at(axis).at("kinds").size() > 0);
    CHECK(ask({"list", axis}).out.starts_with(axis));
  }
  CHECK(ask({"list", "routers"}).out.find("  linear: ") != std::string::npos);
  CHECK(ask({"list", "routers"}).out.find("; needs data with one label a row") != std::string::npos);
  CHECK(ask({"list", "gatings"}).out.find("; not causal: ") != std::string::npos);
  CHECK(ask({"list", "metrics"}).out.find("test_nmse_top1") != std::string::npos);
}

TEST_CASE("command line: a run, its status and its export") {
  const Bench bench;
  const Answer run = ask({"run", bench.file, "--out", bench.run, "--threads", "2"});
  REQUIRE_MESSAGE(run.status == 0, run.err);
  CHECK(run.out.find("test_nmse_top1") != std::string::npos);
  const Json status = Json::parse(ask({"status", bench.run, "--json"}).out);
  CHECK(status.at("total").at("done") == 8);
  CHECK(status.at("arms").at("frozen").at("missing") == 0);
  const Answer table = ask({"export", bench.run});
  CHECK(table.out.starts_with("cell,arm,seed,data.train_samples,state,train_loss,"));
  CHECK(std::count(table.out.begin(), table.out.end(), '\n') == 9);
  const std::string file = (bench.folder.path() / "table.csv").string();
  CHECK(ask({"export", bench.run, "--out", file}).out.empty());
  CHECK(file_text(file) == table.out);
  CHECK(Json::parse(ask({"export", bench.run, "--json"}).out).at("rows").size() == 8);
  CHECK(
      ask({"export", bench.run, "--trace"}).out.starts_with("cell,arm,seed,data.train_samples,state,step,"));
  CHECK(Json::parse(ask({"plan", bench.file, "--out", bench.run, "--json"}).out).at("recorded") == 8);
  CHECK(fs::exists(fs::path(bench.run) / "claims.json"));

  Json other = tiny();
  other["name"] = "other";
  const Bench second(other);
  const Answer refused = ask({"run", second.file, "--out", bench.run});
  CHECK(refused.status == 2);
  CHECK(refused.err.find("--out") != std::string::npos);
}

TEST_CASE("command line: a sample has the cell's shapes and spares other files") {
  const Bench bench;
  const Answer answer = ask({"sample", bench.file, "--out", bench.run, "--json"});
  REQUIRE_MESSAGE(answer.status == 0, answer.out);
  const Json arrays = Json::parse(answer.out).at("arrays");
  CHECK(arrays.at("train_inputs") == Json({20, 4}));
  CHECK(arrays.at("test_targets") == Json({30, 2}));
  CHECK(arrays.at("test_labels") == Json::array({30}));
  CHECK(file_text(fs::path(bench.run) / "test_labels.npy").size() == 128 + 30 * 8);
  const std::string before = file_text(fs::path(bench.run) / "test_inputs.npy");
  CHECK(ask({"sample", bench.file, "--out", bench.run}).status == 0);
  CHECK(file_text(fs::path(bench.run) / "test_inputs.npy") == before);
  CHECK(ask({"sample", bench.file, "--out", bench.folder.path().string()}).status == 2);
  CHECK(ask({"sample", bench.file, "--out", bench.run, "--cell", "nonesuch"}).status == 2);
}

TEST_CASE("command line: --out leaves what is no file as it is, before anything is read or computed") {
  const Bench bench;
  const fs::path pipe = bench.folder.path() / "pipe", link = bench.folder.path() / "link";
  REQUIRE(::mkfifo(pipe.c_str(), 0666) == 0);
  fs::create_symlink("/dev/null", link);
  for (const std::string& place : {pipe.string(), link.string()}) {
    const std::vector<std::vector<std::string>> commands = {
        {"run", bench.file, "--out", place},       {"slurm", bench.file, "--out", place},
        {"sample", bench.file, "--out", place},    {"docs", "--out", place},
        {"new", "idea", "--out", place},           {"export", "no/such/run", "--out", place},
        {"report", "no/such/run", "--out", place}, {"report", "no/such/run", "--ledger", place}};
    for (const std::vector<std::string>& words : commands) {
      const Answer answer = ask(words);
      CAPTURE(words[0]);
      CHECK(answer.status == 2);
      CHECK(answer.out.empty());
      const std::string option = words.back() == place ? words[words.size() - 2] : "";
      CHECK_MESSAGE(answer.err.starts_with("moelab: error: " + option + ": '" + place + "'"), answer.err);
    }
  }
  CHECK(fs::is_fifo(pipe));
  CHECK(fs::read_symlink(link) == "/dev/null");
  CHECK_FALSE(fs::exists(bench.folder.path() / "scenario.schema.json"));

  // In a folder that is given, a pipe in a document's place.
  const fs::path documents = bench.folder.path() / "documents";
  fs::create_directory(documents);
  fs::create_symlink(pipe, documents / "theorems.md");
  const Answer answer = ask({"docs", "--out", documents.string()});
  CHECK(answer.status == 2);
  CHECK_FALSE(fs::exists(documents / "scenario.md"));
}

TEST_CASE("command line: an unknown vector level in the environment is bad input for every verb") {
  const char* const variable = "MOELAB_VECTOR_LEVEL";
  const char* const found = std::getenv(variable);
  const std::string before = found == nullptr ? "" : found;
  ::setenv(variable, "avx22", 1);
  std::vector<std::vector<std::string>> commands = {{"--help"}, {"--version"}, {}, {"exprot"}};
  for (const Verb& verb : verbs()) commands.push_back({verb.name, "--help"});
  for (const std::vector<std::string>& words : commands) {
    const Answer answer = ask(words);
    CHECK(answer.status == 2);
    CHECK(answer.out.empty());
    CHECK(answer.err.starts_with("moelab: error: MOELAB_VECTOR_LEVEL: unknown vector level 'avx22'"));
    CHECK(answer.err.find(kernels::vector_level_names().front()) != std::string::npos);
  }
  const Json error = Json::parse(ask({"list", "--json"}).out).at("error");
  CHECK(error.at("path") == variable);
  ::setenv(variable, kernels::vector_level_names().back().c_str(), 1);
  CHECK(ask({"list"}).status == 0);
  ::unsetenv(variable);
  if (found != nullptr) ::setenv(variable, before.c_str(), 1);
}

TEST_CASE("command line: a folder that cannot be made is the environment's failure") {
  const Bench bench;
  // The kernel's own takes no folders from any user.
  CHECK(ask({"run", bench.file, "--out", "/proc/moelab"}).status == 3);
}

}  // namespace moelab::command_line_test
