#include <doctest/doctest.h>

#include "app/figures/figure_kind.h"

namespace moelab::display_names_test {

TEST_CASE("a swept path without a label is called by the components that tell it from the others") {
  const DisplayNames names(Json::parse(R"({"scenario": {"sweep": {
    "model.router.tau1": [0.01], "data.clusters": [2], "loss.reduction": ["sum"],
    "model.gating.train.k": [1], "model.expert.kind": ["mlp"],
    "zip": {"model.gating.eval.k": [1], "data.target.normalize": ["none"], "data.target.kind": ["linear"]}},
    "labels": {"loss.reduction": "sum or mean"}}})"));
  CHECK(names.value("model.router.tau1", "0.01") == "tau1 = 0.01");
  CHECK(names.axis("model.router.tau1") == "tau1");
  CHECK(names.axis("data.clusters") == "clusters");  // as labels.h has it
  CHECK(names.axis("loss.reduction") == "sum or mean");
  CHECK(names.legend("model.gating.train.k") == "train.k");
  CHECK(names.legend("model.gating.eval.k") == "eval.k");
  CHECK(names.value("model.expert.kind", "mlp") == "expert = mlp");
  CHECK(names.value("data.target.kind", "linear") == "target = linear");
  CHECK(names.legend("model.width") == "model.width");  // not swept
}

TEST_CASE("what varies together is called by its first path, beside which the others need no telling apart") {
  const DisplayNames names(Json::parse(R"({"scenario": {"sweep": {
    "zip": {"model.router.tau1": [0.01], "data.router.tau1": [0.01]}}}})"));
  CHECK(names.value("model.router.tau1", "0.01") == "tau1 = 0.01");
}

TEST_CASE("expressions are written with the labels of axes and printed signs") {
  const DisplayNames names(Json::object());
  CHECK(names.axis("effective_experts / model.experts") == "effective experts per cluster ÷ experts");
  CHECK(names.legend("effective_experts / model.experts") == "effective experts per cluster ÷ experts");
  CHECK(names.axis("test_nmse_top1 * 2") == "(test loss ÷ label variance (top-1)) × 2");
  CHECK(names.axis("data.clusters * log ( data.clusters )") == "clusters × log(clusters)");
  CHECK(names.axis("( data.clusters - 1 ) / 2") == "(clusters − 1) ÷ 2");
}

}  // namespace moelab::display_names_test
