#include "analysis/metrics/fluctuation.h"

#include <map>
#include <utility>

#include "analysis/metrics/load.h"
#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

struct FluctuationMetricOptions {
  int k = 2;

  void bind(Fields& fields) {
    fields.add("k", k, between(1, 65536), "K of routing_fluctuation_topk, at most model.experts");
  }
};

void check_size(const AnyOptions& options, const ExperimentOptions& experiment, const std::string& path) {
  check_set_size(options.get<FluctuationMetricOptions>().k, experiment, path);
}

/// Experts of the rows of a layer at its last measurement.
struct Snapshot {
  std::vector<int> serving;    ///< (rows)
  std::vector<int> likeliest;  ///< K for each row
};

template <class Real>
class FluctuationMeter final : public Meter<Real> {
 public:
  FluctuationMeter(const FluctuationMetricOptions& options, const MeterSetting<Real>& /*setting*/)
      : k_(options.k) {}

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& values) override {
    Snapshot& last = last_[moment.layer()];
    const MatrixView probabilities = moment.here.probabilities();
    const bool has_sets = probabilities.cols() > 1;
    const Snapshot before = std::exchange(
        last, {moment.here.serving(), has_sets ? topk_assignment(probabilities, k_) : std::vector<int>()});
    if (before.serving.empty()) return;
    set(values, "routing_fluctuation", routing_fluctuation(before.serving, last.serving));
    if (has_sets)
      set(values, "routing_fluctuation_topk", routing_fluctuation(before.likeliest, last.likeliest, k_));
  }

  void forget() override { last_.clear(); }

 private:
  int k_;
  std::map<int, Snapshot> last_;  ///< by layer
};

}  // namespace

MetricGroup fluctuation_metrics() {
  MetricGroup group = metric_group<FluctuationMetricOptions, FluctuationMeter>(
      "fluctuation",
      "how the routing of the test rows changes from a recorded step to the next; with record_every an "
      "epoch, "
      "between epochs (Nguyen et al. 2025); uses serving, and probabilities for the K likeliest",
      {{"routing_fluctuation", false,
        "share of rows whose serving expert is another than at the record before",
        "share of rows with another expert than before", "fluctuation"},
       {"routing_fluctuation_topk",
        false,
        "share of rows whose set of K likeliest experts is another",
        "share of rows with other likeliest experts than before",
        "fluctuation of sets",
        {&needs::several_experts, &needs::sets_of_k}}});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::step_before};
  group.check = check_size;
  return group;
}

}  // namespace moelab
