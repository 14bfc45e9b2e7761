#include "analysis/metrics/load.h"

#include "analysis/metrics/co_activation.h"
#include "app/metrics/metric_groups.h"

namespace moelab {
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

}  // namespace moelab
