#include "analysis/metrics/voronoi.h"

#include <cmath>

#include "app/metrics/metric_groups.h"
#include "sim/model/measure_places.h"

namespace moelab {
namespace {

struct VoronoiMetricOptions {
  void bind(Fields& /*fields*/) {}
};

void add_errors(const std::optional<ParameterErrors>& errors, const std::string& ending,
                MetricValues& values) {
  if (!errors) return;
  values["gate_error" + ending] = errors->gate;
  values["slope_error" + ending] = errors->slope;
  values["intercept_error" + ending] = errors->intercept;
  values["expert_error" + ending] = errors->expert;
}

/// What voronoi_errors() compares of a measure.
MixtureComponents components_of(const MixingMeasure& measure) {
  return {effective_directions(measure), measure.bias, measure.slope, measure.intercept};
}

/// Measures nothing where the data have no true measure or the model is not of its form.
template <class Real>
class VoronoiMeter final : public Meter<Real> {
 public:
  VoronoiMeter(const VoronoiMetricOptions& /*options*/, const MeterSetting<Real>& setting)
      : data_(setting.data) {
    if (unmet_need("voronoi_loss", setting.subject)) return;
    const ModelOptions& model = setting.experiment.model;
    places_.emplace(model, Network<double>(model, setting.problem.layout()));
    truth_ = components_of(*setting.problem.true_measure());
    regression_ = *setting.problem.bayes_prediction(data_.test().x);
  }

  void measure(const Moment<Real>& moment, MetricValues& values) override {
    if (!places_) return;
    const std::vector<double> parameters(moment.model.parameters.begin(), moment.model.parameters.end());
    const MixingMeasure fitted = places_->read(parameters);
    const bool even_power = fitted.form.expert == MixtureForm::Expert::power && fitted.form.power % 2 == 0;
    const VoronoiErrors errors = voronoi_errors(components_of(fitted), truth_, even_power);
    const Matrix fit = data_.test_outputs(moment, moment.model.network->soft_gating());
    values["function_error"] = std::sqrt((fit - regression_).squaredNorm() / static_cast<double>(fit.rows()));
    values["voronoi_loss"] = errors.loss;
    values["voronoi_loss_exact"] = errors.loss_exact;
    values["voronoi_loss_over"] = errors.loss_over;
    values["voronoi_weight_error"] = errors.weight_error;
    values["voronoi_empty_cells"] = errors.empty_cells;
    add_errors(errors.exact, "_exact", values);
    add_errors(errors.over, "_over", values);
  }

 private:
  const MeasuredData<Real>& data_;
  Matrix regression_;  ///< f* (n, 1) on the test set
  std::optional<MeasurePlaces> places_;
  MixtureComponents truth_;
};

}  // namespace

MetricGroup voronoi_metrics() {
  MetricGroup group = metric_group<VoronoiMetricOptions, VoronoiMeter>(
      "voronoi",
      "a fitted mixture against the true one of moe_regression; fits belong to the nearest true component, "
      "errors are of differences g_i − g_k and of (a, b) (Nguyen et al.); uses no routing",
      {{"voronoi_loss", true, "Voronoi loss D: exact cells with power 1, over-specified with 2, and weights",
        "Voronoi loss", "Voronoi loss"},
       {"function_error", true, "‖f − f*‖, the root mean square of f − f* over the test set", "‖f − f*‖",
        "‖f − f*‖"},
       {"voronoi_loss_exact", true, "its part from cells with one fit", "Voronoi loss, cells with one fit",
        "Voronoi loss, one fit"},
       {"voronoi_loss_over", true, "its part from cells with several fits",
        "Voronoi loss, cells with several fits", "Voronoi loss, several fits"},
       {"voronoi_weight_error", true, "its part from weights, Σ_j |Σ_{i in cell j} w_i − w*_j|",
        "Voronoi loss, weights", "Voronoi loss, weights"},
       {"voronoi_empty_cells", false, "true components without a fit", "true components without a fit",
        "empty cells"},
       {"expert_error_exact", true, "(a, b) of fits alone in their cell, root of the weighted mean square",
        "expert error, cells with one fit", "cells with one fit"},
       {"slope_error_exact", true, "the same for a", "error of a, cells with one fit", "a, one fit"},
       {"intercept_error_exact", true, "the same for b", "error of b, cells with one fit", "b, one fit"},
       {"gate_error_exact", true, "the same for the gate direction g", "gate error, cells with one fit",
        "gate, one fit"},
       {"expert_error_over", true, "(a, b) of fits that share a cell, root of the weighted mean square",
        "expert error, cells with several fits", "cells with several fits"},
       {"slope_error_over", true, "the same for a", "error of a, cells with several fits", "a, several fits"},
       {"intercept_error_over", true, "the same for b", "error of b, cells with several fits",
        "b, several fits"},
       {"gate_error_over", true, "the same for the gate direction g", "gate error, cells with several fits",
        "gate, several fits"}});
  group.by_default = false;
  group.needs = {&needs::model, &needs::true_measure};
  return group;
}

}  // namespace moelab
