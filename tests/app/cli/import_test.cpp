/// `moelab import`: results of another training as an arm.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <map>

#include "app/scenario/json.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"

namespace moelab::import_test {
namespace {

Json claiming() {
  Json scenario = tiny_with_claims(R"([
    {"id": "better", "op": "<", "text": "quoted", "origin": "paper", "reported": 1,
     "left": {"arm": "learned", "metric": "test_loss_soft"}, "right": {"arm": "frozen", "metric": "test_loss_soft"}},
    {"id": "of_one", "op": ">", "left": {"value": 1e9}, "right": {"arm": "learned", "metric": "test_loss_soft"}},
    {"id": "grows", "op": "increases", "along": "data.train_samples", "arm": "learned", "metric": "test_loss_soft"},
    {"id": "along_steps", "op": "decreases", "along": "step", "arm": "learned", "metric": "test_loss_soft"},
    {"id": "of_another_metric", "op": "<", "left": {"arm": "learned", "metric": "cluster_entropy"},
     "right": {"arm": "frozen", "metric": "cluster_entropy"}}])");
  scenario["figures"] = Json::parse(R"([{"id": "loss", "x": "data.train_samples", "y": "test_loss_soft",
    "arms": ["frozen"]}])");
  return scenario;
}

/// A run with three seeds at two sizes.
struct Imports : Bench {
  std::string table = (folder.path() / "mine.csv").string();
  Imports() : Bench(claiming()) { REQUIRE(ask({"run", file, "--out", run}).status == 0); }

  Answer import(const std::string& csv, const std::string& arm = "mine") const {
    std::ofstream(table) << csv;
    return ask({"import", run, table, "--arm", arm, "--json"});
  }
  Json claims() const { return Json::parse(ask({"claims", run, "--json"}).out); }
};

/// All seeds and sizes, with losses that grow with the size and lie below any of the run's.
std::string whole_table() {
  std::string csv = "seed,data.train_samples,test_loss_soft\n";
  for (const int samples : {20, 40}) {
    for (int seed = 0; seed < 3; ++seed)
      csv += fmt::format("{},{},{}\n", seed, samples, 1e-9 * samples * (1 + 0.01 * seed));
  }
  return csv;
}

}  // namespace

TEST_CASE("import: claims judge the arm in the place of their left side, and say so") {
  const Imports bench;
  const Json before = bench.claims();
  const Answer answer = bench.import(whole_table());
  REQUIRE_MESSAGE(answer.status == 0, answer.err);
  const Json told = Json::parse(answer.out);
  CHECK(told.at("rows") == 6);
  CHECK(told.at("missing") == 0);
  const Json after = bench.claims();
  REQUIRE(after.size() == before.size() + 3);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(after[i] == before[i]);
  const std::vector<std::string> ids = {"better@mine", "of_one@mine", "grows@mine"};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Json& claim = after[before.size() + i];
    CAPTURE(claim.dump());
    CHECK(claim.at("id") == ids[i]);
    CHECK(claim.at("verdict") == "reproduced");
    CHECK(claim.at("origin") == "ours");
    CHECK(claim.at("reported").is_null());
    CHECK(claim.at("text") != "quoted");
  }
  CHECK(after[before.size()].at("source") == "better, with mine (imported) in the place of learned");
  CHECK(told.at("claims") == Json(after.begin() + static_cast<std::ptrdiff_t>(before.size()), after.end()));
}

TEST_CASE("import: censored steps are more than those of the run, and decide pairs") {
  Json scenario = tiny_with_claims(R"([
    {"id": "faster", "op": "<", "left": {"arm": "learned", "metric": "steps_to_target"},
     "right": {"arm": "frozen", "metric": "steps_to_target"}}])");
  scenario["seeds"]["count"] = 6;
  scenario.erase("sweep");
  scenario["metrics"].push_back({{"kind", "convergence"}, {"metric", "train_loss"}, {"target", 1e9}});
  const Bench bench(scenario);
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const std::string table = (bench.folder.path() / "mine.csv").string();
  std::string csv = "seed,steps_to_target,steps_to_target_censored\n";
  for (int seed = 0; seed < 6; ++seed) csv += fmt::format("{},,1\n", seed);
  std::ofstream(table) << csv;
  const Answer answer = ask({"import", bench.run, table, "--arm", "mine", "--json"});
  REQUIRE_MESSAGE(answer.status == 0, answer.err);
  const Json claims = Json::parse(ask({"claims", bench.run, "--json"}).out);
  const Json& own = claims.back();
  CHECK(own.at("id") == "faster@mine");
  // The run is at its target from the start, and the import is still not there after its last step.
  CHECK(own.at("verdict") == "refuted");
  CHECK(own.at("points").at(0).at("signs").at("undecided") == 0);
}

