#include "analysis/metrics/router_norms.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "analysis/metrics/load.h"
#include "analysis/metrics/metric_groups.h"
#include "sim/base/error.h"

namespace moelab {

std::optional<double> router_norm_ratio(const Eigen::Ref<const Matrix>& weight) {
  if (weight.size() == 0) return std::nullopt;
  const Vector norms = weight.rowwise().norm();
  const double mean = norms.mean();
  if (mean == 0) return std::nullopt;
  return norms.array().square().mean() / (mean * mean);
}

std::optional<double> router_signal_fraction(const Eigen::Ref<const Matrix>& weight,
                                             const Eigen::Ref<const Matrix>& basis) {
  if (basis.rows() != weight.cols())
    throw InvalidOption("basis",
                        fmt::format("{} rows for router weights of width {}", basis.rows(), weight.cols()));
  const double total = weight.squaredNorm();
  if (total == 0) return std::nullopt;
  const Matrix projected = weight * basis;
  return projected.squaredNorm() / total;
}

namespace {

struct RouterNormsMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class RouterNormsMeter final : public Meter<Real> {
 public:
  RouterNormsMeter(const RouterNormsMetricOptions& /*options*/, const MeterSetting<Real>& setting)
      : signal_basis_(setting.experiment.model.input_width ? Matrix() : setting.problem.signal_basis()) {}

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& values) override {
    const Model<Real>& model = moment.moment.model;
    const std::string name = "router_weight" + model.network->layer_ending(moment.layer());
    for (const NamedArray<Real>& array : model.network->arrays(model.parameters)) {
      if (array.name != name) continue;
      const Matrix weight = widen(array.values, array.shape[0], array.shape[1]);
      set(values, "router_norm_ratio", router_norm_ratio(weight));
      if (signal_basis_.size() > 0) {
        set(values, "router_signal_fraction", router_signal_fraction(weight, signal_basis_));
      }
    }
  }

 private:
  Matrix signal_basis_;
};

}  // namespace

MetricGroup router_norms_metrics() {
  MetricGroup group = metric_group<RouterNormsMetricOptions, RouterNormsMeter>(
      "router_norms", "the weights M_i into expert i of a router that is linear in x; uses no routing",
      {{"router_norm_ratio", true, "E‖M_i‖² ÷ (E‖M_i‖)²: 1 when all are equal", "norm ratio E‖M‖² ÷ (E‖M‖)²",
        "norm ratio"},
       {"router_signal_fraction",
        false,
        "share of Σ_i ‖M_i‖² inside the subspace on which the target depends",
        "router weight in signal subspace",
        "signal fraction",
        {&needs::signal_subspace}}});
  group.of_layers = true;
  group.needs = {&needs::router_weight};
  return group;
}

std::optional<double> weight_variation(const Eigen::Ref<const Matrix>& weights,
                                       std::span<const int> clusters) {
  const std::vector<std::int64_t> rows = expert_loads(clusters, static_cast<int>(weights.rows()));
  double sum = 0, counted = 0;
  for (Eigen::Index k = 0; k < weights.rows(); ++k) {
    const double share = static_cast<double>(rows[static_cast<std::size_t>(k)]);
    if (share == 0) continue;
    const Vector relative = weights.row(k).transpose() / weights.row(k).mean();
    sum += share * std::sqrt((relative.array() - 1).square().mean());
    counted += share;
  }
  if (counted == 0) return std::nullopt;
  return sum / counted;
}

namespace {

const Need weighed_features{
    "a router that weighs features in that layer", [](const MetricSubject& of, int layer) {
      const std::string name = "router_feature_weights" + of.network().layer_ending(layer);
      const std::vector<StateArray> arrays = of.network().state_arrays();
      return std::any_of(arrays.begin(), arrays.end(),
                         [&](const StateArray& array) { return array.name == name; });
    }};

struct FeatureWeightsMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class FeatureWeightsMeter final : public Meter<Real> {
 public:
  FeatureWeightsMeter(const FeatureWeightsMetricOptions& /*options*/, const MeterSetting<Real>& /*setting*/) {
  }

  void measure_layer(const LayerMoment<Real>& at, MetricValues& values) override {
    const Model<Real>& model = at.moment.model;
    const std::string name = "router_feature_weights" + model.network->layer_ending(at.layer());
    const double* place = model.state.values.data();
    for (const StateArray& array : model.network->state_arrays()) {
      if (array.name == name) {
        // A first layer's clusters are its own.
        const std::vector<int>& clusters = at.before ? at.before->serving() : at.here.serving();
        set(values, "weight_variation",
            weight_variation(MatrixView(place, array.shape[0], array.shape[1]), clusters));
      }
      place += array.size();
    }
  }
};

}  // namespace

MetricGroup feature_weights_metrics() {
  MetricGroup group = metric_group<FeatureWeightsMetricOptions, FeatureWeightsMeter>(
      "feature_weights",
      "the weights M of an adaptive clustering router after the last step (Nielsen et al. 2025); uses "
      "serving",
      {{"weight_variation", false,
        "mean over rows of the coefficient of variation over features of M of the row's cluster: 0 for M = I",
        "variation of feature weights", "weight variation"}});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&weighed_features};
  return group;
}

}  // namespace moelab
