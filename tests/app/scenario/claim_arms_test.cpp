#include "app/scenario/claim_reader.h"
#include "tests/app/scenario/example.h"
#include "tests/app/scenario/refused.h"

namespace moelab::claim_arms_test {
namespace {

Json trend_of(const char* changes) {
  Json claim = {
      {"id", "falls"}, {"op", "decreases"}, {"metric", "test_nmse_top1"}, {"along", "data.train_samples"}};
  claim.update(Json::parse(changes));
  return claim;
}

Json with_claims(const std::vector<Json>& claims) {
  Json document = example_scenario();
  document["claims"] = claims;
  return document;
}

TEST_CASE("a claim of several arms is one for each, by its name in id and text") {
  const Scenario scenario = expand_scenario(
      with_claims({trend_of(R"({"id": "one", "arm": "frozen"})"),
                   trend_of(R"({"arms": ["learned", "dense_small"], "text": "{arm}: {arm} learns."})"),
                   trend_of(R"({"id": "{arm}_ends", "arms": ["learned"], "shape": "monotone"})")}),
      "", {});
  std::vector<std::string> ids, arms;
  for (const Claim& claim : scenario.claims) {
    ids.push_back(claim.id);
    arms.push_back(std::get<Trend>(claim.statement).side.arm);
    CHECK(claim.arms.empty());
  }
  CHECK(ids == std::vector<std::string>{"one", "falls_learned", "falls_dense_small", "learned_ends"});
  CHECK(arms == std::vector<std::string>{"frozen", "learned", "dense_small", "learned"});
  CHECK(scenario.claims[1].text == "learned: learned learns.");
  CHECK(std::get<Trend>(scenario.claims[3].statement).shape == TrendShape::monotone);
}

TEST_CASE("claims of several arms that are wrong are refused where the scenario has them") {
  const Json two = trend_of(R"({"arms": ["learned", "frozen"]})");
  check_refused(with_claims({two, trend_of("{}")}), "", {}, "claims[1].arm", "needs 'arm' or 'arms'");
  check_refused(with_claims({two, trend_of(R"({"arm": "learned", "arms": ["frozen"]})")}), "", {},
                "claims[1].arm", "one or the other");
  check_refused(with_claims({two, trend_of(R"({"id": "x", "arms": ["learned", "frosen"]})")}), "", {},
                "claims[1].arms[1]", "frosen");
  check_refused(with_claims({two, trend_of(R"({"id": "x", "arm": "learned", "along": "data.dimm"})")}), "",
                {}, "claims[1].along", "data.dimm");
  check_refused(with_claims({two, trend_of(R"({"id": "falls_learned", "arm": "frozen"})")}), "", {},
                "claims[1].id", "falls_learned");
}

}  // namespace
}  // namespace moelab::claim_arms_test
