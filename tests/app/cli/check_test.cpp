#include "app/cli/check.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "app/cli/documents.h"
#include "app/scenario/json.h"
#include "sim/base/error.h"
#include "tests/app/cli/answer.h"
#include "tests/app/run/test_scenario.h"
#include "tests/temporary_folder.h"

namespace moelab::check_test {
namespace {

/// A check that measures a random number below 1 and predicts at most `limit`.
Check example(const std::string& id, double limit, CheckVerdict expected, bool met = true) {
  return {id, "A source, Lemma 1", "a statement", expected, [=](const CheckEffort& effort) {
            Engine engine = check_stream(effort, id, 0);
            CheckFinding finding;
            finding.hypotheses = {{"a hypothesis", 3, met}};
            finding.relation = Relation::at_most;
            finding.predicted = limit;
            finding.measured = draw_uniform(engine);
            finding.error_origin = "an origin";
            finding.details = {{"seeds", effort.seeds}};
            return finding;
          }};
}

std::vector<Check> examples() {
  return {example("alpha.one", 1, CheckVerdict::holds), example("alpha.one_more", -1, CheckVerdict::fails),
          example("beta.two.as_printed", -1, CheckVerdict::fails),
          example("beta.two.corrected", 1, CheckVerdict::holds)};
}

std::vector<std::string> ids(const std::vector<const Check*>& chosen) {
  std::vector<std::string> found;
  for (const Check* check : chosen) found.push_back(check->id);
  return found;
}

}  // namespace

TEST_CASE("check: names choose by whole parts, in the order of the table, each once") {
  const std::vector<Check> table = examples();
  using Ids = std::vector<std::string>;
  CHECK(ids(chosen_checks(table, {})).size() == 4);
  CHECK(ids(chosen_checks(table, {"alpha.one"})) == Ids{"alpha.one"});
  CHECK(ids(chosen_checks(table, {"beta", "alpha.one", "beta.two"})) ==
        Ids{"alpha.one", "beta.two.as_printed", "beta.two.corrected"});
  CHECK_THROWS_AS(chosen_checks(table, {"alpha.on"}), UserError);
  CHECK_THROWS_AS(chosen_checks(table, {""}), UserError);
  CHECK(ids(chosen_checks(table, {"two"})) == Ids{"beta.two.as_printed", "beta.two.corrected"});
  CHECK(ids(chosen_checks(table, {"one"})) == Ids{"alpha.one"});
  std::vector<Check> more = examples();
  more.push_back(example("gamma.two", 1, CheckVerdict::holds));
  CHECK_THROWS_WITH_AS(chosen_checks(more, {"two"}), doctest::Contains("beta.two, gamma.two"), UserError);
  try {
    chosen_checks(table, {"alpha", "beta.tow"});
    FAIL("accepted");
  } catch (const UserError& error) {
    CHECK(error.path() == "ID");
    CHECK(error.message().find("did you mean 'beta.two'") != std::string::npos);
    CHECK(error.message().ends_with("shows all 4 checks. Allowed: alpha, beta"));
  }
  CHECK_THROWS_WITH_AS(chosen_checks(table, {"tow"}), doctest::Contains("did you mean 'two'?"), UserError);
}

TEST_CASE("check: the exit status is 1 when a verdict differs, in whichever direction") {
  std::vector<Check> table = examples();
  CheckOptions options;
  CHECK(caught([&] { return answer_checks(table, options); }).status == 0);
  table.push_back(example("gamma.wrong", -1, CheckVerdict::holds));
  const Answer wrong = caught([&] { return answer_checks(table, options); });
  CHECK(wrong.status == 1);
  CHECK(wrong.out.find("5 checks, 1 not as expected") != std::string::npos);
  CHECK(wrong.out.find("\ngamma.wrong: fails, NOT AS EXPECTED (holds)\n  a statement (A source, Lemma 1)\n"
                       "  measured 0.") != std::string::npos);
  CHECK(wrong.out.find(", must be at most -1 (an origin)\n") != std::string::npos);
  table.back() = example("gamma.surprise", 1, CheckVerdict::fails);
  CHECK(caught([&] { return answer_checks(table, options); }).status == 1);
  options.ids = {"alpha"};
  CHECK(caught([&] { return answer_checks(table, options); }).status == 0);
}

TEST_CASE("check: hypotheses that are not met are told with what was found") {
  const std::vector<Check> table = {example("alpha.broken", 1, CheckVerdict::hypotheses_not_met, false)};
  const Answer answer = caught([&] { return answer_checks(table, {}); });
  CHECK(answer.status == 0);
  CHECK(answer.out.find("not met: a hypothesis; found 3") != std::string::npos);
  CHECK(answer.out.find("seeds: 1") != std::string::npos);
}

TEST_CASE("check: a result says what was measured, and what it must be within which bound") {
  std::vector<Check> table = {example("alpha.one", 1, CheckVerdict::holds)};
  const auto run = table[0].run;
  table[0].run = [run](const CheckEffort& effort) {
    CheckFinding finding = run(effort);
    finding.measured = 1.25;
    finding.error_bound = 0.5;
    return finding;
  };
  std::ostringstream text;
  std::streambuf* const before = std::cout.rdbuf(text.rdbuf());
  const int status = answer_checks(table, {});
  std::cout.rdbuf(before);
  CHECK(status == 0);
  CHECK(
      text.str().starts_with("alpha.one: holds\n  a statement (A source, Lemma 1)\n"
                             "  measured 1.25, must be at most 1, give or take 0.5 (an origin)\n"));
}

TEST_CASE("check: every statement can be read alone") {
  for (const Check& check : checks()) {
    CAPTURE(check.id);
    for (const char* begin : {"the same", "there, ", "they ", "it is ", "and "})
      CHECK_FALSE(check.statement.starts_with(begin));
  }
}

TEST_CASE("check: an explanation has the hypotheses, the bound and what would refute the statement") {
  const std::vector<Check> table = {example("alpha.one", 1, CheckVerdict::holds)};
  CheckOptions options;
  options.explains = true;
  const Answer answer = caught([&] { return answer_checks(table, options); });
  for (const char* text : {"a hypothesis: met, found 3\n", "error bound 0: an origin\n",
                           "refuted by: a measurement above 1\n", "seeds: 1\n"})
    CHECK_MESSAGE(answer.out.find(text) != std::string::npos, text);
  options.json = true;
  const Json json = Json::parse(caught([&] { return answer_checks(table, options); }).out);
  CHECK(json[0].at("refuted_by") == "a measurement above 1");
}

TEST_CASE("check: JSON holds every field, and is the same whatever the threads") {
  const std::vector<Check> table = examples();
  CheckOptions options;
  options.json = true;
  options.seeds = 2;
  options.threads = 1;
  const Answer one = caught([&] { return answer_checks(table, options); });
  options.threads = 7;
  CHECK(caught([&] { return answer_checks(table, options); }).out == one.out);
  const Json list = Json::parse(one.out);
  REQUIRE(list.size() == 4);
  const Json& first = list[0];
  for (const char* name : {"id", "source", "statement", "relation", "error_origin", "expected", "verdict"})
    CHECK(first.at(name).is_string());
  for (const char* name : {"predicted", "measured", "error_bound"}) CHECK(first.at(name).is_number());
  CHECK(first.at("hypotheses") == Json::parse(R"([{"text": "a hypothesis", "value": 3.0, "met": true}])"));
  CHECK(first.at("details") == Json::parse(R"({"seeds": 2.0})"));
  CHECK(first.at("curve") == Json::array());
  CHECK(first.at("verdict") == "holds");
  CHECK(list[1].at("verdict") == "fails");
}

TEST_CASE("check: what a check throws is thrown again, after all have ended") {
  std::vector<Check> table = examples();
  table[1].run = [](const CheckEffort&) -> CheckFinding { throw std::runtime_error("broken"); };
  for (const int threads : {1, 3})
    CHECK_THROWS_AS(run_checks(chosen_checks(table, {}), {}, threads), std::runtime_error);
}

TEST_CASE("check on the command line: lists, runs, refuses") {
  const Answer list = ask({"check", "--list"});
  CHECK(list.status == 0);
  CHECK(list.out.find("dikkala2023.lemma1 (Dikkala et al. 2023, Lemma 1; expected: holds)\n") !=
        std::string::npos);
  const Json json = Json::parse(ask({"check", "dikkala2023.lemma2", "--list", "--json"}).out);
  REQUIRE(json.size() == 3);
  CHECK(json[0].at("id") == "dikkala2023.lemma2.as_printed");
  CHECK(json[0].at("expected") == "fails");
  CHECK_FALSE(json[0].contains("verdict"));

  const Answer table = ask({"check", "dikkala2023.lemma1", "dikkala2023.lemma2", "--threads", "2"});
  CHECK(table.status == 0);
  CHECK(table.out.starts_with("dikkala2023.lemma1: holds\n"));
  CHECK(std::count(table.out.begin(), table.out.end(), '\n') == 4 * 3 + 2);
  const std::vector<std::string> words = {"check", "dikkala2023.claim1", "dikkala2023.theorem1.shrinkage",
                                          "--json"};
  std::vector<std::string> single = words;
  single.insert(single.end(), {"--threads", "1"});
  const Answer both = ask(words);
  CHECK(both.status == 0);
  CHECK(both.out == ask(single).out);
  CHECK(Json::parse(both.out).size() == 4);
  std::vector<std::string> more = words;
  more.insert(more.end(), {"--seeds", "2"});
  CHECK(Json::parse(ask(more).out)[0].at("measured") != Json::parse(both.out)[0].at("measured"));

  const Answer unknown = ask({"check", "dikala2023"});
  CHECK(unknown.status == 2);
  CHECK(unknown.err.find("did you mean 'dikkala2023'") != std::string::npos);
  CHECK(ask({"check", "--seeds", "0"}).status == 2);
  CHECK(ask({"check", "--threads", "0"}).status == 2);
  CHECK(ask({"check", "--seed", "2"}).status == 2);
}

TEST_CASE("check: a folder of figures that cannot be written is refused before the checks") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "file";
  std::ofstream(file) << "in the way";
  bool has_run = false;
  const std::vector<Check> table = {
      {"alpha.one", "A source", "a statement", CheckVerdict::holds, [&](const CheckEffort&) {
         has_run = true;
         return CheckFinding{};
       }}};
  CheckOptions options;
  options.figures = file;
  CHECK_THROWS_WITH_AS(answer_checks(table, options), doctest::Contains("is not a folder"), UserError);
  CHECK_FALSE(has_run);
}

TEST_CASE("check: the whole table comes out as expected, and its catalogue is not stale") {
  const std::vector<const Check*> all = chosen_checks(checks(), {});
  const std::vector<CheckFinding> findings = run_checks(all, {}, 2);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i]->id);
    CHECK(verdict_of(findings[i]) == all[i]->expected);
  }
  // Here because it takes all findings; `moelab docs` writes the file anew.
  const std::string catalogue =
      file_text(std::filesystem::path(MOELAB_TEST_DATA) / ".." / "docs" / "theorems.md");
  CHECK((catalogue == theorem_catalogue(all, findings)));
}

}  // namespace moelab::check_test
