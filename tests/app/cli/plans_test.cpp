/// Several plans in one run directory, and what verbs do about damage.

#include <doctest/doctest.h>

#include <algorithm>

#include "app/store/run_folder.h"
#include "app/store/store.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::plans_test {
namespace {

namespace fs = std::filesystem;

Json claiming() {
  Json scenario = tiny();
  scenario["claims"] =
      Json::parse(R"([{"id": "learned_better", "left": {"arm": "learned", "metric": "test_loss_soft"},
    "op": "<", "right": {"arm": "frozen", "metric": "test_loss_soft"}}])");
  return scenario;
}

/// One folder with two plans, of 4 and of 8 steps; the second was run last.
struct TwoPlans : Bench {
  std::string four, eight, table_of_four, table_of_eight;
  TwoPlans() : Bench(claiming()) {
    REQUIRE(ask({"run", file, "--out", run}).status == 0);
    four = shown_plan(run);
    table_of_four = ask({"export", run}).out;
    const Answer second = ask({"run", file, "--out", run, "--set", "train.steps=8"});
    REQUIRE(second.status == 0);
    eight = shown_plan(run);
    CHECK(second.err.find("showed plan " + four + ", and shows " + eight) != std::string::npos);
    table_of_eight = ask({"export", run}).out;
    REQUIRE(four != eight);
  }
};

}  // namespace

TEST_CASE("plans: verbs answer about the plan last run, or the one asked for, and say which") {
  const TwoPlans bench;
  CHECK(bench.table_of_four != bench.table_of_eight);
  const Answer last = ask({"export", bench.run});
  CHECK(last.out == bench.table_of_eight);
  CHECK(last.err.find("note: plan " + bench.eight + ", the last run of the 2 in ") != std::string::npos);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"export", bench.run, "--plan", bench.four},
        {"export", bench.run + "@" + bench.four.substr(0, 5)}}) {
    const Answer first = ask(words);
    CHECK(first.out == bench.table_of_four);
    CHECK(first.err.find("note: plan " + bench.four + " of the 2 in ") != std::string::npos);
  }
  // One directory alone says nothing.
  const Bench other;
  REQUIRE(ask({"run", other.file, "--out", other.run}).status == 0);
  CHECK(ask({"export", other.run}).err.empty());

  const Answer unknown = ask({"status", bench.run, "--plan", "no-such-plan"});
  CHECK(unknown.status == 2);
  CHECK(unknown.err.find("--plan: unknown plan 'no-such-plan'; allowed: ") != std::string::npos);
}

TEST_CASE("plans: a run of other settings keeps both, with the outputs of each") {
  const TwoPlans bench;
  const fs::path run = bench.run, aside = run / "plans" / bench.four;
  const std::string claims_of_eight = file_text(run / "claims.json");
  CHECK(file_text(aside / "claims.json") != claims_of_eight);
  fs::remove_all(aside / "claims.json");
  CHECK(ask({"claims", bench.run, "--plan", bench.four}).out ==
        ask({"claims", bench.run + "@" + bench.four}).out);
  CHECK(fs::exists(aside / "claims.json"));
  CHECK(file_text(run / "claims.json") == claims_of_eight);
  REQUIRE(ask({"report", bench.run, "--plan", bench.four}).status == 0);
  CHECK(fs::exists(aside / "report.html"));
  CHECK_FALSE(fs::exists(run / "report.html"));
  // Back again: nothing is run, and the tables are what they were.
  const std::size_t records = read_records(run).size();
  const Answer again = ask({"run", bench.file, "--out", bench.run, "--json"});
  CHECK(Json::parse(again.out).at("plan") == bench.four);
  CHECK(read_records(run).size() == records);
  CHECK(ask({"export", bench.run}).out == bench.table_of_four);
  CHECK(ask({"export", bench.run, "--plan", bench.eight}).out == bench.table_of_eight);
}

TEST_CASE("plans: verify misses the plans that were started, and no other") {
  const TwoPlans bench;
  const fs::path plans = fs::path(bench.run) / "plans";
  fs::create_directory(plans / "0123456789ab");  // of a start that was killed before its plan was there
  CHECK(ask({"verify", bench.run}).status == 0);
  fs::remove(plans / bench.four / "plan.json");
  const Answer missing = ask({"verify", bench.run});
  CHECK(missing.status == 1);
  CHECK(missing.out.find(bench.four + "/plan.json: missing") != std::string::npos);
}

