/// Runs until a decision, compared with runs of a fixed number of seeds, and what their options refuse.

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "app/store/run_folder.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::decided_run_test {
namespace {

namespace fs = std::filesystem;

/// A claim of equal sides within nothing, which only the cap ends.
Json open_scenario() {
  Json scenario = tiny();
  scenario["train"]["steps"] = 40;  // enough for the sides to differ by chance alone
  scenario["train"]["lr"] = 0.1;
  scenario["claims"] = Json::parse(R"([
    {"id": "open", "left": {"arm": "learned", "metric": "test_nmse_soft"}, "op": "~", "tolerance": 1e-9,
     "right": {"arm": "frozen", "metric": "test_nmse_soft"}, "at": [40]}])");
  return scenario;
}

/// The bench's words for a verb, and further ones.
std::vector<std::string> words_of(const Bench& bench, const std::string& verb,
                                  const std::vector<std::string>& more) {
  std::vector<std::string> words = {verb, bench.file, "--out", bench.run, "--threads", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Of the bands of a figure's points.
std::vector<double> widths_of(const fs::path& csv) {
  std::vector<double> widths;
  std::ifstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    double x = 0, mean = 0, low = 0, high = 0;
    if (std::sscanf(line.c_str(), "%*[^,],%lf,%lf,%lf,%lf", &x, &mean, &low, &high) == 4)
      widths.push_back(high - low);
  }
  return widths;
}

DecidedSeeds decided_of(const Bench& bench) {
  return find_plan(fs::path(bench.run)).plan.head.decided.value();
}

}  // namespace

TEST_CASE("run --until-decided: its plan takes no number of seeds afterwards") {
  const Bench bench(open_scenario());
  REQUIRE(ask(words_of(bench, "run", {"--until-decided", "--max-seeds", "7"})).status == 0);
  const std::string plan = file_text(fs::path(bench.run) / "plan.json");
  const std::vector<std::vector<std::string>> numbers = {{"--set", "seeds.count=9"},
                                                         {"--set", R"(seeds={"root": 1, "count": 9})"},
                                                         {"--set", "seeds.count=9", "--until-decided"},
                                                         {"--seeds", "2..8"}};
  for (const std::vector<std::string>& more : numbers) {
    for (const char* verb : {"run", "slurm"}) {
      const Answer refused = ask(words_of(bench, verb, more));
      CHECK(refused.status == 2);
      CHECK(refused.err.find("the run's claims decide how many seeds it has") != std::string::npos);
      CHECK(refused.err.find(more[0] == "--set" ? "--set seeds.count: " : "--seeds: ") != std::string::npos);
    }
  }
  CHECK(file_text(fs::path(bench.run) / "plan.json") == plan);
}

TEST_CASE("run --until-decided: a file that asks for more seeds afterwards is refused") {
  const Bench bench(open_scenario());
  REQUIRE(ask(words_of(bench, "run", {"--until-decided", "--max-seeds", "7"})).status == 0);
  const std::string plan = file_text(fs::path(bench.run) / "plan.json");
  Json more = open_scenario();
  more["seeds"]["count"] = 9;
  std::ofstream(bench.file) << more.dump();
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{}, {"--until-decided", "--max-seeds", "12"}}) {
    const Answer refused = ask(words_of(bench, "run", options));
    CHECK(refused.status == 2);
    CHECK(refused.err.find("seeds.count: the run's claims decide how many seeds it has") !=
          std::string::npos);
  }
  CHECK(file_text(fs::path(bench.run) / "plan.json") == plan);
}

TEST_CASE("figures of a decided run have the intervals of its sequences") {
  Json scenario = open_scenario();
  scenario["figures"] = Json::parse(R"([{"id": "loss", "x": "step", "y": "test_nmse_soft", "series": "arm",
                       "where": {"data.train_samples": 40}}])");
  const Bench bench(scenario);
  const fs::path csv = fs::path(bench.run) / "figures" / "loss.csv", script = csv.parent_path() / "loss.gp";
  // Wider, of equal seeds: a sequence holds at every number of them.
  REQUIRE(ask(words_of(bench, "run", {"--set", "seeds.count=7"})).status == 0);
  const std::vector<double> fixed = widths_of(csv);
  REQUIRE(ask(words_of(bench, "run", {"--until-decided", "--max-seeds", "7"})).status == 0);
  const std::vector<double> sequential = widths_of(csv);
  REQUIRE(fixed.size() == sequential.size());
  REQUIRE(fixed.size() > 0);
  for (std::size_t i = 0; i < fixed.size(); ++i) CHECK(sequential[i] > fixed[i]);
  CHECK(file_text(script).find("Up to 7 seeds: geometric mean") != std::string::npos);
}

TEST_CASE("run --until-decided: the command that set where looks begin goes on with them") {
  const Bench bench(open_scenario());
  const std::vector<std::string> words =
      words_of(bench, "run", {"--set", "seeds.count=3", "--until-decided", "--max-seeds", "7"});
  REQUIRE(ask(words).status == 0);
  const std::string plan = file_text(fs::path(bench.run) / "plan.json");
  CHECK(decided_of(bench) == DecidedSeeds{3, {3, 7, 3, 7}});
  REQUIRE(ask(words).status == 0);
  CHECK(file_text(fs::path(bench.run) / "plan.json") == plan);
}

