#include "analysis/metrics/load.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/metrics/fluctuation.h"
#include "analysis/metrics/metric_groups.h"
#include "analysis/metrics/routing.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

double total_load(std::span<const std::int64_t> loads) {
  return static_cast<double>(std::accumulate(loads.begin(), loads.end(), std::int64_t{0}));
}

}  // namespace

std::vector<int> top1_assignment(const Eigen::Ref<const Matrix>& probabilities) {
  if (probabilities.cols() == 0)
    throw InvalidOption("probs", "no columns; there must be at least one expert");
  std::vector<int> assignment(static_cast<std::size_t>(probabilities.rows()));
  for (Eigen::Index row = 0; row < probabilities.rows(); ++row) {
    const double* routing = &probabilities.coeffRef(row, 0);
    assignment[static_cast<std::size_t>(row)] =
        static_cast<int>(std::max_element(routing, routing + probabilities.cols()) - routing);
  }
  return assignment;
}

std::vector<int> topk_assignment(const Eigen::Ref<const Matrix>& probabilities, int k) {
  const int experts = static_cast<int>(probabilities.cols());
  if (k < 1 || k > experts)
    throw InvalidOption("k", fmt::format("got {}, needs 1 to {}, the number of experts", k, experts));
  if (k == 1) return top1_assignment(probabilities);
  std::vector<int> assignment, order(static_cast<std::size_t>(experts));
  assignment.reserve(static_cast<std::size_t>(probabilities.rows() * k));
  for (Eigen::Index row = 0; row < probabilities.rows(); ++row) {
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int left, int right) {
      return std::pair(-probabilities(row, left), left) < std::pair(-probabilities(row, right), right);
    });
    assignment.insert(assignment.end(), order.begin(), order.begin() + k);
  }
  return assignment;
}

std::vector<std::int64_t> expert_loads(std::span<const int> assignment, int experts) {
  std::vector<std::int64_t> loads(static_cast<std::size_t>(experts), 0);
  for (const int expert : assignment) {
    if (expert == -1) continue;
    if (expert < 0 || expert >= experts)
      throw InvalidOption("assignment",
                          fmt::format("expert {} where 0 to {} are allowed", expert, experts - 1));
    ++loads[static_cast<std::size_t>(expert)];
  }
  return loads;
}

std::optional<double> unserved_share(std::span<const int> serving) {
  if (serving.empty()) return std::nullopt;
  const auto unserved = std::count_if(serving.begin(), serving.end(), [](int expert) { return expert < 0; });
  return static_cast<double>(unserved) / static_cast<double>(serving.size());
}

std::optional<double> dead_experts(std::span<const int> serving, int experts) {
  if (serving.empty()) return std::nullopt;
  const std::vector<std::int64_t> loads = expert_loads(serving, experts);
  const std::int64_t rows = static_cast<std::int64_t>(serving.size());
  const auto dead = std::count_if(loads.begin(), loads.end(),
                                  [&](std::int64_t load) { return 10 * experts * load < rows; });
  return static_cast<double>(dead) / experts;
}

std::optional<double> expert_load_max_violation(std::span<const std::int64_t> loads) {
  const double total = total_load(loads);
  if (total == 0) return std::nullopt;
  const double mean = total / static_cast<double>(loads.size());
  return (static_cast<double>(*std::max_element(loads.begin(), loads.end())) - mean) / mean;
}

std::optional<double> expert_load_max_deviation(std::span<const std::int64_t> loads) {
  const double total = total_load(loads);
  if (total == 0) return std::nullopt;
  const double mean = total / static_cast<double>(loads.size());
  double largest = 0;
  for (const std::int64_t load : loads)
    largest = std::max(largest, std::abs(static_cast<double>(load) - mean));
  return largest / mean;
}

std::optional<double> expert_load_std_percent(std::span<const std::int64_t> loads) {
  const double total = total_load(loads);
  if (total == 0) return std::nullopt;
  const double mean = 100.0 / static_cast<double>(loads.size());
  double squares = 0;
  for (const std::int64_t load : loads) {
    const double deviation = 100.0 * static_cast<double>(load) / total - mean;
    squares += deviation * deviation;
  }
  return std::sqrt(squares / static_cast<double>(loads.size()));
}

namespace {

struct LoadMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class LoadMeter final : public Meter<Real> {
 public:
  LoadMeter(const LoadMetricOptions& /*options*/, const MeterSetting<Real>& setting)
      : selects_sets_(!unmet_need("co_activation", setting.subject)),
        leaves_unserved_(!unmet_need("unserved_share", setting.subject)) {}

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& values) override {
    const std::vector<std::int64_t> loads = moment.here.loads();
    set(values, "expert_load_max_violation", expert_load_max_violation(loads));
    set(values, "expert_load_max_deviation", expert_load_max_deviation(loads));
    set(values, "expert_load_std_percent", expert_load_std_percent(loads));
    const std::vector<int>& serving = moment.here.serving();
    const int experts = static_cast<int>(loads.size());
    set(values, "dead_experts", dead_experts(serving, experts));
    if (leaves_unserved_) set(values, "unserved_share", unserved_share(serving));
    if (selects_sets_) set(values, "co_activation", co_activation(moment.here.selected(), experts));
  }

