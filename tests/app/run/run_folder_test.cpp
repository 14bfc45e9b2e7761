#include "app/store/run_folder.h"

#include <doctest/doctest.h>

#include "app/run/results.h"
#include "app/run/session.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::run_folder_test {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

std::string refusal(const RunAddress& address) {
  try {
    find_plan(address);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

Scenario titled(const std::string& title) {
  Scenario scenario = small_scenario();
  scenario.document["title"] = scenario.title = title;
  return scenario;
}

CellResult run_quickly(const Cell& cell, const CellProgress&) {
  return pretend_run(cell);
}

/// A run of a scenario that can be expanded again.
Scenario run_tiny(const fs::path& directory) {
  const Scenario scenario = expand_scenario(tiny(), "", {});
  run_session(scenario, {.directory = directory}, run_quickly);
  return scenario;
}

}  // namespace

TEST_CASE("run folder: which folders a run may take") {
  const TemporaryFolder folder;
  CHECK_NOTHROW(check_run_directory(folder.path() / "new", "small"));
  CHECK_NOTHROW(check_run_directory(folder.path(), "small"));
  write_text(folder.path() / ".plan.json.17.tmp", "left by a killed process");
  CHECK_NOTHROW(check_run_directory(folder.path(), "small"));
  write_text(folder.path() / "thesis.tex", "precious");
  CHECK_THROWS_AS(check_run_directory(folder.path(), "small"), UserError);
  CHECK_THROWS_AS(check_run_directory(folder.path() / "thesis.tex", "small"), UserError);
  keep_plan(folder.path(), small_scenario("other"));
  CHECK_THROWS_AS(check_run_directory(folder.path(), "small"), UserError);
  CHECK_NOTHROW(check_run_directory(folder.path(), "other"));
}

TEST_CASE("run folder: one that another process has begun is a run, and a strange plan.json is not ours") {
  const TemporaryFolder folder;
  for (const char* own : {"journal", "sessions", "cells", "plans"}) {
    fs::create_directories(folder.path() / own);
    CHECK_NOTHROW(check_run_directory(folder.path(), "small"));
  }
  write_text(folder.path() / "claims.json", "[]");
  CHECK_NOTHROW(check_run_directory(folder.path(), "small"));
  write_text(folder.path() / "plan.json", "damaged");
  CHECK_NOTHROW(check_run_directory(folder.path(), "small"));
  write_text(folder.path() / "thesis.tex", "precious");
  CHECK_THROWS_AS(check_run_directory(folder.path(), "small"), UserError);

  const TemporaryFolder strange;
  write_text(strange.path() / "plan.json", R"({"holidays": "in July"})");
  CHECK_THROWS_AS(check_run_directory(strange.path(), "small"), UserError);
  const TemporaryFolder drawings;
  fs::create_directories(drawings.path() / "figures");
  CHECK_THROWS_AS(check_run_directory(drawings.path(), "small"), UserError);
}

TEST_CASE("run folder: plans stand side by side, and the last one is shown") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const KeptPlan first = keep_plan(run, titled("first"));
  CHECK(first.before.empty());
  const KeptPlan second = keep_plan(run, titled("second"));
  CHECK(second.before == first.id);
  CHECK(second.id != first.id);
  CHECK(shown_plan(run) == second.id);
  CHECK(plan_ids(run).size() == 2);
  CHECK(find_plan(run).plan.head.title == "second");
  CHECK(find_plan(run).outputs.empty());
  const FoundPlan found = find_plan({run, first.id.substr(0, 6)});
  CHECK(found.plan.head.title == "first");
  CHECK(found.outputs == fs::path("plans") / first.id);
  REQUIRE(found.notes.size() == 1);
  CHECK(found.notes[0].find("plan " + first.id + " of the 2 in ") != std::string::npos);
  CHECK(find_plan(fs::path(run.string() + "@" + first.id)).plan.id == first.id);
  const std::string begun = run.string() + "@" + first.id.substr(0, 3);
  CHECK(RunAddress(begun, first.id).plan() == first.id);
  CHECK(RunAddress(begun, first.id.substr(0, 1)).plan() == first.id.substr(0, 3));
  CHECK_THROWS_AS(RunAddress(begun, "x"), UserError);
  CHECK(refusal({run, "zz"}).find("--plan: unknown plan 'zz'; allowed: ") != std::string::npos);
  CHECK(refusal({run, first.id + "0"}).find("did you mean '" + first.id + "'?") != std::string::npos);
  // A folder of that name comes first.
  const fs::path literal = run.string() + "@" + first.id;
  keep_plan(literal, titled("literal"));
  CHECK(find_plan(literal).plan.head.title == "literal");
}

