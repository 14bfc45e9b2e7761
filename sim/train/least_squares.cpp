#include "sim/train/least_squares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "sim/base/error.h"
#include "sim/base/numerics.h"
#include "sim/model/measure_places.h"
#include "sim/train/best_fit.h"
#include "sim/train/fit_search.h"
#include "sim/train/sample_loss.h"

namespace moelab {
namespace {

int tries_of(const FitStart& start) {
  const WarmStartOptions* const warm = start.as<WarmStartOptions>();
  return warm ? warm->tries : start.as<ColdStartOptions>()->tries;
}

/// A predicted decrease below kSmallestPromise · L is rounding error. One below kNothing counts as zero, for
/// data without noise.
constexpr double kSmallestPromise = 1e-12, kNothing = 1e-28;
/// The share of the sampling error L p / n below which an optimizer's error is negligible.
constexpr double kNegligible = 1e-3;
/// Keeps directions without curvature, such as a common shift of the gates' biases, out of a step.
constexpr double kStepRidge = 1e-13;
constexpr double kLeastDamping = 1e-12, kMostDamping = 1e12;

/// The quadratic model of L around a point: ∇L and H.
struct Quadratic {
  Vector gradient;
  Matrix curvature;
};

/// H = (2/m) JᵀJ at the loss's parameters, with J = ∂f/∂θ of the first m samples.
Matrix curvature_at(SampleLoss& loss, int most_rows) {
  loss.count_evaluation();
  return 2 * loss.products(std::min(loss.rows(), most_rows));
}

/// Replaces the row and column of a parameter by unit ones if −∇L would push it beyond its bound.
void hold(const std::vector<double>& values, double bound, Quadratic& quadratic) {
  for (Eigen::Index i = 0; i < quadratic.gradient.size(); ++i) {
    const double value = values[static_cast<std::size_t>(i)];
    if (std::abs(value) < bound || value * quadratic.gradient[i] >= 0) continue;
    quadratic.curvature.row(i).setZero();
    quadratic.curvature.col(i).setZero();
    quadratic.curvature(i, i) = 1;
    quadratic.gradient[i] = 0;
  }
}

Vector step_of(const Quadratic& quadratic, double damping) {
  Matrix damped = quadratic.curvature;
  const double ridge = kStepRidge * damped.trace();
  damped.diagonal() *= 1 + damping;
  damped.diagonal().array() += ridge;
  return -least_norm_solution(damped, quadratic.gradient);
}

/// The decrease of L that the quadratic model predicts for a step.
double gain_of(const Quadratic& quadratic, const Vector& step) {
  return -step.dot(quadratic.gradient) - 0.5 * step.dot(quadratic.curvature * step);
}

}  // namespace

bool is_least_squares(const TrainOptions& options) {
  return options.optimizer.as<LeastSquaresOptions>() != nullptr;
}

FitOutcome fit_least_squares(Model<double>& model, const ModelOptions& model_options,
                             const Objective<double>& objective, const TrainingSet<double>& data,
                             const TrainOptions& options, const MixingMeasure* truth, const Seeds& seeds,
                             const TrainCallbacks& callbacks, Workspace<double>& workspace) {
  const LeastSquaresOptions* const optimizer = options.optimizer.as<LeastSquaresOptions>();
  if (!optimizer || !options.steps) {
    throw std::invalid_argument("a least-squares fit needs the optimizer \"lbfgs\" and a number of steps");
  }
  const FitStart start = options.start.value_or(ColdStartOptions{});
  const WarmStartOptions* const warm = start.as<WarmStartOptions>();
  if (warm && !truth)
    throw InvalidOption("train.start", "got \"warm\", needs data of a known mixing measure");
  const double bound = optimizer->bound.value_or(std::numeric_limits<double>::infinity());
  const int evaluations =
      static_cast<int>(std::min<std::int64_t>(*options.steps, std::numeric_limits<int>::max()));
  const std::optional<BestStartOptions> many = many_starts(options.start);
  const SearchStartOptions* const search = start.as<SearchStartOptions>();
  if (optimizer->likelihood) {
    check_likelihood_fit(model_options, options.start);
    const LikelihoodFitSetting setting{model,       model_options, data, *many, *optimizer->likelihood,
                                       evaluations, truth,         seeds};
    return search ? likelihood_search(setting, *search, callbacks) : likelihood_fit(setting, callbacks);
  }
  SampleLoss loss(model, objective, data, bound, callbacks.progress, workspace);
  loss.use_ridge_loss(model_options);
  if (many) {
    const BestFitSetting setting{model,      model_options, objective, data, *many,
                                 *optimizer, evaluations,   truth,     seeds};
    return search ? search_fit(setting, *search, loss, callbacks) : best_fit(setting, loss, callbacks);
  }
  const Network<double>& network = *model.network;
  const auto begin = [&](int attempt) {
    Engine engine = seeds.stream(Purpose::starts, static_cast<std::uint64_t>(attempt));
    if (warm) {
      const MeasurePlaces places(model_options, network);
      places.write(near_truth(*truth, network.experts(), warm->perturbation, engine), model.parameters);
    } else if (attempt > 0) {
      network.initialize({{engine(), seeds.index}}, model.parameters, model.state);
    }
  };
  FitOutcome outcome;
  std::vector<double> best;
  double least = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < tries_of(start) && !outcome.converged; ++attempt) {
    begin(attempt);
    if (attempt == 0) callbacks.record(0);
    std::vector<double> values = descend(loss, optimizer->memory, evaluations, loss.parameters());
    ++outcome.starts;
    outcome.evaluations = loss.evaluations();
    if (loss.interrupted()) {
      outcome.state = TrainState::interrupted;
      return outcome;
    }
    if (values.empty()) continue;
    const double value = loss.evaluate(values.data(), nullptr);
    outcome.converged = loss.has_converged();
    if (outcome.converged || value < least) {
      least = value;
      best = std::move(values);
    }
  }
  if (best.empty()) {
    outcome.state = TrainState::diverged;
    return outcome;
  }
  loss.set_parameters(best.data());
  callbacks.record(outcome.evaluations);
  return outcome;
}

