#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "app/run/cell.h"
#include "app/scenario/scenario.h"

namespace moelab::skipping_test {
namespace {

constexpr int kSeedCount = 5;

/// ln of a metric at the end of a run of a small Fig. 3, by seed.
std::vector<double> logarithms(const char* metric, double skip_below) {
  std::vector<double> values;
  for (int seed = 0; seed < kSeedCount; ++seed) {
    Json config = Json::parse(R"({
      "data": {"generator": "gaussian_mixture", "clusters": 8, "dim": 8, "mean_std": 2,
               "target": {"kind": "constant", "dim": 3}, "train_samples": 400, "test_samples": 1000},
      "model": {"experts": 8, "router": {"kind": "linear", "init_scale": 4},
                "expert": {"kind": "mlp", "depth": 3, "width": 16}},
      "train": {"optimizer": {"kind": "sgd", "momentum": 0.9}, "lr": {"expert": 0.01, "router": 0.1},
                "batch_size": 32, "steps": 400}})");
    config["model"]["gating"]["train"] = {{"kind", "soft"}, {"skip_below", skip_below}};
    Cell cell;
    cell.id = "cell";
    cell.arm = "base";
    cell.options = std::make_shared<const CellOptions>(read_config(resolve(config_shape(), config, "")));
    cell.root_seed = 1;
    cell.seed = seed;
    const CellResult result = run_cell(cell, [](double) { return false; });
    REQUIRE(result.state == CellResult::State::done);
    values.push_back(std::log(result.metrics.at(metric)));
  }
  return values;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double standard_deviation(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::pow(value - mean_of(values), 2);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

// One step is bounded (model_test.cpp). Trajectories of SGD are chaotic, so that after a run the two agree as
// two seeds do: the means over seeds differ by less than the spread between seeds.
TEST_CASE("skipping tiny gates leaves the final metrics within the spread between seeds") {
  for (const char* metric : {"test_nmse_top1", "effective_experts"}) {
    CAPTURE(metric);
    const std::vector<double> exact = logarithms(metric, 0), skipped = logarithms(metric, 1e-8);
    const double spread = standard_deviation(exact);
    REQUIRE(spread > 0);
    CHECK(skipped != exact);  // pairs are skipped
    CHECK(std::abs(mean_of(skipped) - mean_of(exact)) < spread);
  }
  // Rows without a dominant expert left out must show.
  const std::vector<double> exact = logarithms("test_nmse_top1", 0);
  CHECK(std::abs(mean_of(logarithms("test_nmse_top1", 0.95)) - mean_of(exact)) > standard_deviation(exact));
}

}  // namespace
}  // namespace moelab::skipping_test