TEST_CASE("run folder: more seeds extend a plan; fewer beside them are a plan of their own") {
  const TemporaryFolder folder;
  Scenario fewer = small_scenario();
  std::erase_if(fewer.cells, [](const Cell& cell) { return cell.seed > 0; });
  const std::string id = keep_plan(folder.path(), fewer).id;
  CHECK(keep_plan(folder.path(), small_scenario()).id == id);
  CHECK(seed_count(find_plan(folder.path()).plan.cells) == 2);
  const KeptPlan own = keep_plan(folder.path(), fewer);
  CHECK(own.id != id);
  CHECK(own.id == plan_id_in(folder.path(), fewer));
  CHECK(seed_count(find_plan(folder.path()).plan.cells) == 1);
  CHECK(seed_count(plan_with_id(folder.path(), id)->cells) == 2);
}

TEST_CASE("run folder: a decided plan takes the place of a fixed one, and stays") {
  const TemporaryFolder folder;
  const std::string id = keep_plan(folder.path(), small_scenario()).id;
  Scenario decided = small_scenario();
  std::erase_if(decided.cells, [](const Cell& cell) { return cell.seed > 0; });
  decided.decided = DecidedSeeds{1, {1, 1, 1, 1}};
  CHECK(keep_plan(folder.path(), decided).id == id);  // of a process that had not seen the fixed one
  const std::string text = file_text(folder.path() / "plan.json");
  CHECK(find_plan(folder.path()).plan.head.decided == decided.decided);
  CHECK(keep_plan(folder.path(), small_scenario()).id == id);
  CHECK(file_text(folder.path() / "plan.json") == text);
  CHECK(file_text(folder.path() / "plans" / id / "plan.json") == text);
  CHECK(plan_ids(folder.path()).size() == 1);
}

TEST_CASE("run folder: what it showed of a plan moves with it, and nothing else") {
  const TemporaryFolder folder;
  Scenario scenario = titled("first");
  scenario.written_figures = Json::parse(R"([{"id": "loss", "x": "step", "y": "train_loss"}])");
  scenario.read_document();
  const std::string first = keep_plan(folder.path(), scenario).id;
  for (const char* file : {"claims.json", "figures/loss.svg", "figures/loss.tex", "figures/claims.pdf",
                           "figures/mine.svg", "notes.txt"})
    write_text(folder.path() / file, file);
  keep_plan(folder.path(), titled("second"));
  const fs::path aside = folder.path() / "plans" / first;
  CHECK(file_text(aside / "claims.json") == "claims.json");
  for (const char* moved : {"figures/loss.svg", "figures/loss.tex", "figures/claims.pdf"}) {
    CHECK(file_text(aside / moved) == moved);
    CHECK_FALSE(fs::exists(folder.path() / moved));
  }
  CHECK(fs::exists(folder.path() / "figures/mine.svg"));
  CHECK(fs::exists(folder.path() / "notes.txt"));
  keep_plan(folder.path(), scenario);
  CHECK(file_text(folder.path() / "figures/loss.svg") == "figures/loss.svg");
  CHECK_FALSE(fs::exists(aside / "figures/loss.svg"));
}

TEST_CASE("run folder: a lost or damaged plan comes from its copy, then from the sessions") {
  const TemporaryFolder folder;
  const Scenario scenario = run_tiny(folder.path());
  const std::string text = file_text(folder.path() / "plan.json");
  const std::string id = shown_plan(folder.path());
  const auto read_again = [&](const char* source) {
    const FoundPlan found = find_plan(folder.path());
    CHECK(found.plan.id == id);
    CHECK(found.plan.cells.size() == scenario.cells.size());
    REQUIRE(found.notes.size() == 1);
    CHECK(found.notes[0].find(source) != std::string::npos);
    CHECK(load_results(folder.path()).table.rows[0].state == "done");
  };
  const auto ends_anew = [&] {
    run_tiny(folder.path());
    CHECK(file_text(folder.path() / "plan.json") == text);
    CHECK(file_text(folder.path() / "plans" / id / "plan.json") == text);
    CHECK(find_plan(folder.path()).notes.empty());
  };
  std::string damaged = text;
  damaged[text.size() / 2] ^= 1;
  write_text(folder.path() / "plan.json", damaged);
  read_again("plan.json is damaged; read from its copy");
  ends_anew();
  fs::remove(folder.path() / "plan.json");
  read_again("plan.json is missing; read from its copy");
  fs::remove_all(folder.path() / "plans");
  read_again("plan.json is missing; read from the scenario in sessions/");
  write_text(folder.path() / "plan.json", damaged);
  read_again("plan.json is damaged; read from the scenario in sessions/");
  ends_anew();
  write_text(folder.path() / "plan.json", damaged);
  fs::remove_all(folder.path() / "plans");
  fs::remove_all(folder.path() / "sessions");
  CHECK(refusal(folder.path()).find("damaged: ") != std::string::npos);
  ends_anew();
}

}  // namespace moelab::run_folder_test
