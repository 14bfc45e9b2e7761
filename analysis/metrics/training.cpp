/// What training itself reports: its costs, the steps to a target, the errors of population gradients, and
/// auxiliary losses.

#include <cmath>

#include "analysis/metrics/meters.h"
#include "sim/train/measured_gradients.h"

namespace moelab {

MetricGroup training_metrics() {
  MetricGroup group = metric_group(
      "training", "how long training was and how it ended; uses no routing",
      {metric("train_steps", false, "optimizer steps so far, of all phases", "optimizer steps", "steps"),
       metric("train_flops", false,
              "operations of training so far, all phases: 6 a step for each row and each parameter that it "
              "reaches under the training gating",
              "operations of training", "operations"),
       metric("until_reached", false,
              "1 where train.until ended the training, 0 where its steps did; with train.until measured "
              "whatever groups are chosen, at the end",
              "share that train.until ended", "ended by train.until", {&needs::until})});
  group.needs = {&needs::own_data};
  group.by_default = false;
  return group;
}

void ConvergenceMetricOptions::bind(Fields& fields) {
  fields.add("metric", metric, "a metric that the scenario records");
  fields.add("target", target, any_number(), "the value to reach");
  fields.add("direction", direction, {"below", "above"}, "the side of the target to be reached");
  fields.add("name", name, "ends the names of the metrics, steps_to_target.<name>, of one entry of several");
}

void set_steps_to_target(const std::vector<MetricOptions>& groups, const std::vector<TraceEntry>& trace,
                         MetricValues& values) {
  for (const MetricOptions& group : groups) {
    const ConvergenceMetricOptions* const options = group.as<ConvergenceMetricOptions>();
    if (!options) continue;
    std::optional<std::int64_t> first;
    bool is_measured = false;
    for (const TraceEntry& entry : trace) {
      const auto metric = entry.metrics.find(options->metric);
      if (metric == entry.metrics.end() || !std::isfinite(metric->second)) continue;
      is_measured = true;
      const bool has_reached = options->direction == ConvergenceMetricOptions::Direction::below
                                   ? metric->second <= options->target
                                   : metric->second >= options->target;
      if (has_reached && !first) first = entry.step;
    }
    if (!is_measured) continue;
    const std::string ending = options->name ? "." + *options->name : "";
    if (first) values["steps_to_target" + ending] = static_cast<double>(*first);
    values["steps_to_target_censored" + ending] = first ? 0 : 1;
  }
}

MetricGroup convergence_metrics() {
  MetricGroup group = metric_group<ConvergenceMetricOptions>(
      "convergence", "how soon a metric reaches a target; uses what that metric uses",
      {metric("steps_to_target", true,
              "first recorded step with the metric at its target or beyond; empty if none, then it is "
              "right-censored at the last step",
              "steps to the target", "steps to target"),
       metric("steps_to_target_censored", false, "1 where no recorded step reached the target, else 0",
              "share that did not reach the target", "censored")});
  group.by_default = false;
  group.needs = {&needs::model};
  group.of_entries = true;
  return group;
}

namespace {

template <class Real>
class GradientMeter final : public ModelMeter<Real> {
 public:
  GradientMeter(const NoMetricOptions& /*options*/, const MeterSetting<Real>& setting) : setting_(setting) {}

  void measure(const TestMoment<Real>& moment, MetricValues& values) override {
    // The gradient belongs to the training population, not to an evaluation.
    if (unmet_need("population_gradient_norm", setting_.subject)) return;
    const TrainOptions& train = setting_.experiment.train;
    const GradientError error =
        population_gradient_error(moment.model, moment.objective, setting_.problem, train, setting_.seeds,
                                  static_cast<std::uint64_t>(moment.step), moment.workspace);
    values["population_gradient_norm"] = error.norm;
    values["population_gradient_standard_error"] = error.standard_error;
  }

