#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

struct TrainingMetricOptions {
  void bind(Fields& /*fields*/) {}
};

}  // namespace

MetricGroup training_metrics() {
  MetricGroup group{
      {"training", "how long training was and how it ended; uses no routing", TrainingMetricOptions{},
       TrainingMetricOptions{}},
      {{"train_steps", false, "optimizer steps so far, of all phases", "optimizer steps", "steps"},
       {"train_flops", false,
        "operations of training so far, of all phases: 6 a step for each row of a batch and each parameter "
        "that it reaches under the training gating",
        "operations of training", "operations"},
       {"until_reached",
        false,
        "1 where train.until ended the training, 0 where its steps did; with train.until measured whatever "
        "groups are chosen, at the end",
        "share that train.until ended",
        "ended by train.until",
        {&needs::until}}}};
  group.needs = {&needs::own_data};
  group.by_default = false;
  return group;
}

}  // namespace moelab
