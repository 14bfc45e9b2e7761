#include "sim/train/least_squares.h"

#include <nlopt.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>

#include "sim/base/error.h"
#include "sim/model/measure_places.h"

namespace moelab {
namespace {

/// NLopt's L-BFGS ends by itself where no entry of the gradient is above 1e-8: of up to a hundred entries the
/// norm is then this.
constexpr double kSmallestGradient = 1e-7;
/// Samples of a block: its arrays stay in the cache. With 1e5 samples and 3 experts an evaluation by blocks
/// takes 0.4 of the time of one pass over all.
constexpr int kBlock = 512;
/// A relative change of L below this is rounding.
constexpr double kSmallestChange = 1e-15;

/// L and its gradient as functions of the free parameters θ alone.
class SampleLoss {
 public:
  SampleLoss(Model<double>& model, const Objective<double>& objective, const TrainingSet<double>& data,
             double bound, const std::function<bool(double)>& progress, Workspace<double>& workspace)
      : model_(model),
        objective_(objective),
        data_(data),
        bound_(bound),
        progress_(progress),
        workspace_(workspace) {
    const std::vector<ParameterGroup>& groups = model.network->groups();
    const auto learns = [&](std::size_t place) {
      return std::any_of(groups.begin(), groups.end(), [&](const ParameterGroup& group) {
        return group.trainable && place >= group.begin && place < group.end;
      });
    };
    for (const auto& [name, places] : array_places(*model.network))
      std::copy_if(places.begin(), places.end(), std::back_inserter(free_), learns);
    gradient_.resize(free_.size());
  }

  std::vector<double> parameters() const {
    std::vector<double> values;
    for (const std::size_t place : free_)
      values.push_back(std::clamp(model_.parameters[place], -bound_, bound_));
    return values;
  }
  void set_parameters(const double* values) {
    for (const std::size_t place : free_) model_.parameters[place] = *values++;
  }

  /// L(θ); `gradient` may be null.
  double evaluate(const double* values, double* gradient) {
    set_parameters(values);
    const double value = sum_over_blocks();
    ++evaluations_;
    double square = 0;
    for (const double entry : gradient_) {
      // At its bound a parameter can follow the gradient to one side alone.
      const bool held = std::abs(*values) >= bound_ && *values * entry < 0;
      ++values;
      if (!held) square += entry * entry;
      if (gradient) *gradient++ = entry;
    }
    gradient_norm_ = std::sqrt(square);
    converged_at_ = std::max(std::sqrt(value) / data_.rows, kSmallestGradient);
    interrupted_ = interrupted_ || progress_(0);
    return value;
  }

  bool has_converged() const { return gradient_norm_ <= converged_at_; }
  bool interrupted() const { return interrupted_; }
  int evaluations() const { return evaluations_; }
  double bound() const { return bound_; }

 private:
  /// L, with its gradient in `gradient_`: the mean over blocks of samples, weighted by their sizes.
  double sum_over_blocks() {
    const std::size_t inputs = size(model_.network->layout().sample_dim());
    const std::size_t targets = size(model_.network->layout().target_dim());
    const int block = separates_samples(*model_.network, objective_) ? kBlock : data_.rows;
    std::fill(gradient_.begin(), gradient_.end(), 0.0);
    double value = 0;
    for (int start = 0; start < data_.rows; start += block) {
      const int rows = std::min(block, data_.rows - start);
      const double share = static_cast<double>(rows) / data_.rows;
      const std::size_t at = size(start);
      value += share * loss_and_gradient(model_, objective_, data_.x.data() + at * inputs,
                                         data_.y.data() + at * targets, rows, workspace_);
      for (std::size_t i = 0; i < free_.size(); ++i) gradient_[i] += share * workspace_.gradient[free_[i]];
    }
    return value;
  }

  Model<double>& model_;
  const Objective<double>& objective_;
  const TrainingSet<double>& data_;
  double bound_;
  const std::function<bool(double)>& progress_;
  Workspace<double>& workspace_;
  std::vector<std::size_t> free_;
  std::vector<double> gradient_;  ///< ∂L/∂θ
  int evaluations_ = 0;
  double gradient_norm_ = 0;
  double converged_at_ = 0;
  bool interrupted_ = false;
};

struct Descent {
  SampleLoss& loss;
  nlopt_opt optimizer;
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> best = {};  ///< the point of least L
};

double evaluate_for_nlopt(unsigned count, const double* values, double* gradient, void* argument) {
  Descent& descent = *static_cast<Descent*>(argument);
  const double value = descent.loss.evaluate(values, gradient);
  // NLopt's line search takes an infinite value for one to turn away from.
  if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
  if (value < descent.least) {
    descent.least = value;
    descent.best.assign(values, values + count);
  }
  if (descent.loss.interrupted()) nlopt_force_stop(descent.optimizer);
  return value;
}

/// The minimum below `values`; empty when no value on the way is finite.
std::vector<double> descend(SampleLoss& loss, int memory, int evaluations, std::vector<double> values) {
  const std::unique_ptr<nlopt_opt_s, decltype(&nlopt_destroy)> optimizer(
      nlopt_create(NLOPT_LD_LBFGS, static_cast<unsigned>(values.size())), nlopt_destroy);
  Descent descent{loss, optimizer.get()};
  nlopt_set_min_objective(optimizer.get(), evaluate_for_nlopt, &descent);
  nlopt_set_vector_storage(optimizer.get(), static_cast<unsigned>(memory));
  nlopt_set_lower_bounds1(optimizer.get(), -loss.bound());
  nlopt_set_upper_bounds1(optimizer.get(), loss.bound());
  nlopt_set_ftol_rel(optimizer.get(), kSmallestChange);
  nlopt_set_maxeval(optimizer.get(), evaluations);
  double value = 0;
  // What it returns is of no use: the gradient at the point tells whether it is a minimum.
  nlopt_optimize(optimizer.get(), values.data(), &value);
  return descent.best;
}

int tries_of(const FitStart& start) {
  const WarmStartOptions* const warm = start.as<WarmStartOptions>();
  return warm ? warm->tries : start.as<ColdStartOptions>()->tries;
}

}  // namespace

bool is_least_squares(const TrainOptions& options) {
  return options.optimizer.as<LeastSquaresOptions>() != nullptr;
}

MixingMeasure near_truth(const MixingMeasure& truth, int experts, double perturbation, Engine& engine) {
  const int components = truth.components();
  const Eigen::Index dim = truth.gate.cols();
  MixingMeasure start{truth.form, Matrix(experts, dim), Vector(experts), Matrix(experts, dim),
                      Vector(experts)};
  for (int i = 0; i < experts; ++i) {
    const int component = i % components;
    const int sharing = (experts - 1 - component) / components + 1;
    const auto moved = [&](double value) { return value + perturbation * draw_normal(engine); };
    for (Eigen::Index j = 0; j < dim; ++j) start.gate(i, j) = moved(truth.gate(component, j));
    for (Eigen::Index j = 0; j < dim; ++j) start.slope(i, j) = moved(truth.slope(component, j));
    start.bias[i] = moved(truth.bias[component] - std::log(static_cast<double>(sharing)));
    start.intercept[i] = moved(truth.intercept[component]);
  }
  return start;
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
  const double bound = optimizer->bound.value_or(std::numeric_limits<double>::infinity());
  const int evaluations =
      static_cast<int>(std::min<std::int64_t>(*options.steps, std::numeric_limits<int>::max()));
  SampleLoss loss(model, objective, data, bound, callbacks.progress, workspace);
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

}  // namespace moelab