TEST_CASE("import: tables and figures show the arm and mark it; another import takes its place") {
  const Imports bench;
  const std::string alone = ask({"export", bench.run}).out;
  REQUIRE(bench.import(whole_table()).status == 0);
  const std::string both = ask({"export", bench.run}).out;
  CHECK(both.starts_with(alone));
  CHECK(both.substr(alone.size()).starts_with("imported-mine,mine,0,20,done,"));
  REQUIRE(ask({"plot", bench.run}).status == 0);
  std::ifstream drawn(bench.folder.path() / "run" / "figures" / "loss.csv");
  const std::string csv(std::istreambuf_iterator<char>(drawn), {});
  CHECK(csv.find("\"frozen\"") != std::string::npos);
  CHECK(csv.find("\"mine (imported)\"") != std::string::npos);
  CHECK(csv.find("learned") == std::string::npos);
  const Json again = Json::parse(bench.import("seed,data.train_samples,test_loss_soft\n1,40,0.5\n").out);
  CHECK(again.at("replaced") == true);
  CHECK(again.at("missing") == 5);
  CHECK(ask({"export", bench.run}).out.find("imported-mine,mine,1,40,done,0.5") == std::string::npos);
  CHECK(ask({"status", bench.run}).status == 0);
  CHECK(ask({"verify", bench.run}).status == 0);
  CHECK(ask({"report", bench.run}).status == 0);
}

TEST_CASE("import: it belongs to its plan, which more seeds extend") {
  const Imports bench;
  REQUIRE(bench.import(whole_table()).status == 0);
  REQUIRE(ask({"run", bench.file, "--out", bench.run, "--seeds", "3"}).status == 0);
  CHECK(ask({"export", bench.run}).out.find("imported-mine,mine,3,20,missing") != std::string::npos);
  REQUIRE(ask({"run", bench.file, "--out", bench.run, "--set", "train.steps=8"}).status == 0);
  CHECK(ask({"export", bench.run}).out.find("mine") == std::string::npos);
}

TEST_CASE("import: a damaged file is found") {
  const Imports bench;
  REQUIRE(bench.import(whole_table()).status == 0);
  const Json status = Json::parse(ask({"status", bench.run, "--json"}).out);
  const std::string file =
      bench.run + "/plans/" + status.at("plan").get<std::string>() + "/imported/mine.json";
  std::ofstream(file, std::ios::app) << ' ';
  CHECK(ask({"claims", bench.run}).status == 2);
  CHECK(ask({"claims", bench.run}).err.find("import the arm again") != std::string::npos);
}

TEST_CASE(
    "import: an arm that lacks rows keeps no report waiting, and columns that are passed over are told") {
  const Imports bench;
  const Answer answer = bench.import("cell,arm,seed,data.train_samples,test_loss_soft\nid,theirs,0,20,1\n");
  REQUIRE_MESSAGE(answer.status == 0, answer.out);
  CHECK(answer.err.find("passed over of " + bench.table +
                        ": cell, arm; every row is one of the arm 'mine'") != std::string::npos);
  CHECK(Json::parse(answer.out).at("missing") == 5);
  CHECK(ask({"report", bench.run, "--follow"}).status == 0);
}

TEST_CASE("import: what is refused, with its place") {
  const Imports bench;
  const auto error = [&](const std::string& csv, const std::string& arm = "mine") {
    const Answer answer = bench.import(csv, arm);
    CHECK(answer.status == 2);
    const Json told = Json::parse(answer.out).at("error");
    return told.at("path").get<std::string>() + ": " + told.at("message").get<std::string>();
  };
  const std::string head = "seed,data.train_samples,test_loss_soft\n", at = bench.table;
  CHECK(error(whole_table(), "learned") ==
        "--arm: 'learned' is an arm of the scenario; needs a name of its own");
  CHECK(error(whole_table(), "../mine").starts_with("--arm: "));
  CHECK(error("seed,test_loss_soft\n0,1\n").starts_with(at + ": lacks the column 'data.train_samples'"));
  CHECK(error("seed,data.train_samples\n0,20\n") == at + ": has no column of a metric");
  CHECK(error("seed,data.train_samples,test_los_soft\n0,20,1\n").find("did you mean 'test_loss_soft'") !=
        std::string::npos);
  CHECK(error(head + "0,20,1\n3,20,1\n") == at + ":3: the plan has no seed 3 at data.train_samples = 20");
  CHECK(error(head + "0,30,1\n") == at + ":2: the plan has no seed 0 at data.train_samples = 30");
  CHECK(error(head + "0,20,1\n0,20.0,1\n")
            .ends_with(":3: seed 0 at data.train_samples = 20.0 stands there twice"));
  CHECK(error(head + "x,20,1\n") == at + ":2: seed is 'x', needs a whole number");
  CHECK(error(head + "0,20,many\n") == at + ":2: test_loss_soft is 'many', needs a number, or nothing");
  CHECK(error(head + "0.5,20,1\n") == at + ":2: seed is '0.5', needs a whole number");
  CHECK(error("\xff\xfes\0e\0").find("is UTF-16, needs UTF-8") != std::string::npos);
  CHECK(error("seed,data.train_samples,caf\xe9\n").find("is not UTF-8 (Latin-1?)") != std::string::npos);
  CHECK(error("seed,data.train_samples,test_loss_soft\r0,20,1\r").find("line ends of CR alone") !=
        std::string::npos);
  CHECK(error(head + "0,20,-1\n") ==
        at + ":2: test_loss_soft is '-1', needs a number of at least 0, or nothing");
  CHECK(error(head) == at + ": has no rows");
  CHECK(ask({"import", bench.run, bench.run, "--arm", "mine"}).status == 2);
  CHECK(bench.claims().size() == claiming().at("claims").size());
}

