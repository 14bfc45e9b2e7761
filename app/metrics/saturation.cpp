#include <algorithm>
#include <map>
#include <utility>

#include "analysis/metrics/fluctuation.h"
#include "analysis/metrics/load.h"
#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

struct SaturationMetricOptions {
  int k = 2;

  void bind(Fields& fields) {
    fields.add("k", k, between(1, 65536), "experts of a row's set, at most model.experts");
  }
};

void check_saturation(const AnyOptions& options, const ExperimentOptions& experiment,
                      const std::string& path) {
  check_set_size(options.get<SaturationMetricOptions>().k, experiment, path);
}

/// Keeps every row's set of each record until the last is known.
template <class Real>
class SaturationMeter final : public Meter<Real> {
 public:
  SaturationMeter(const SaturationMetricOptions& options, const MeterSetting<Real>& setting)
      : k_(options.k), applies_(!unmet_need("routing_saturation", setting.subject)) {}

  void measure_layer(const LayerMoment<Real>& at, MetricValues& /*values*/) override {
    if (!applies_) return;
    const std::vector<int> sets = topk_assignment(at.here.probabilities(), k_);
    sets_[{at.layer(), at.moment.step}].assign(sets.begin(), sets.end());
  }

  void complete_layer(std::int64_t step, int layer, MetricValues& values) override {
    const auto now = sets_.find({layer, step});
    if (now == sets_.end()) return;
    const auto last = std::prev(sets_.lower_bound({layer + 1, 0}));
    values["routing_saturation"] = routing_saturation(widened(now->second), widened(last->second), k_);
  }

 private:
  using Sets = std::vector<std::uint16_t>;  ///< K experts for each row, of at most 65536
  static std::vector<int> widened(const Sets& sets) { return {sets.begin(), sets.end()}; }

  int k_;
  bool applies_;
  std::map<std::pair<int, std::int64_t>, Sets> sets_;  ///< by layer and step
};

}  // namespace

MetricGroup saturation_metrics() {
  MetricGroup group = metric_group<SaturationMetricOptions, SaturationMeter>(
      "saturation",
      "how settled the routing of the test rows is, held against that at the last step (Muennighoff et al. "
      "2024); keeps the sets of all records until then; uses probabilities",
      {{"routing_saturation", false,
        "mean over rows of the share of the K likeliest experts that are among the K at the last step",
        "share of likeliest experts kept to the end", "saturation"}});
  group.by_default = false;
  group.of_layers = true;
  group.check = check_saturation;
  group.needs = {&needs::router, &needs::several_experts, &needs::last_step};
  group.kept_bytes = [](const AnyOptions& options) {
    return sizeof(std::uint16_t) * static_cast<double>(options.get<SaturationMetricOptions>().k);
  };
  return group;
}

}  // namespace moelab