TEST_CASE("run --until-decided: looks begin at the seeds of the plan, which they extend") {
  for (const char* verb : {"run", "slurm"}) {
    const Bench bench(open_scenario());
    REQUIRE(ask(words_of(bench, "run", {"--set", "seeds.count=4"})).status == 0);
    REQUIRE(ask(words_of(bench, verb, {"--until-decided", "--max-seeds", "9"})).status == 0);
    CHECK(plan_ids(bench.run).size() == 1);
    const Answer run = ask(words_of(bench, "run", {"--until-decided", "--max-seeds", "9"}));
    REQUIRE(run.status == 0);
    CHECK(run.err.find("showed plan") == std::string::npos);
    CHECK(plan_ids(bench.run).size() == 1);
    CHECK(decided_of(bench) == DecidedSeeds{4, {4, 9, 4, 9}});
  }
}

TEST_CASE("run and slurm refuse what --until-decided cannot do before they write") {
  const Bench bench(open_scenario()), claimless;
  for (const char* verb : {"run", "slurm"}) {
    const Answer none = ask(words_of(claimless, verb, {"--until-decided"}));
    CHECK(none.status == 2);
    CHECK(none.err.find("--until-decided: the scenario has no claims to decide") != std::string::npos);
    for (const char* option : {"--max-seeds", "--hours"}) {
      const Answer alone = ask(words_of(bench, verb, {option, "7"}));
      CHECK(alone.status == 2);
      CHECK(alone.err.find(std::string(option) + ": given without --until-decided") != std::string::npos);
    }
    for (const std::string hours : {"0", "-1", "nan", "inf", "1e7", "abc"}) {
      const Answer refused = ask(words_of(bench, verb, {"--until-decided", "--hours", hours}));
      CHECK(refused.status == 2);
      CHECK(refused.err.find("--hours: got '" + hours + "', needs hours: a number above 0") !=
            std::string::npos);
    }
  }
  CHECK_FALSE(fs::exists(bench.run));
  CHECK_FALSE(fs::exists(claimless.run));
  REQUIRE(ask(words_of(bench, "slurm", {"--until-decided"})).status == 0);
  CHECK(file_text(fs::path(bench.run) / "slurm.sh").find("--until-decided --max-seeds 100 --leases") !=
        std::string::npos);
}

TEST_CASE("plan says between which numbers the seeds of a decided run lie") {
  const Bench bench(open_scenario());
  REQUIRE(ask(words_of(bench, "run", {"--until-decided", "--max-seeds", "7"})).status == 0);
  CHECK(ask(words_of(bench, "plan", {})).out.find("2 to 7, by what claims needed") != std::string::npos);
  const Json plan = Json::parse(ask(words_of(bench, "plan", {"--json"})).out);
  CHECK(plan.at("seeds") == 7);
  CHECK(plan.at("fewest_seeds") == 2);
  const Bench fixed;
  CHECK_FALSE(Json::parse(ask(words_of(fixed, "plan", {"--json"})).out).contains("fewest_seeds"));
}

TEST_CASE(
    "run --until-decided: a cap below the pairs that a verdict needs is told, one below the seeds refused") {
  const Bench bench(open_scenario());
  for (const char* verb : {"run", "slurm"}) {
    const Answer refused = ask(words_of(bench, verb, {"--until-decided", "--max-seeds", "1"}));
    CHECK(refused.status == 2);
    CHECK(refused.err.find("--max-seeds: got 1, needs at least the 2 seeds that the run begins with") !=
          std::string::npos);
  }
  CHECK_FALSE(fs::exists(bench.run));
  const Answer few = ask(words_of(bench, "run", {"--until-decided", "--max-seeds", "5"}));
  CHECK(few.status == 0);
  CHECK(few.err.find("--max-seeds 5 lies below the 6 pairs that a verdict needs; inconclusive: open") !=
        std::string::npos);
  CHECK(ask(words_of(bench, "run", {"--until-decided", "--max-seeds", "7"})).err.find("lies below") ==
        std::string::npos);
}

TEST_CASE("a decided run prints no interval that excludes nothing, and none of too few pairs") {
  const Bench bench(open_scenario());
  REQUIRE(
      ask(words_of(bench, "run", {"--until-decided", "--max-seeds", "3", "--set", "seeds.count=3"})).status ==
      0);
  for (const std::string metric : {"test_nmse_soft", "cluster_entropy"}) {
    const std::string table = ask({"table", bench.run, "--metric", metric}).out;
    CHECK(table.find(" [-]") != std::string::npos);
    CHECK(table.find("inf") == std::string::npos);
    const Json rows = Json::parse(ask({"table", bench.run, "--metric", metric, "--json"}).out);
    for (const Json& entry : rows.at(0).at("entries")) CHECK(entry.at("interval").is_null());
    const std::string compared = ask({"compare", bench.run, bench.run, "--metric", metric}).out;
    CHECK(compared.find("inf") == std::string::npos);
    const Json answer = Json::parse(ask({"compare", bench.run, bench.run, "--metric", metric, "--json"}).out);
    CHECK(answer.at("rows")[0].at("values")[0].at("interval").is_null());
  }
  CHECK(ask(words_of(bench, "run", {})).out.find("inf") == std::string::npos);
  const Json point = Json::parse(ask({"claims", bench.run, "--json"}).out).at(0).at("points").at(0);
  CHECK(point.at("pairs") == 3);
  CHECK(point.at("estimate").is_number());
  CHECK(point.at("interval").is_null());
  CHECK(ask({"claims", bench.run}).out.find("3 of the 6 pairs that a verdict needs") != std::string::npos);
}

}  // namespace moelab::decided_run_test