 private:
  MeterSetting<Real> setting_;
};

template <class Real>
class AuxiliaryLossesMeter final : public ModelMeter<Real> {
 public:
  AuxiliaryLossesMeter(const NoMetricOptions& /*options*/, const MeterSetting<Real>& setting)
      : data_(setting.data) {}

  void measure_layer(const TestMoment<Real>& moment, int layer, MetricValues& values) override {
    const Model<Real>& model = moment.model;
    const Network<Real>& network = *model.network;
    const PlacedBlock<Real>& placed = network.placed_mixture(layer);
    MixtureScratch<Real>& scratch = network.mixture_scratch(layer, moment.workspace);
    const AuxiliaryLosses& losses = moment.objective.losses;
    const std::vector<AuxiliaryLossKind>& kinds = auxiliary_loss_kinds();
    const double rows = static_cast<double>(data_.rows());
    std::vector<double> means(kinds.size(), 0.0);
    const MatrixOf<Real> targets = data_.target_rows(data_.test().y).template cast<Real>();
    visit_blocks<Real>(
        model, network.train_gating(), data_.test_inputs(), data_.samples(), moment.workspace,
        [&](int first) {
          placed.mixture->pair_outputs(network.values(placed, model.parameters, model.state), scratch);
          RoutedBatch<Real> batch = placed.mixture->routed_batch(scratch, true);
          if (!data_.has_ids()) {
            const auto rows_of_target = static_cast<int>(data_.rows() / targets.rows());
            batch.targets = {targets.data() + first / rows_of_target * targets.cols(),
                             batch.routing->rows / rows_of_target, static_cast<int>(targets.cols())};
          }
          const std::vector<double> block = losses.values(batch, scratch.auxiliary);
          const double share = scratch.routing().rows / rows;
          for (std::size_t t = 0; t < kinds.size(); ++t) means[t] += share * block[t];
        });
    for (std::size_t t = 0; t < kinds.size(); ++t) {
      values[kinds[t].name + "_loss"] = means[t];
      values[kinds[t].name + "_loss_weighted"] = losses.coefficient(t) * means[t];
    }
  }

 private:
  const MeasuredData<Real>& data_;
};

std::vector<MetricGroup::Metric> metrics_of_kinds() {
  std::vector<MetricGroup::Metric> metrics;
  for (const AuxiliaryLossKind& kind : auxiliary_loss_kinds()) {
    // Variance terms and the negative information are negative by definition.
    const bool positive = kind.name.rfind("variance", 0) != 0 && kind.name != "mutual_information" &&
                          kind.name != "class_scores";
    metrics.push_back(metric(kind.name + "_loss", positive, "the term that loss." + kind.name + " weighs",
                             kind.name + " loss", kind.name + " loss"));
    metrics.push_back(metric(kind.name + "_loss_weighted", false, "times its coefficient",
                             kind.name + " loss × coefficient", kind.name + ", weighted"));
  }
  return metrics;
}

}  // namespace

MetricGroup gradient_metrics() {
  MetricGroup group = model_metrics<NoMetricOptions, GradientMeter>(
      "gradient",
      "how well population gradients are known; empty for sample gradients; uses the routing of training",
      {metric("population_gradient_norm", true,
              "norm of the gradient, mean over 8 independent rules; its square exceeds that of the exact "
              "gradient by standard error² ÷ 8 on average",
              "norm of the population gradient", "gradient"),
       metric("population_gradient_standard_error", true,
              "standard error of a single rule's gradient, as a norm",
              "standard error of the population gradient", "standard error")});
  group.needs = {&needs::own_data, &needs::population_gradient};
  return group;
}

MetricGroup auxiliary_losses_metrics() {
  MetricGroup group = model_metrics<NoMetricOptions, AuxiliaryLossesMeter>(
      "auxiliary_losses",
      "losses on the routing of the test rows, in blocks of 1024 under the training gating. Training need "
      "not add them. See the fields of loss. It uses probabilities and what gating.train selects",
      metrics_of_kinds());
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::model};
  return group;
}

}  // namespace moelab