TEST_CASE("import: the files of pandas and of trackers") {
  const Imports bench;
  // An index without a name, seeds as real numbers, NaN for no value, infinity for a divergence, other
  // columns.
  std::ofstream(bench.table) << ",seed,data.train_samples,loss,mine,epoch,note\n0,0.0,20.0,0.5,2.5,10,a\n"
                                "1,1.0,20.0,NaN,,10,b\n2,2.0,20.0,inf,3,10,c\n";
  const std::vector<std::string> words = {"import", bench.run, bench.table, "--arm", "mine", "--json"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return ask(more);
  };
  const Answer refused = with({});
  CHECK(refused.status == 2);
  CHECK(refused.out.find("unknown metric 'loss'") != std::string::npos);
  CHECK(refused.out.find("also unknown: mine, epoch, note;") != std::string::npos);
  CHECK(with({"--map", "los=test_loss_soft"}).out.find("did you mean 'loss'?") != std::string::npos);
  CHECK(with({"--map", "loss"}).out.find("needs OLD=NEW") != std::string::npos);
  CHECK(with({"--map", "loss=mine"}).out.find("the table has 'mine', too") != std::string::npos);
  const Answer answer = with({"--map", "loss=test_loss_soft", "--positive", "mine", "--ignore-unknown"});
  REQUIRE_MESSAGE(answer.status == 0, answer.out);
  CHECK(answer.err.find("passed over: epoch, note") != std::string::npos);
  const Json rows = Json::parse(ask({"export", bench.run, "--json"}).out);
  std::map<std::string, std::size_t> column;
  for (std::size_t i = 0; i < rows.at("columns").size(); ++i) column[rows.at("columns")[i]] = i;
  std::vector<Json> mine;
  for (const Json& row : rows.at("rows"))
    if (row[column.at("arm")] == "mine" && row[column.at("data.train_samples")] == 20) mine.push_back(row);
  REQUIRE(mine.size() == 3);
  CHECK(mine[0][column.at("test_loss_soft")] == 0.5);
  CHECK(mine[0][column.at("mine")] == 2.5);
  CHECK(mine[1][column.at("test_loss_soft")].is_null());
  CHECK(mine[1][column.at("state")] == "done");
  CHECK(mine[2][column.at("state")] == "diverged");
  const Answer table = ask({"table", bench.run, "--metric", "mine"});
  CHECK(table.status == 0);
  CHECK(table.out.starts_with("mine, geometric mean over seeds"));
  CHECK(ask({"table", bench.run, "--metric", "mien"}).status == 2);
}

TEST_CASE("import: a swept value and a metric are numbers as C++ reads them") {
  Json scenario = tiny();
  scenario["sweep"] = {{"data.noise_std", {0.5, 1}}};
  const Bench bench(scenario);
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const std::string table = (bench.folder.path() / "mine.csv").string();
  std::ofstream(table) << "seed,data.noise_std,test_loss_soft\n0,.5,.3\n1,+.5,+.3\n0,1.,3.\n1,1e0,3\n";
  const Answer answer = ask({"import", bench.run, table, "--arm", "mine", "--json"});
  REQUIRE_MESSAGE(answer.status == 0, answer.out);
  CHECK(Json::parse(answer.out).at("missing") == 0);
  for (const char* value : {"0.5.", "+-0.5", "inf", "nan", ""}) {
    std::ofstream(table) << "seed,data.noise_std,test_loss_soft\n0," << value << ",1\n";
    CHECK(ask({"import", bench.run, table, "--arm", "mine"}).status == 2);
  }
  for (const char* value : {".5", "+0.5", "0.5", "5e-1"}) {
    const std::string at = std::string("data.noise_std=") + value;
    CHECK(
        ask({"sample", bench.file, "--out", (bench.folder.path() / "sample").string(), "--at", at}).status ==
        0);
    CHECK(ask({"table", bench.run, "--at", at}).status == 0);
  }
}

}  // namespace moelab::import_test
