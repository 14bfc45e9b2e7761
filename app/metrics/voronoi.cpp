#include "analysis/metrics/voronoi.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/metrics/metric_groups.h"
#include "app/metrics/mixture_components.h"
#include "sim/model/measure_places.h"

namespace moelab {
namespace {

struct VoronoiMetricOptions {
  void bind(Fields& /*fields*/) {}
};

/// An error of parameters: what its column's name begins with, and what it is in words.
struct NamedError {
  const char* name;
  double ParameterErrors::*value;
  const char* words;
  const char* legend;
};
constexpr NamedError kErrors[] = {
    {"expert", &ParameterErrors::expert, "(a, b)", "cells with"},
    {"slope", &ParameterErrors::slope, "a", "a,"},
    {"intercept", &ParameterErrors::intercept, "b", "b,"},
    {"gate", &ParameterErrors::gate, "the gate direction g", "gate,"},
    {"gate_direction", &ParameterErrors::direction, "g / ‖g‖", "g / ‖g‖,"},
    {"gate_length", &ParameterErrors::length, "‖g‖", "‖g‖,"},
};

/// Of the errors: what the name begins and ends with, and where in VoronoiErrors they stand.
struct ErrorKind {
  const char* prefix;
  const char* ending;
  std::optional<ParameterErrors> VoronoiErrors::*errors;
};
constexpr ErrorKind kKinds[] = {
    {"", "_exact", &VoronoiErrors::exact},
    {"", "_over", &VoronoiErrors::over},
    {"unweighted_", "_exact", &VoronoiErrors::exact_unweighted},
    {"unweighted_", "_over", &VoronoiErrors::over_unweighted},
};

std::string error_name(const ErrorKind& kind, const NamedError& error) {
  return fmt::format("{}{}_error{}", kind.prefix, error.name, kind.ending);
}

/// √ of the mean over shared experts of ‖Δ(a, b)‖², each beside the nearest of the truth.
double shared_error(const MixingMeasure& fitted, const MixingMeasure& truth) {
  double sum = 0;
  for (Eigen::Index i = 0; i < fitted.shared_intercept.size(); ++i) {
    double nearest = std::numeric_limits<double>::infinity();
    for (Eigen::Index j = 0; j < truth.shared_intercept.size(); ++j) {
      const double intercept = fitted.shared_intercept[i] - truth.shared_intercept[j];
      nearest = std::min(nearest, (fitted.shared_slope.row(i) - truth.shared_slope.row(j)).squaredNorm() +
                                      intercept * intercept);
    }
    sum += nearest;
  }
  return std::sqrt(sum / static_cast<double>(fitted.shared_intercept.size()));
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
    truth_ = *setting.problem.true_measure();
    components_ = components_of(truth_);
    regression_ = *setting.problem.bayes_prediction(data_.test().x);
  }

  void measure(const TestMoment<Real>& moment, MetricValues& values) override {
    if (!places_) return;
    const std::vector<double> parameters(moment.model.parameters.begin(), moment.model.parameters.end());
    const MixingMeasure fitted = places_->read(parameters);
    const bool even_power = fitted.form.expert == MixtureForm::Expert::power && fitted.form.power % 2 == 0;
    const VoronoiErrors errors = voronoi_errors(components_of(fitted), components_, even_power);
    // Softmax gates leave no pair out here; others are those that were fitted.
    const Network<Real>& network = *moment.model.network;
    const bool is_soft = fitted.form.gate == MixtureForm::Gate::softmax && fitted.form.selected == 0;
    const Matrix fit = data_.test_outputs(moment, is_soft ? network.soft_gating() : network.train_gating());
    values["function_error"] = std::sqrt((fit - regression_).squaredNorm() / static_cast<double>(fit.rows()));
    values["voronoi_loss"] = errors.loss;
    values["voronoi_loss_exact"] = errors.loss_exact;
    values["voronoi_loss_over"] = errors.loss_over;
    values["voronoi_weight_error"] = errors.weight_error;
    values["voronoi_empty_cells"] = errors.empty_cells;
    for (const ErrorKind& kind : kKinds) {
      if (!(errors.*kind.errors)) continue;
      for (const NamedError& error : kErrors)
        values[error_name(kind, error)] = *(errors.*kind.errors).*error.value;
    }
    if (fitted.form.shared > 0) values["shared_expert_error"] = shared_error(fitted, truth_);
  }

 private:
  const MeasuredData<Real>& data_;
  Matrix regression_;  ///< f* (n, 1) on the test set
  std::optional<MeasurePlaces> places_;
  MixingMeasure truth_;
  MixtureComponents components_;
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
        "empty cells"}});
  for (const ErrorKind& kind : kKinds) {
    const bool is_exact = std::string(kind.ending) == "_exact", is_weighted = !*kind.prefix;
    for (const NamedError& error : kErrors) {
      const std::string cells = is_exact ? "one fit" : "several fits";
      group.metrics.push_back(
          {error_name(kind, error), true,
           fmt::format("{} of fits {}, root of the {} square", error.words,
                       is_exact ? "alone in their cell" : "that share a cell",
                       is_weighted ? "weighted mean" : "mean"),
           fmt::format("{}error of {}, cells with {}", is_weighted ? "" : "unweighted ", error.words, cells),
           fmt::format("{} {}{}", error.legend, cells, is_weighted ? "" : ", unweighted")});
    }
  }
  group.metrics.push_back({"shared_expert_error",
                           true,
                           "(a, b) of shared experts against the nearest true one, root of the mean square",
                           "error of shared experts",
                           "shared experts",
                           {&needs::shared_experts}});
  group.by_default = false;
  group.needs = {&needs::model, &needs::true_measure};
  return group;
}

}  // namespace moelab
