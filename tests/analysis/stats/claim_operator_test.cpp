/// The example of docs/extending.md: an operator in a file of its own.

#include <doctest/doctest.h>

#include <cmath>

#include "docs/example/not_above_operator.cpp"
#include "tests/analysis/stats/judged_claim.h"

namespace moelab::claim_operator_test {
namespace {

/// Arm b at about 1, arm a at about `ratio`, with 4 seeds. Values above 1.5 are censored there.
ResultTable table_of(double ratio) {
  ResultTable table{{"a", "b"}, {}, {}, {}};
  for (const std::string& arm : table.arms) {
    for (int seed = 0; seed < 4; ++seed) {
      ResultRow row{"", arm, seed, {}, "done", {}, {}};
      const double wobble = arm == "a" ? (seed % 2 == 0 ? 0.001 : -0.001) : 0;
      const double value = (arm == "a" ? ratio : 1) + wobble;
      row.metrics["loss"] = row.metrics["share"] = value;
      if (value <= 1.5) row.metrics["steps_to_target"] = value;
      row.metrics["steps_to_target_censored"] = value <= 1.5 ? 0 : 1;
      row.trace = {{1, row.metrics}};
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

ClaimResult judged(double ratio, const std::string& metric, double tolerance) {
  return judged_claim(versus(metric, "not_above", R"(, "tolerance": )" + std::to_string(tolerance)),
                      table_of(ratio), [](const std::string& name) { return name != "share"; });
}

}  // namespace

TEST_CASE("claim operators: a new one is judged by its range alone") {
  const Extended<ClaimAxis> with_example({not_above_operator()});
  for (const char* metric : {"loss", "share"}) {
    CAPTURE(metric);
    CHECK(judged(0.5, metric, 0.1).verdict == Verdict::reproduced);
    CHECK(judged(1, metric, 0.1).verdict == Verdict::reproduced);
    CHECK(judged(1.05, metric, 0.1).verdict == Verdict::reproduced);
    CHECK(judged(1.05, metric, 0.02).verdict == Verdict::refuted);
    CHECK(judged(1.05, metric, 0.05).verdict == Verdict::inconclusive);
  }
  const ClaimResult result = judged(1.05, "loss", 0.1);
  CHECK(result.statement == "a loss not_above b loss within 10 %");
  CHECK(result.points.at(0).claimed->high == doctest::Approx(std::log(1.1)));
  CHECK(std::isinf(result.points.at(0).claimed->low));
}

TEST_CASE("claim operators: signs do not tell by how much a side is above") {
  const Extended<ClaimAxis> with_example({not_above_operator()});
  const ClaimResult result = judged(2, "steps_to_target", 0.1);
  CHECK(result.verdict == Verdict::inconclusive);
  CHECK(result.points.at(0).note.ends_with("censored values cannot show by how much sides differ"));
}

TEST_CASE("claim operators: the extension ends with its object") {
  CHECK_THROWS_WITH_AS(judged(1, "loss", 0.1), doctest::Contains("'not_above'"), std::exception);
}

}  // namespace moelab::claim_operator_test
