#pragma once

/// The loss of a least-squares fit as a function of the free parameters alone, and descents on it.

#include <functional>
#include <vector>

#include "sim/model/model.h"
#include "sim/train/batches.h"

namespace moelab {

/// L(θ) = (1/n) Σ_i (f_θ(x_i) − y_i)² on the first n samples of a training set, and its gradient, θ (p) being
/// the parameters that learn. What a training step changes beside them stays as it is.
class SampleLoss {
 public:
  /// What is given has to outlive it. |θ_i| ≤ `bound`. `progress` says of each evaluation whether to stop.
  SampleLoss(Model<double>& model, const Objective<double>& objective, const TrainingSet<double>& data,
             double bound, const std::function<bool(double)>& progress, Workspace<double>& workspace);

  /// θ of the model, within the bound.
  std::vector<double> parameters() const;
  void set_parameters(const double* values);
  /// Takes the first `rows` samples from now on; at first it takes all.
  void use_rows(int rows) { rows_ = rows; }
  int rows() const { return rows_; }

  /// L(θ); `gradient` (p) may be null.
  double evaluate(const double* values, double* gradient);
  /// Whether ‖∇L‖ ≤ √L / n at the last evaluation, entries that push a parameter beyond its bound left out.
  bool has_converged() const { return gradient_norm_ <= converged_at_; }
  bool interrupted() const { return interrupted_; }
  int evaluations() const { return evaluations_; }
  double bound() const { return bound_; }

  /// ∇f_θ(x_i) at the current parameters in `gradient` (p). For models with one output.
  void output_gradient(int sample, double* gradient);
  /// Counts as an evaluation; true where it is to stop.
  bool count_evaluation();

 private:
  double sum_over_blocks();

  Model<double>& model_;
  const Objective<double>& objective_;
  const TrainingSet<double>& data_;
  double bound_;
  const std::function<bool(double)>& progress_;
  Workspace<double>& workspace_;
  std::vector<std::size_t> free_;
  std::vector<double> gradient_;  ///< ∂L/∂θ
  int rows_;
  int evaluations_ = 0;
  double gradient_norm_ = 0;
  double converged_at_ = 0;
  bool interrupted_ = false;
};

/// The least point that limited-memory BFGS meets from θ on; empty when no value on the way is finite.
/// `memory` pairs are kept, and L evaluated at most `evaluations` times.
std::vector<double> descend(SampleLoss& loss, int memory, int evaluations, std::vector<double> values);

}  // namespace moelab