 private:
  static std::optional<double> co_activation(const std::vector<unsigned char>& selected, int experts) {
    CoActivation pairs(experts);
    std::vector<int> of_row;
    for (std::size_t row = 0; row < selected.size(); row += static_cast<std::size_t>(experts)) {
      of_row.clear();
      for (int e = 0; e < experts; ++e) {
        if (selected[row + static_cast<std::size_t>(e)]) of_row.push_back(e);
      }
      pairs.add(of_row);
    }
    return pairs.value();
  }

  bool selects_sets_, leaves_unserved_;
};

}  // namespace

MetricGroup load_metrics() {
  MetricGroup group = metric_group<LoadMetricOptions, LoadMeter>(
      "load",
      "how evenly the test rows spread over the experts; uses selected (the first choices where gating.eval "
      "activates every expert), and serving for dead_experts and unserved_share",
      {{"expert_load_max_violation", false, "(max_e load_e − mean load) ÷ mean load",
        "largest excess load ÷ mean load", "largest violation"},
       {"expert_load_max_deviation", false,
        "max_e |load_e − mean load| ÷ mean load: too little counts as well",
        "largest deviation of the load ÷ mean load", "largest deviation"},
       {"expert_load_std_percent", false,
        "standard deviation over experts of the percentage of assignments (ddof 0)",
        "load standard deviation (% of rows)", "load deviation"},
       {"dead_experts", false,
        "share of experts that serve less than a tenth of an even share, n_e < n ÷ (10 E)",
        "share of dead experts", "dead experts"},
       {"unserved_share",
        false,
        "share of rows that no expert serves",
        "share of rows without an expert",
        "unserved",
        {&needs::unserved_rows}},
       {"co_activation",
        false,
        "mean over experts i of max_{j ≠ i} n_ij ÷ n_i, n_ij rows that are sent to both: 1 when each has a "
        "partner on all of its rows",
        "share of an expert's rows with its nearest partner",
        "co-activation",
        {&needs::several_experts, &needs::sets}}});
  group.of_layers = true;
  group.needs = {&needs::router};
  return group;
}

namespace {

struct LayerLoadsMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class LayerLoadsMeter final : public Meter<Real> {
 public:
  LayerLoadsMeter(const LayerLoadsMetricOptions& /*options*/, const MeterSetting<Real>& /*setting*/) {}

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& /*values*/) override {
    if (moment.layer() == 0) deviations_.clear();
    const std::optional<double> of_layer = expert_load_std_percent(moment.here.loads());
    if (of_layer) deviations_.push_back(*of_layer);
  }

  void measure(const TestMoment<Real>& moment, MetricValues& values) override {
    if (!moment.model.network->has_router() ||
        deviations_.size() != static_cast<std::size_t>(moment.model.network->layers()))
      return;
    const Eigen::Map<const Vector> deviations(deviations_.data(),
                                              static_cast<Eigen::Index>(deviations_.size()));
    const double mean = deviations.mean();
    values["expert_load_std_percent_mean"] = mean;
    values["expert_load_std_percent_spread"] = std::sqrt((deviations.array() - mean).square().mean());
  }

 private:
  std::vector<double> deviations_;  ///< of the layers so far
};

}  // namespace

MetricGroup layer_loads_metrics() {
  MetricGroup group = metric_group<LayerLoadsMetricOptions, LayerLoadsMeter>(
      "layer_loads", "balance of a whole stack (Nielsen et al. 2025, Table 6); uses selected, as load does",
      {{"expert_load_std_percent_mean", false, "mean over layers of expert_load_std_percent",
        "load standard deviation (% of rows), mean over layers", "load deviation, mean"},
       {"expert_load_std_percent_spread", false, "its standard deviation over layers (ddof 0)",
        "load standard deviation (% of rows), spread over layers", "load deviation, spread"}});
  group.by_default = false;
  group.needs = {&needs::router, &needs::model};
  return group;
}

namespace {

struct LayersMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class LayersMeter final : public Meter<Real> {
 public:
  LayersMeter(const LayersMetricOptions& /*options*/, const MeterSetting<Real>& /*setting*/) {}

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& values) override {
    if (!moment.before) return;
    const std::vector<int>&before = moment.before->serving(), &here = moment.here.serving();
    set(values, "router_instability", router_instability(before, here));
    set(values, "assignment_change_share", assignment_change_share(before, here));
    set(values, "layer_ari", layer_ari(before, here));
  }
};

}  // namespace

MetricGroup layers_metrics() {
  MetricGroup group = metric_group<LayersMetricOptions, LayersMeter>(
      "layers", "how the routing changes from a layer to the next (Nielsen et al. 2025); uses serving",
      {{"router_instability", false,
        "mean |S − S'| over pairs of rows, S = 1 where one expert serves both, in the layer before and here",
        "share of pairs of rows joined or parted from layer to layer", "instability"},
       {"assignment_change_share", false,
        "share of rows that do not go where most rows of their expert in the layer before go",
        "share of rows that leave their expert's company", "assignment change"},
       {"layer_ari", false,
        "adjusted Rand index of the serving experts in the layer before and here: 1 where the same rows are "
        "together, 0 as by chance, and where one expert serves all rows",
        "adjusted Rand index of two layers", "agreement of layers"}});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::layer_before};
  return group;
}

}  // namespace moelab