TEST_CASE("plans: status lists them and where they differ") {
  const TwoPlans bench;
  const Json status = Json::parse(ask({"status", bench.run, "--json"}).out);
  CHECK(status.at("plan") == bench.eight);
  REQUIRE(status.at("plans").size() == 2);
  for (const Json& plan : status.at("plans")) {
    CHECK(plan.at("last_run") == (is_text(plan.at("id"), bench.eight)));
    CHECK(plan.at("recorded") == 8);
    CHECK(plan.at("seeds") == 2);
    CHECK(plan.at("differs_in") ==
          (is_text(plan.at("id"), bench.eight) ? Json::array() : Json::array({"train.steps"})));
  }
  CHECK(ask({"status", bench.run}).out.find("train.steps") != std::string::npos);
}

TEST_CASE("plans: compare pairs two plans over shared seeds") {
  const TwoPlans bench;
  const auto value_of = [&](const std::string& plan, const Json& at) {
    const Json table = Json::parse(ask({"export", bench.run, "--plan", plan, "--json"}).out);
    const auto column = std::find(table.at("columns").begin(), table.at("columns").end(), "test_loss_soft");
    return table
        .at("rows")[at.get<std::size_t>()][static_cast<std::size_t>(column - table.at("columns").begin())]
        .get<double>();
  };
  const Json answer = Json::parse(ask({"compare", bench.run + "@" + bench.four, bench.run + "@" + bench.eight,
                                       "--metric", "test_loss_soft", "--json"})
                                      .out);
  REQUIRE(answer.at("differences").size() == 4);
  const Json& first = answer.at("differences")[0];
  CHECK(first.at("at") == answer.at("rows")[0].at("at"));
  REQUIRE(first.at("values").size() == 1);
  CHECK(first.at("values")[0].at("count") == 2);
  double sum = 0;
  for (const int seed : {0, 1}) sum += value_of(bench.eight, seed) - value_of(bench.four, seed);
  CHECK(first.at("values")[0].at("mean").get<double>() == doctest::Approx(sum / 2).epsilon(1e-12));
  // Seeds of other roots are other problems.
  REQUIRE(ask({"run", bench.file, "--out", bench.run, "--set", "seeds.root=2"}).status == 0);
  CHECK(Json::parse(ask({"compare", bench.run + "@" + bench.four, bench.run, "--json"}).out)
            .at("differences")
            .empty());
}

TEST_CASE("plans: lost arrays are written anew, and their records stay") {
  Json scenario = tiny();
  scenario["save"] = {"routing"};
  const Bench bench(scenario);
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const std::string cell = Json::parse(ask({"export", bench.run, "--json"}).out).at("rows")[0][0];
  const fs::path array = fs::path(bench.run) / "cells" / cell / "test_probs.npy";
  const std::string bytes = file_text(array), table = ask({"export", bench.run}).out;
  std::string changed = bytes;
  changed.back() ^= 1;
  for (const bool is_gone : {true, false}) {
    fs::remove(array);
    if (!is_gone) std::ofstream(array, std::ios::binary) << changed;
    CHECK(ask({"verify", bench.run}).status == 1);
    const Answer again = ask({"run", bench.file, "--out", bench.run});
    CHECK(again.status == 0);
    CHECK(again.err.find("cells whose arrays are lost are run again: 1") != std::string::npos);
    CHECK(file_text(array) == bytes);
    CHECK(ask({"verify", bench.run}).status == 0);
    CHECK(ask({"export", bench.run}).out == table);
  }
}

TEST_CASE("plans: a figure refuses arrays that are not those recorded") {
  Json scenario = tiny();
  scenario["save"] = {"routing", "weights"};
  scenario["figures"] = Json::parse(R"([{"id": "map", "kind": "cluster_map"}])");
  const Bench bench(scenario);
  for (const char* share : {"0/2", "1/2"})
    REQUIRE(ask({"run", bench.file, "--out", bench.run, "--share", share}).status == 0);
  for (const auto& folder : fs::directory_iterator(fs::path(bench.run) / "cells")) {
    const fs::path array = folder.path() / "test_probs.npy";
    std::string bytes = file_text(array);
    bytes.back() ^= 1;
    std::ofstream(array, std::ios::binary) << bytes;
  }
  for (const char* verb : {"plot", "report"}) {
    const Answer refused = ask({verb, bench.run});
    CHECK(refused.status == 2);
    CHECK(refused.err.find("test_probs.npy: other bytes than were recorded; ") != std::string::npos);
  }
}

