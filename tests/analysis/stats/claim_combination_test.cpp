#include "analysis/stats/claim_combination.h"

#include <doctest/doctest.h>

namespace moelab::claim_combination_test {
namespace {

ClaimPoint undecided(double supporting, double opposing, std::optional<int> seeds) {
  ClaimPoint point;
  point.p_values = PointPValues{supporting, opposing};
  point.seeds_to_decide = seeds;
  return point;
}

std::optional<int> seeds_to_decide(const std::vector<ClaimPoint>& points) {
  ClaimResult result;
  result.points = points;
  combine_points(result);
  return result.seeds_to_decide;
}

TEST_CASE("verdicts that stand together") {
  using enum Verdict;
  CHECK(combined_verdict({reproduced, reproduced}) == reproduced);
  CHECK(combined_verdict({reproduced, refuted, inconclusive}) == refuted);
  CHECK(combined_verdict({equivalent, equivalent}) == equivalent);
  CHECK(combined_verdict({equivalent, reproduced}) == inconclusive);
  CHECK(combined_verdict({uninformative, reproduced}) == reproduced);
  CHECK(combined_verdict({uninformative}) == inconclusive);
  CHECK(combined_verdict({}) == inconclusive);
}

TEST_CASE("seeds to decide: all of what supports a claim, or the first point that refutes it") {
  const ClaimPoint near = undecided(0.1, 0.9, 12), far = undecided(0.3, 0.7, 60);
  const ClaimPoint against = undecided(0.9, 0.1, 30), soon_against = undecided(0.95, 0.05, 14);
  const ClaimPoint never = undecided(0.4, 0.6, std::nullopt);
  ClaimPoint reproduced;
  reproduced.verdict = Verdict::reproduced;
  CHECK(seeds_to_decide({near, far, reproduced}) == 60);
  CHECK(seeds_to_decide({near, far, against, soon_against}) == 14);
  CHECK(seeds_to_decide({near, never, against}) == 30);
  CHECK_FALSE(seeds_to_decide({near, never}).has_value());
  // What the smallest effect would decide first is no refutation.
  ClaimPoint equivalent = undecided(0.9, 0.1, 20);
  equivalent.p_values->equivalent = 0.06;
  CHECK(seeds_to_decide({equivalent, far}) == 60);
  CHECK_FALSE(seeds_to_decide({reproduced, reproduced}).has_value());
}

}  // namespace
}  // namespace moelab::claim_combination_test
