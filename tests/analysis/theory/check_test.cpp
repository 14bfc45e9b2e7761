#include "analysis/theory/check.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>

namespace moelab::check_test {
namespace {

CheckFinding finding_of(Relation relation, double measured, double predicted, double error_bound) {
  CheckFinding finding;
  finding.relation = relation;
  finding.measured = measured;
  finding.predicted = predicted;
  finding.error_bound = error_bound;
  return finding;
}

}  // namespace

TEST_CASE("verdict: each relation at, inside and outside its bound") {
  CHECK(verdict_of(finding_of(Relation::equal, 2.5, 2, 0.5)) == CheckVerdict::holds);
  CHECK(verdict_of(finding_of(Relation::equal, 1.5, 2, 0.5)) == CheckVerdict::holds);
  CHECK(verdict_of(finding_of(Relation::equal, 2.6, 2, 0.5)) == CheckVerdict::fails);
  CHECK(verdict_of(finding_of(Relation::equal, 1.4, 2, 0.5)) == CheckVerdict::fails);
  CHECK(verdict_of(finding_of(Relation::at_most, -9, 2, 0.5)) == CheckVerdict::holds);
  CHECK(verdict_of(finding_of(Relation::at_most, 2.5, 2, 0.5)) == CheckVerdict::holds);
  CHECK(verdict_of(finding_of(Relation::at_most, 2.6, 2, 0.5)) == CheckVerdict::fails);
  CHECK(verdict_of(finding_of(Relation::at_least, 9, 2, 0.5)) == CheckVerdict::holds);
  CHECK(verdict_of(finding_of(Relation::at_least, 1.5, 2, 0.5)) == CheckVerdict::holds);
  CHECK(verdict_of(finding_of(Relation::at_least, 1.4, 2, 0.5)) == CheckVerdict::fails);
}

TEST_CASE("verdict: hypotheses come first, then numbers that say nothing") {
  CheckFinding finding = finding_of(Relation::equal, std::nan(""), 2, 0.5);
  CHECK(verdict_of(finding) == CheckVerdict::inconclusive);
  finding.hypotheses = {{"a", 1, true}, {"b", 2, false}};
  CHECK(verdict_of(finding) == CheckVerdict::hypotheses_not_met);
  finding.hypotheses[1].met = true;
  finding.measured = 2;
  CHECK(verdict_of(finding) == CheckVerdict::holds);
  finding.resolution = 0.4;
  CHECK(verdict_of(finding) == CheckVerdict::inconclusive);
  finding.resolution = 0.5;
  CHECK(verdict_of(finding) == CheckVerdict::holds);
  finding.predicted = std::numeric_limits<double>::infinity();
  CHECK(verdict_of(finding) == CheckVerdict::inconclusive);
}

TEST_CASE("streams of checks differ by id, repetition and root, and repeat") {
  const CheckEffort one{1, 1}, two{2, 1};
  CHECK(check_stream(one, "a.b", 0) == check_stream(one, "a.b", 0));
  std::set<std::uint64_t> starts;
  for (const CheckEffort& effort : {one, two}) {
    for (const char* id : {"a.b", "a.c", "b.a"}) {
      for (int repetition = 0; repetition < 3; ++repetition)
        starts.insert(check_stream(effort, id, repetition)());
    }
  }
  CHECK(starts.size() == 18);
}

TEST_CASE("the table: ids are unique, lower case and dotted; what is wrong as printed has its correction") {
  std::set<std::string> ids;
  for (const Check& check : checks()) {
    CAPTURE(check.id);
    CHECK(ids.insert(check.id).second);
    CHECK(check.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == std::string::npos);
    CHECK(check.id.find('.') != std::string::npos);
    CHECK_FALSE(check.source.empty());
    CHECK_FALSE(check.statement.empty());
    CHECK(check.run);
  }
  for (const Check& check : checks()) {
    // No id is the beginning of another: naming it would choose both.
    for (const std::string& id : ids) CHECK_FALSE(id.starts_with(check.id + "."));
    if (check.id.ends_with(".as_printed")) {
      CHECK(check.expected == CheckVerdict::fails);
      CHECK(ids.count(check.id.substr(0, check.id.size() - 11) + ".corrected") == 1);
    }
    if (check.id.ends_with(".corrected")) CHECK(check.expected == CheckVerdict::holds);
  }
}

}  // namespace moelab::check_test
