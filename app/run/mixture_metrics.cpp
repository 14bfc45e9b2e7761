#include "app/run/mixture_metrics.h"

namespace moelab {
namespace {

void add_errors(const std::optional<ParameterErrors>& errors, const std::string& ending,
                MetricValues& values) {
  if (!errors) return;
  values["gate_error" + ending] = errors->gate;
  values["slope_error" + ending] = errors->slope;
  values["intercept_error" + ending] = errors->intercept;
  values["expert_error" + ending] = errors->expert;
}

}  // namespace

MixtureComponents components_of(const MixingMeasure& measure) {
  return {effective_directions(measure), measure.bias, measure.slope, measure.intercept};
}

MixtureMetrics::MixtureMetrics(const Json& config, const Problem& problem) {
  const MixingMeasure* const truth = problem.true_measure();
  const Json& model = config.at("model");
  if (!truth || model.at("kind") != "moe" || model.at("layers") != 1 || mixture_form(model) != truth->form)
    return;
  if (model.at("router").at("kind") == "linear" && !model.at("router").value("bias", false)) return;
  places_.emplace(model, problem.layout());
  truth_ = components_of(*truth);
}

void MixtureMetrics::add(const std::vector<double>& parameters, MetricValues& values) const {
  const MixingMeasure fitted = places_->read(parameters);
  const bool even_power = fitted.form.expert == MixtureForm::Expert::power && fitted.form.power % 2 == 0;
  const VoronoiErrors errors = voronoi_errors(components_of(fitted), truth_, even_power);
  values["voronoi_loss"] = errors.loss;
  values["voronoi_loss_exact"] = errors.loss_exact;
  values["voronoi_loss_over"] = errors.loss_over;
  values["voronoi_weight_error"] = errors.weight_error;
  values["voronoi_empty_cells"] = errors.empty_cells;
  add_errors(errors.exact, "_exact", values);
  add_errors(errors.over, "_over", values);
}

}  // namespace moelab
