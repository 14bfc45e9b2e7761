/// Metrics of clusters of single-index models: which directions neurons and router rows have found.

#include <cmath>

#include "analysis/metrics/meters.h"
#include "sim/data/single_index.h"

namespace moelab {
namespace {

const Need single_index{"data.generator single_index", [](const MetricSubject& of, int) {
                          return of.data().as<SingleIndexOptions>() != nullptr && of.network().has_router();
                        }};

template <class Real>
class DirectionsMeter final : public ModelMeter<Real> {
 public:
  DirectionsMeter(const NoMetricOptions& /*options*/, const MeterSetting<Real>& setting) {
    if (setting.problem.single_index()) directions_ = *setting.problem.single_index();
  }

  void measure_layer(const TestMoment<Real>& moment, int layer, MetricValues& values) override {
    if (directions_.local.size() == 0) return;
    const Network<Real>& network = *moment.model.network;
    const auto columns = directions_.local.cols();
    for (const NamedArray<Real>& array : network.arrays(moment.model.parameters)) {
      if (array.shape.back() != columns) continue;
      const Matrix rows =
          widen(array.values, static_cast<Eigen::Index>(array.values.size()) / columns, columns)
              .rowwise()
              .normalized();
      if (array.name == "expert_weight_1" + network.layer_ending(layer)) {
        const Matrix local = (rows * directions_.local.transpose()).cwiseAbs();
        const double global = (rows * directions_.global.transpose()).cwiseAbs().maxCoeff();
        values["local_alignment"] = local.colwise().maxCoeff().mean();
        values["local_alignment_least"] = local.colwise().maxCoeff().minCoeff();
        values["global_alignment"] = global;
        values["global_alignment_scaled"] = global * std::sqrt(static_cast<double>(columns));
      }
      if (array.name == "router_weight" + network.layer_ending(layer))
        values["router_alignment"] = (rows * directions_.means.transpose()).colwise().maxCoeff().mean();
    }
  }

 private:
  SingleIndexDirections directions_;
};

}  // namespace

MetricGroup directions_metrics() {
  MetricGroup group = model_metrics<NoMetricOptions, DirectionsMeter>(
      "directions",
      "clusters of single-index models: the directions w of the experts' first layers, ‖w‖ = 1, and the "
      "router's rows; uses no routing",
      {metric("local_alignment", true, "mean over clusters c of max_w |w·w_c|",
              "alignment with local directions", "local"),
       metric("local_alignment_least", true, "the least over clusters c of max_w |w·w_c|",
              "alignment with the worst local direction", "local, least"),
       metric("global_alignment", true, "max_w |w·w_g|", "alignment with the global direction", "global"),
       metric("global_alignment_scaled", true, "√d max_w |w·w_g|; of order 1 at random",
              "alignment with the global direction times √d", "global, times √d"),
       metric("router_alignment", false, "mean over clusters c of max_e cos(θ_e, v_c)",
              "alignment of router rows with means", "router", {&needs::router_weight})});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::model, &single_index};
  set_larger_is_better(group, {"local_alignment", "local_alignment_least", "global_alignment",
                               "global_alignment_scaled", "router_alignment"});
  return group;
}

}  // namespace moelab