TEST_CASE("plans: of a cell recorded twice with other numbers one is kept, the other set aside") {
  const Bench bench;
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const fs::path journal = fs::directory_iterator(fs::path(bench.run) / "journal")->path();
  const fs::path other = journal.parent_path() / "other.jsonl";
  const std::string before = file_text(journal), table = ask({"export", bench.run}).out;
  Record record = parse_record_line(before.substr(0, before.find('\n')));
  record.metrics["test_loss_soft"] *= 1 + 1e-15;
  record.finished_at = "2000-01-01T00:00:00Z";
  const std::string wrong = record_line(record) + "\n";
  const auto conflict = [&] {
    std::ofstream(journal, std::ios::binary) << before;
    std::ofstream(other, std::ios::binary) << wrong;
    fs::remove(journal.string() + ".aside");
    fs::remove(other.string() + ".aside");
  };
  conflict();
  const Answer refused = ask({"export", bench.run});
  CHECK(refused.status == 2);
  for (const char* part :
       {"has other numbers here than in ", "test_loss_soft: ", "vector level ", "--keep ", "other.jsonl"})
    CHECK(refused.err.find(part) != std::string::npos);

  for (const std::string& kept : {journal.filename().string(), std::string("newest")}) {
    conflict();
    const Answer answer = ask({"verify", bench.run, "--keep", kept});
    CHECK_MESSAGE(answer.status == 0, answer.out, answer.err);
    CHECK(file_text(other).empty());
    CHECK(file_text(other.string() + ".aside") == wrong);
    CHECK(file_text(journal) == before);
    CHECK(ask({"export", bench.run}).out == table);
  }
  conflict();
  CHECK(ask({"verify", bench.run, "--keep", "oth"}).status == 0);
  CHECK(file_text(other) == wrong);
  CHECK(file_text(journal.string() + ".aside") + file_text(journal) == before);
  CHECK(ask({"export", bench.run}).out != table);

  CHECK(ask({"verify", bench.run, "--keep", "no-such"}).err.find("--keep: unknown journal 'no-such'") !=
        std::string::npos);
  conflict();
  {
    std::ofstream(other, std::ios::binary) << "";
    StoreWriter living(bench.run);
    const fs::path written = journal.parent_path() / living.journal_name();
    std::ofstream(written, std::ios::binary) << wrong;
    const Answer alive = ask({"verify", bench.run, "--keep", journal.filename().string()});
    CHECK(alive.status == 2);
    CHECK(alive.err.find("is being written by a process that lives") != std::string::npos);
    CHECK(file_text(written) == wrong);
  }
  CHECK(ask({"verify", bench.run, "--keep", journal.filename().string()}).status == 0);
}

TEST_CASE("plans: completion offers them") {
  const TwoPlans bench;
  const std::string offered = ask({"completion", "bash", "--", "export", bench.run, "--plan", ""}).out;
  CHECK(offered.find(bench.four + "\n") != std::string::npos);
  CHECK(offered.find(bench.eight + "\n") != std::string::npos);
}

TEST_CASE("plans: a plan that was named is not said to be one of others") {
  const TwoPlans bench;
  const std::string four = bench.run + "@" + bench.four, eight = bench.run + "@" + bench.eight;
  CHECK(ask({"compare", four, eight}).err.find("asks about another") == std::string::npos);
  CHECK(ask({"compare", bench.run, four}).err.find("asks about another") != std::string::npos);
}

TEST_CASE("plans: no run goes into a folder that would hide a plan of another") {
  const TwoPlans bench;
  const std::string hiding = bench.run + "@" + bench.four.substr(0, 5);
  for (const char* verb : {"run", "plan", "slurm", "tune"}) {
    std::vector<std::string> words = {verb, bench.file, "--out", hiding};
    const Answer refused = ask(words);
    CHECK(refused.status == 2);
    if (verb != std::string("tune"))  // whose scenario has nothing to tune, which is told first
      CHECK(refused.err.find("--out: got '" + hiding + "', which names a plan of the run folder") !=
            std::string::npos);
    CHECK_FALSE(fs::exists(hiding));
  }
  // Beside a folder that is no run the name is as good as another.
  const Bench other;
  const std::string plain = (other.folder.path() / "plain").string();
  fs::create_directory(plain);
  CHECK(ask({"run", other.file, "--out", plain + "@home"}).status == 0);
}

}  // namespace moelab::plans_test
