#include "app/run/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace moelab {
namespace {

/// Drawn labels and normalised ones have variances about 1.
constexpr double kLargeVariance = 100;

/// A learning rate of a cell, with its path.
struct Rate {
  std::string path;
  double value = 0;
};

Rate largest_rate(const Scenario& scenario) {
  Rate largest;
  const auto take = [&](const std::string& path, const Json& value) {
    if (value.is_number() && value.get<double>() > largest.value) largest = {path, value.get<double>()};
  };
  for (const Cell& cell : scenario.cells) {
    const Json& train = cell.config.at("train");
    const auto rate = train.find("lr");
    if (rate == train.end()) continue;
    take("train.lr", *rate);
    if (!rate->is_object()) continue;
    for (const auto& [group, value] : rate->items()) take("train.lr." + group, value);
  }
  return largest;
}

/// Of the test labels: their loss divided by the same in shares of their variance. 0 where it is not told.
double largest_label_variance(const ResultTable& table) {
  double largest = 0;
  for (const ResultRow& row : table.rows) {
    if (row.trace.empty()) continue;
    const MetricValues& first = row.trace.front().metrics;
    const auto loss = first.find("test_loss_soft"), share = first.find("test_nmse_soft");
    if (loss == first.end() || share == first.end()) continue;
    const double variance = loss->second / share->second;
    if (std::isfinite(variance)) largest = std::max(largest, variance);
  }
  return largest;
}

}  // namespace

std::string divergence_hint(const Scenario& scenario, const ResultTable& table) {
  std::string hint = "every cell diverged; try ";
  const Rate rate = largest_rate(scenario);
  const double variance = largest_label_variance(table);
  if (rate.value > 0)
    hint += fmt::format("a learning rate ten times smaller (the largest here is {} = {:g}), then ", rate.path,
                        rate.value);
  hint += "smaller inputs and targets";
  if (variance > 0) {
    hint += fmt::format(" (the labels' variance is {:.2g}{})", variance,
                        variance > kLargeVariance ? ", scale them to about 1" : "");
  }
  return hint + " or smaller starting weights (init_scale)";
}

}  // namespace moelab
