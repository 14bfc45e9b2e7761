#include "sim/train/sample_loss.h"

#include <nlopt.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>

#include "sim/model/network.h"

namespace moelab {
namespace {

/// NLopt's L-BFGS stops when no entry of the gradient exceeds 1e-8. For up to a hundred entries the norm is
/// then at most this value.
constexpr double kSmallestGradient = 1e-7;
/// Samples of a block, whose arrays fit in the cache. With 1e5 samples and 3 experts, an evaluation by blocks
/// takes 0.4 times as long as one pass over all samples.
constexpr int kBlock = 512;
/// A relative change of L below this value is rounding error.
constexpr double kSmallestChange = 1e-15;

/// The loss Σ_i f(x_i) / n. With one sample its gradient is ∇f.
class MeanOutput final : public TaskLoss<double> {
 public:
  double value_and_gradient(const double* outputs, const double* /*targets*/, int rows, int output_dim,
                            double* output_gradient) const override {
    const int stride = kernels::padded(output_dim);
    std::fill_n(output_gradient, entries(rows, stride), 0.0);
    double total = 0;
    for (int row = 0; row < rows; ++row) {
      total += outputs[entries(row, stride)];
      output_gradient[entries(row, stride)] = 1.0 / rows;
    }
    return total / rows;
  }
};

struct Descent {
  SampleLoss& loss;
  nlopt_opt optimizer;
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> best = {};       ///< the point with the least L
  std::exception_ptr error = nullptr;  ///< exception of an evaluation
};

double evaluate_point(Descent& descent, unsigned count, const double* values, double* gradient) {
  const double value = descent.loss.evaluate(values, gradient);
  // NLopt's line search turns away from an infinite value.
  if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
  if (value < descent.least) {
    descent.least = value;
    descent.best.assign(values, values + count);
  }
  if (descent.loss.interrupted()) nlopt_force_stop(descent.optimizer);
  return value;
}

/// Stores exceptions. They must not pass through NLopt, since its C frames would not free their memory.
double evaluate_for_nlopt(unsigned count, const double* values, double* gradient, void* argument) {
  Descent& descent = *static_cast<Descent*>(argument);
  try {
    return evaluate_point(descent, count, values, gradient);
  } catch (...) {
    descent.error = std::current_exception();
    nlopt_force_stop(descent.optimizer);
    return std::numeric_limits<double>::infinity();
  }
}

}  // namespace

SampleLoss::SampleLoss(Model<double>& model, const Objective<double>& objective,
                       const TrainingSet<double>& data, double bound,
                       const std::function<bool(double)>& progress, Workspace<double>& workspace)
    : model_(model),
      objective_(objective),
      data_(data),
      bound_(bound),
      progress_(progress),
      workspace_(workspace),
      rows_(data.rows) {
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

std::vector<double> SampleLoss::parameters() const {
  std::vector<double> values;
  for (const std::size_t place : free_)
    values.push_back(std::clamp(model_.parameters[place], -bound_, bound_));
  return values;
}

void SampleLoss::set_parameters(const double* values) {
  for (const std::size_t place : free_) model_.parameters[place] = *values++;
}

bool SampleLoss::count_evaluation() {
  ++evaluations_;
  interrupted_ = interrupted_ || progress_(0);
  return interrupted_;
}

double SampleLoss::evaluate(const double* values, double* gradient) {
  set_parameters(values);
  const double value =
      ridge_ ? ridge_->evaluate(model_.parameters, rows_, gradient_.data()) : sum_over_blocks();
  double square = 0;
  for (const double entry : gradient_) {
    // A parameter at its bound can follow the gradient in one direction only.
    const bool held = std::abs(*values) >= bound_ && *values * entry < 0;
    ++values;
    if (!held) square += entry * entry;
    if (gradient) *gradient++ = entry;
  }
  gradient_norm_ = std::sqrt(square);
  converged_at_ = std::max(std::sqrt(value) / rows_, kSmallestGradient);
  count_evaluation();
  return value;
}

/// Returns L and writes its gradient to `gradient_`: the mean over blocks of samples, weighted by their
/// sizes.
double SampleLoss::sum_over_blocks() {
  const std::size_t targets = size(model_.network->layout().target_dim());
  const int block = separates_samples(*model_.network, objective_) ? kBlock : rows_;
  std::fill(gradient_.begin(), gradient_.end(), 0.0);
  double value = 0;
  for (int start = 0; start < rows_; start += block) {
    const int rows = std::min(block, rows_ - start);
    const double share = static_cast<double>(rows) / rows_;
    const std::size_t at = size(start);
    value += share * loss_and_gradient(model_, objective_, data_.samples(start, model_.network->layout()),
                                       data_.y.data() + at * targets, rows, workspace_);
    for (std::size_t i = 0; i < free_.size(); ++i) gradient_[i] += share * workspace_.gradient[free_[i]];
  }
  return value;
}

void SampleLoss::use_ridge_loss(const ModelOptions& options) {
  if (separates_samples(*model_.network, objective_))
    ridge_ = RidgeLoss::make(options, *model_.network, data_, free_);
}

Matrix SampleLoss::products(int samples) {
  if (ridge_) return ridge_->products(model_.parameters, samples);
  const auto count = static_cast<Eigen::Index>(free_.size());
  Matrix sums = Matrix::Zero(count, count);
  Vector row(count);
  for (int i = 0; i < samples; ++i) {
    output_gradient(i, row.data());
    sums.selfadjointView<Eigen::Lower>().rankUpdate(row);
  }
  return Matrix(sums.selfadjointView<Eigen::Lower>()) / samples;
}

/// Writes ∇f_θ(x_i) to `gradient` (p).
void SampleLoss::output_gradient(int sample, double* gradient) {
  const MeanOutput output;
  loss_and_gradient<double>(model_, {output}, data_.samples(sample, model_.network->layout()),
                            data_.y.data() + size(sample), 1, workspace_);
  for (const std::size_t place : free_) *gradient++ = workspace_.gradient[place];
}

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
  // Ignore the returned status: the gradient at the point shows whether it is a minimum.
  nlopt_optimize(optimizer.get(), values.data(), &value);
  if (descent.error) std::rethrow_exception(descent.error);
  return descent.best;
}

}  // namespace moelab
