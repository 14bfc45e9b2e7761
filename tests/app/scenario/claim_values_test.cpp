/// Values of claims: numbers, expressions of swept paths, and of metrics, which are the other side's.

#include <doctest/doctest.h>

#include "app/scenario/claim_reader.h"

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

}  // namespace
}  // namespace moelab::claim_values_test
