#pragma once

/// The loss of a least-squares fit as a function of the free parameters, and its minimisation.

#include <functional>
#include <memory>
#include <vector>

#include "sim/model/model.h"
#include "sim/train/batches.h"
#include "sim/train/ridge_loss.h"

namespace moelab {

/// L(θ) = (1/n) Σ_i (f_θ(x_i) − y_i)² on the first n samples of a training set, and its gradient. θ (p) are
/// the parameters that learn. State that a training step would change stays constant.
class SampleLoss {
 public:
  /// The arguments must outlive the object. |θ_i| ≤ `bound`. `progress` is called at each evaluation, and
  /// true stops the fit.
  SampleLoss(Model<double>& model, const Objective<double>& objective, const TrainingSet<double>& data,
             double bound, const std::function<bool(double)>& progress, Workspace<double>& workspace);

  /// The model's θ, clamped to the bound.
  std::vector<double> parameters() const;
  void set_parameters(const double* values);
  /// Uses the first `rows` samples from now on. Initially all samples are used.
  void use_rows(int rows) { rows_ = rows; }
  int rows() const { return rows_; }

  /// L(θ); `gradient` (p) may be null.
  double evaluate(const double* values, double* gradient);
  /// Whether ‖∇L‖ ≤ √L / n at the last evaluation. The norm omits entries that push a parameter beyond its
  /// bound.
  bool has_converged() const { return gradient_norm_ <= converged_at_; }
  bool interrupted() const { return interrupted_; }
  int evaluations() const { return evaluations_; }
  double bound() const { return bound_; }

  /// (1/m) JᵀJ (p, p) at the current parameters, with J = ∂f/∂θ of the first m samples. For models with one
  /// output.
  Matrix products(int samples);
  /// Evaluates by RidgeLoss from now on, if it covers the model.
  void use_ridge_loss(const ModelOptions& options);
  bool uses_ridge_loss() const { return ridge_ != nullptr; }
  /// Counts an evaluation. Returns true if the fit must stop.
  bool count_evaluation();

 private:
  double sum_over_blocks();
  void output_gradient(int sample, double* gradient);

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
  std::unique_ptr<RidgeLoss> ridge_;  ///< null: the network evaluates
};

/// Runs limited-memory BFGS from θ = `values` and returns the lowest point that it meets. Empty if no value
/// on the way is finite. It keeps `memory` pairs and evaluates L at most `evaluations` times.
std::vector<double> descend(SampleLoss& loss, int memory, int evaluations, std::vector<double> values);

}  // namespace moelab
