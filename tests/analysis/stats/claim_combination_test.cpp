#include <doctest/doctest.h>

#include "analysis/stats/claims.h"

namespace moelab::claim_combination_test {
namespace {

ClaimPoint undecided(Verdict then, int seeds) {
  ClaimPoint point;
  point.seeds_to_decide = seeds;
  point.verdict_then = then;
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
  const ClaimPoint near = undecided(Verdict::reproduced, 12), far = undecided(Verdict::reproduced, 60);
  const ClaimPoint against = undecided(Verdict::refuted, 30), soon_against = undecided(Verdict::refuted, 14);
  const ClaimPoint never;
  ClaimPoint reproduced;
  reproduced.verdict = Verdict::reproduced;
  CHECK(seeds_to_decide({near, far, reproduced}) == 60);
  CHECK(seeds_to_decide({near, far, against, soon_against}) == 14);
  CHECK(seeds_to_decide({near, never, against}) == 30);
  CHECK_FALSE(seeds_to_decide({near, never}).has_value());
  CHECK_FALSE(seeds_to_decide({reproduced, reproduced}).has_value());
  // Points that end in different verdicts, none of them refuted, leave the claim open.
  const ClaimPoint equivalent = undecided(Verdict::equivalent, 20);
  CHECK_FALSE(seeds_to_decide({equivalent, far}).has_value());
  CHECK_FALSE(seeds_to_decide({equivalent, reproduced}).has_value());
  CHECK(seeds_to_decide({equivalent, equivalent}) == 20);
  CHECK(seeds_to_decide({equivalent, reproduced, against}) == 30);
}

}  // namespace
}  // namespace moelab::claim_combination_test
