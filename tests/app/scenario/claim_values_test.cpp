/// Values of claims: numbers, expressions of swept paths, and of metrics, which are the other side's.

#include <doctest/doctest.h>

#include "app/scenario/claim_reader.h"
#include "app/scenario/scenario.h"
#include "sim/base/error.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"

namespace moelab::claim_values_test {
namespace {

Comparison with_value(const char* value) {
  Json claim = Json::parse(
      R"({"id": "a", "op": "<", "left": {"arm": "learned", "metric": "effective_experts", "step": "start",
                                         "where": {"data.train_samples": 640}}})");
  claim["right"] = {{"value", value}, {"factor", 2}};
  return std::get<Comparison>(read_claims(Json::array({claim})).front().statement);
}

TEST_CASE("a claim's value that names metrics is of the other side's arm, where that is") {
  const Comparison comparison = with_value("effective_experts_shuffled / model.experts");
  const ClaimSide &left = comparison.left, &right = comparison.right;
  CHECK_FALSE(right.is_constant());
  CHECK(right.arm == "learned");
  CHECK(right.metric == "effective_experts_shuffled / model.experts");
  CHECK(right.where == left.where);
  CHECK(right.step == left.step);
  CHECK(right.factor == 2);
  CHECK(left.factor == 1);
}

TEST_CASE("a claim's value of swept paths alone is no arm's") {
  const Comparison comparison = with_value("model.experts / 4");
  CHECK(comparison.right.is_constant());
  CHECK(comparison.right.value == "model.experts / 4");
  CHECK(comparison.right.arm.empty());
}

/// Whether a claim of the example with this right side is valid, and why not.
std::string refusal_of(const Json& left, const Json& right) {
  Json scenario = tiny();
  scenario["claims"] = Json::array({{{"id", "a"}, {"op", "<"}, {"left", left}, {"right", right}}});
  try {
    expand_scenario(scenario, "", {});
    return "";
  } catch (const InvalidOption& error) {
    return error.what();
  }
}

TEST_CASE("a claim's value may name numbers of the scenario that are not swept") {
  const Json measured = {{"arm", "learned"}, {"metric", "test_nmse_top1"}};
  for (const char* value : {"model.experts / 6", "model.experts", "model.experts / data.train_samples",
                            "data.noise_std * model.experts", "test_nmse_top1 * model.experts"}) {
    CAPTURE(std::string(value));
    CHECK(refusal_of(measured, {{"value", value}}) == "");
    CHECK(refusal_of({{"value", value}}, measured) == "");
  }
  CHECK(refusal_of({{"arm", "learned"}, {"metric", "model.experts / data.clusters"}}, measured) == "");
  CHECK(refusal_of(measured, {{"value", "model.experts / data.clustres"}}).find("data.clustres") !=
        std::string::npos);
  CHECK(refusal_of(measured, {{"value", "model.router.kind"}}) != "");
}

TEST_CASE("a claim's value of fixed numbers is what it says") {
  Json scenario = tiny_with_claims(R"([
    {"id": "below", "op": "<", "left": {"arm": "learned", "metric": "test_nmse_top1"},
     "right": {"value": "1000 * model.experts"}},
    {"id": "above", "op": ">", "left": {"arm": "learned", "metric": "test_nmse_top1"},
     "right": {"value": "model.experts"}, "at": "last"}])");
  const Bench bench(scenario);
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const Json claims = Json::parse(ask({"claims", bench.run, "--json"}).out);
  CHECK(claims[0].at("verdict") == "reproduced");
  CHECK(claims[0].at("points")[0].at("right") == 3000);
  CHECK(claims[1].at("points")[0].at("right") == 3);
}

}  // namespace
}  // namespace moelab::claim_values_test
