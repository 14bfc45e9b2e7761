#include "app/report/ledger.h"

#include <doctest/doctest.h>

namespace moelab::ledger_test {

TEST_CASE("a claim's decisive point is the first that decides against it, or else the last") {
  ReportedClaim claim;
  CHECK(decisive_point(claim) == nullptr);
  claim.verdict = "refuted";
  for (const char* verdict : {"reproduced", "refuted", "refuted", "inconclusive"})
    claim.points.push_back({"", verdict, "", "", verdict, ""});
  CHECK(decisive_point(claim) == &claim.points[1]);
  claim.verdict = "inconclusive";
  claim.points.push_back(claim.points.back());
  CHECK(decisive_point(claim) == &claim.points[3]);
  claim.verdict = "reproduced";
  CHECK(decisive_point(claim) == &claim.points[4]);
}

}  // namespace moelab::ledger_test
