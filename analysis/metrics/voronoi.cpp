#include "analysis/metrics/voronoi.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/metrics/meters.h"
#include "sim/base/error.h"
#include "sim/model/measure_places.h"

namespace moelab {
namespace {

constexpr double kMostMaps = 1e6;

/// Δ of a fit from a true component.
struct Difference {
  Eigen::RowVectorXd gate;  // without the common shift
  Eigen::RowVectorXd true_gate;
  Eigen::RowVectorXd slope;
  double intercept = 0;
  double expert_square() const { return slope.squaredNorm() + intercept * intercept; }
};

using Differences = std::vector<std::vector<Difference>>;  // [fit][true component]

Differences all_differences(const MixtureComponents& fitted, const MixtureComponents& truth,
                            bool even_power) {
  Differences all(static_cast<std::size_t>(fitted.weight.size()));
  for (Eigen::Index i = 0; i < fitted.weight.size(); ++i) {
    for (Eigen::Index j = 0; j < truth.weight.size(); ++j) {
      const auto with_sign = [&](double sign) {
        return Difference{fitted.gate.row(i) - truth.gate.row(j), truth.gate.row(j),
                          sign * fitted.slope.row(i) - truth.slope.row(j),
                          sign * fitted.intercept[i] - truth.intercept[j]};
      };
      const Difference plain = with_sign(1), flipped = with_sign(-1);
      const bool flip = even_power && flipped.expert_square() < plain.expert_square();
      all[static_cast<std::size_t>(i)].push_back(flip ? flipped : plain);
    }
  }
  return all;
}

/// The map that minimises Σ_i w_i ‖Δ_i‖², and its shift.
struct Alignment {
  std::vector<int> cells;
  Eigen::RowVectorXd shift;
};

Alignment best_alignment(const Differences& differences, const Vector& weights, Eigen::Index shifted) {
  const std::size_t fits = differences.size(), components = differences.front().size();
  double least = std::numeric_limits<double>::infinity();
  std::vector<int> cells(fits, 0);
  // The first map remains if no map has a finite cost.
  Alignment best{cells, Eigen::RowVectorXd::Zero(differences[0][0].gate.size())};
  for (std::size_t place = 0; place < fits;) {
    Eigen::RowVectorXd shift = Eigen::RowVectorXd::Zero(differences[0][0].gate.size());
    double cost = 0;
    for (std::size_t i = 0; i < fits; ++i) {
      const Difference& difference = differences[i][static_cast<std::size_t>(cells[i])];
      const double weight = weights[static_cast<Eigen::Index>(i)];
      shift -= weight * difference.gate;
      cost += weight * (difference.gate.squaredNorm() + difference.expert_square());
    }
    shift.tail(shift.size() - shifted).setZero();
    cost -= shift.squaredNorm();  // where there is a shift, the weights sum to 1
    if (cost < least) {
      least = cost;
      best = {cells, shift};
    }
    // The next map, counting up from the first place.
    for (place = 0; place < fits; ++place) {
      if (++cells[place] < static_cast<int>(components)) break;
      cells[place] = 0;
    }
  }
  return best;
}

/// Sums of w ‖Δ‖² over some fits.
struct Sums {
  double weight = 0, gate = 0, direction = 0, length = 0, slope = 0, intercept = 0;
  void add(double w, const Difference& difference) {
    weight += w;
    gate += w * difference.gate.squaredNorm();
    const Eigen::RowVectorXd found = difference.true_gate + difference.gate;
    const double true_length = difference.true_gate.norm(), found_length = found.norm();
    length += w * (found_length - true_length) * (found_length - true_length);
    if (true_length > 0 && found_length > 0)
      direction += w * (found / found_length - difference.true_gate / true_length).squaredNorm();
    slope += w * difference.slope.squaredNorm();
    intercept += w * difference.intercept * difference.intercept;
  }
  std::optional<ParameterErrors> errors() const {
    if (weight == 0) return std::nullopt;
    const auto root = [&](double sum) { return std::sqrt(sum / weight); };
    return ParameterErrors{root(gate),  root(direction), root(length),
                           root(slope), root(intercept), root(slope + intercept)};
  }
};

/// R for this many fits in a cell.
std::optional<double> order_of(std::ptrdiff_t fits) {
  if (fits == 2) return 4;
  if (fits == 3) return 6;
  return std::nullopt;
}

/// An error of parameters: the beginning of its column's name, words for it in a sentence, and in a legend.
struct NamedError {
  const char* name;
  double ParameterErrors::*value;
  const char* words;
  const char* legend;
};
constexpr NamedError kErrors[] = {
    {"expert", &ParameterErrors::expert, "(a, b)", "(a, b)"},
    {"slope", &ParameterErrors::slope, "a", "a"},
    {"intercept", &ParameterErrors::intercept, "b", "b"},
    {"gate", &ParameterErrors::gate, "the gate direction g", "gate"},
    {"gate_direction", &ParameterErrors::direction, "g / ‖g‖", "g / ‖g‖"},
    {"gate_length", &ParameterErrors::length, "‖g‖", "‖g‖"},
};

/// A kind of errors: how the column's name begins and ends, and the member of VoronoiErrors.
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

/// Root of the mean over shared experts of ‖Δ(a, b)‖², each compared with the nearest true one.
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
class VoronoiMeter final : public ModelMeter<Real> {
 public:
  VoronoiMeter(const NoMetricOptions& /*options*/, const MeterSetting<Real>& setting) : data_(setting.data) {
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
    const VoronoiErrors errors = voronoi_errors(components_of(fitted), components_, !has_signs(fitted.form));
    // Softmax gates are measured with all experts, other gates as they were fitted.
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

VoronoiErrors voronoi_errors(const MixtureComponents& fitted, const MixtureComponents& truth,
                             bool even_power) {
  const double maps =
      std::pow(static_cast<double>(truth.weight.size()), static_cast<double>(fitted.weight.size()));
  if (maps > kMostMaps) {
    throw InvalidOption("model.experts", fmt::format("{} fits of {} components are too many to match",
                                                     fitted.weight.size(), truth.weight.size()));
  }
  const Vector& weights = fitted.weight;
  Vector missing = truth.weight;
  const Differences differences = all_differences(fitted, truth, even_power);
  const Alignment alignment = best_alignment(differences, weights, truth.shifted);
  VoronoiErrors result;
  result.cells = alignment.cells;
  result.shift = alignment.shift;
  Sums exact, over, exact_unweighted, over_unweighted;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    const int cell = result.cells[i];
    const double weight = weights[static_cast<Eigen::Index>(i)];
    missing[cell] -= weight;
    Difference difference = differences[i][static_cast<std::size_t>(cell)];
    difference.gate += alignment.shift;
    const double gate = difference.gate.norm(), expert = std::sqrt(difference.expert_square());
    if (std::count(result.cells.begin(), result.cells.end(), cell) == 1) {
      exact.add(weight, difference);
      exact_unweighted.add(1, difference);
      result.loss_exact += weight * (gate + expert);
    } else {
      over.add(weight, difference);
      over_unweighted.add(1, difference);
      result.loss_over += weight * (gate * gate + expert * expert);
    }
  }
  for (int j = 0; j < truth.weight.size(); ++j) {
    result.empty_cells += std::count(result.cells.begin(), result.cells.end(), j) == 0 ? 1 : 0;
  }
  result.weight_error = missing.cwiseAbs().sum();
  result.loss = result.loss_exact + result.loss_over + result.weight_error;
  result.exact = exact.errors();
  result.over = over.errors();
  result.exact_unweighted = exact_unweighted.errors();
  result.over_unweighted = over_unweighted.errors();
  return result;
}

GaussianErrors gaussian_errors(const MixtureComponents& fitted, const Vector& fitted_variance,
                               const MixtureComponents& truth, const Vector& true_variance,
                               const VoronoiErrors& errors) {
  GaussianErrors found;
  double loss = errors.weight_error;
  bool is_known = true;
  struct Sum {
    double weight = 0, square = 0;
    std::optional<double> root() const {
      if (weight == 0) return std::nullopt;
      return std::sqrt(square / weight);
    }
  } exact, over;
  for (Eigen::Index i = 0; i < fitted.weight.size(); ++i) {
    const int cell = errors.cells[static_cast<std::size_t>(i)];
    const double weight = fitted.weight[i];
    const double gate = (fitted.gate.row(i) - truth.gate.row(cell) + errors.shift).norm(),
                 slope = (fitted.slope.row(i) - truth.slope.row(cell)).norm(),
                 intercept = std::abs(fitted.intercept[i] - truth.intercept[cell]),
                 variance = std::abs(fitted_variance[i] - true_variance[cell]);
    const auto fits = std::count(errors.cells.begin(), errors.cells.end(), cell);
    Sum& sum = fits == 1 ? exact : over;
    sum.weight += weight;
    sum.square += weight * variance * variance;
    if (fits == 1) {
      loss += weight * (gate + slope + intercept + variance);
      continue;
    }
    const std::optional<double> order = order_of(fits);
    is_known = is_known && order;
    const double r = order.value_or(0);
    loss += weight *
            (std::pow(gate, r) + std::pow(intercept, r) + std::pow(slope, r / 2) + std::pow(variance, r / 2));
  }
  if (is_known) found.loss = loss;
  found.exact = exact.root();
  found.over = over.root();
  return found;
}

MetricGroup voronoi_metrics() {
  MetricGroup group = model_metrics<NoMetricOptions, VoronoiMeter>(
      "voronoi",
      "a fitted mixture against the true one of moe_regression. A fit belongs to the nearest true component. "
      "Errors compare g_i − g_k and (a, b) (Nguyen et al.). It uses no routing",
      {metric("voronoi_loss", true,
              "Voronoi loss D: exact cells with power 1, over-specified with 2, and weights", "Voronoi loss",
              "Voronoi loss"),
       metric("function_error", true, "‖f − f*‖, the root mean square of f − f* over the test set",
              "‖f − f*‖", "‖f − f*‖"),
       metric("voronoi_loss_exact", true, "part of voronoi_loss from cells with one fit",
              "Voronoi loss, cells with one fit", "Voronoi loss, one fit"),
       metric("voronoi_loss_over", true, "part of voronoi_loss from cells with several fits",
              "Voronoi loss, cells with several fits", "Voronoi loss, several fits"),
       metric("voronoi_weight_error", true,
              "part of voronoi_loss from weights, Σ_j |Σ_{i in cell j} w_i − w*_j|", "Voronoi loss, weights",
              "Voronoi loss, weights"),
       metric("voronoi_empty_cells", false, "true components without a fit", "true components without a fit",
              "empty cells")});
  for (const ErrorKind& kind : kKinds) {
    const bool is_exact = std::string(kind.ending) == "_exact", is_weighted = !*kind.prefix;
    for (const NamedError& error : kErrors) {
      const std::string cells = is_exact ? "one fit" : "several fits";
      group.metrics.push_back(metric(
          error_name(kind, error), true,
          fmt::format("{} of fits {}, root of the {} square", error.words,
                      is_exact ? "alone in their cell" : "that share a cell",
                      is_weighted ? "weighted mean" : "mean"),
          fmt::format("{}error of {}, cells with {}", is_weighted ? "" : "unweighted ", error.words, cells),
          fmt::format("{}, {}{}", error.legend, cells, is_weighted ? "" : ", unweighted")));
    }
  }
  group.metrics.push_back(
      metric("shared_expert_error", true,
             "(a, b) of shared experts against the nearest true one, root of the mean square",
             "error of shared experts", "shared experts", {&needs::shared_experts}));
  group.by_default = false;
  group.needs = {&needs::model, &needs::true_measure};
  return group;
}

}  // namespace moelab