PolishedFit polish(SampleLoss& loss, std::vector<double> start, int steps, int curvature_rows) {
  PolishedFit fit{std::move(start)};
  const std::size_t count = fit.parameters.size();
  std::vector<double> next(count), gradient(count), next_gradient(count);
  fit.loss = loss.evaluate(fit.parameters.data(), gradient.data());
  double damping = 1e-3, growth = 2;
  // Nielsen (1999): λ depends on the ratio of actual to predicted decrease. Each further failure doubles its
  // growth factor.
  const auto lower = [&](const Quadratic& quadratic) {
    for (; damping < kMostDamping && !loss.interrupted(); damping *= growth, growth *= 2) {
      const Vector step = step_of(quadratic, damping);
      for (std::size_t i = 0; i < count; ++i) {
        next[i] =
            std::clamp(fit.parameters[i] + step[static_cast<Eigen::Index>(i)], -loss.bound(), loss.bound());
      }
      const double value = loss.evaluate(next.data(), next_gradient.data());
      if (!(value < fit.loss)) continue;
      const double came_true = (fit.loss - value) / gain_of(quadratic, step);
      damping *= std::clamp(1 - std::pow(2 * came_true - 1, 3), 0.1, 2.0);
      damping = std::max(damping, kLeastDamping);
      growth = 2;
      fit.parameters.swap(next);
      gradient.swap(next_gradient);
      fit.loss = value;
      return true;
    }
    return false;
  };
  for (int i = 0; i <= steps && !loss.interrupted(); ++i) {
    const auto entries = static_cast<Eigen::Index>(count);
    loss.set_parameters(fit.parameters.data());
    Quadratic quadratic{Eigen::Map<const Vector>(gradient.data(), entries),
                        curvature_at(loss, curvature_rows)};
    hold(fit.parameters, loss.bound(), quadratic);
    fit.promised = -0.5 * quadratic.gradient.dot(step_of(quadratic, 0));
    if (fit.promised <= std::max(kSmallestPromise * fit.loss, kNothing)) break;
    if (i == steps || !lower(quadratic)) break;
  }
  const double scale = fit.loss * static_cast<double>(count) / loss.rows();
  fit.converged = fit.promised <= std::max(kNegligible * scale, kNothing);
  return fit;
}

}  // namespace moelab
