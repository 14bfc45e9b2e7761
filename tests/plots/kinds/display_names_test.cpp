#include <doctest/doctest.h>

#include "app/run/figures.h"
#include "tests/plots/kinds/built_figure.h"

namespace moelab::display_names_test {
namespace {

DisplayNames names_of(const std::string& scenario) {
  RunResults results;
  set_head(results, {{"scenario", Json::parse(scenario)}});
  return DisplayNames(figure_source(results, ".").run);
}

}  // namespace

TEST_CASE("a swept path without a label is called by the components that tell it from the others") {
  const DisplayNames names = names_of(R"({"sweep": {
    "model.router.tau1": [0.01], "data.clusters": [2], "loss.reduction": ["sum"],
    "model.gating.train.k": [1], "model.expert.kind": ["mlp"],
    "zip": {"model.gating.eval.k": [1], "data.target.normalize": ["none"], "data.target.kind": ["linear"]}},
    "labels": {"loss.reduction": "sum or mean"}})");
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
  const DisplayNames names = names_of(R"({"sweep": {
    "zip": {"model.router.tau1": [0.01], "data.router.tau1": [0.01]}}})");
  CHECK(names.value("model.router.tau1", "0.01") == "tau1 = 0.01");
}

TEST_CASE("expressions are written with the labels of axes and printed signs") {
  const DisplayNames names = names_of("{}");
  CHECK(names.axis("effective_experts / model.experts") == "effective experts per cluster ÷ experts");
  CHECK(names.legend("effective_experts / model.experts") == "effective experts per cluster ÷ experts");
  CHECK(names.axis("test_nmse_top1 * 2") == "(test loss ÷ label variance (top-1)) × 2");
  CHECK(names.axis("data.clusters * log ( data.clusters )") == "clusters × log(clusters)");
  CHECK(names.axis("( data.clusters - 1 ) / 2") == "(clusters − 1) ÷ 2");
  CHECK(names.axis("1 / (data.dim * log(data.clusters))") == "1 ÷ (input width × log(clusters))");
}

}  // namespace moelab::display_names_test
