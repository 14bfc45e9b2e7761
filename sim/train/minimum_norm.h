#pragma once

/// Steps of minimum norm: experts that are linear in their parameters move to the nearest point that fits the
/// batch.

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/options.h"
#include "sim/model/model.h"
#include "sim/train/optimizer.h"
#include "sim/train/train_options.h"

namespace moelab {

/// The training rule "minimum_norm". J (k, p) is the Jacobian of the batch's k outputs in the experts'
/// parameters w, f the outputs and y the targets.
///
/// Without `ridge`, Δw = η J⁺ (y − f): for linear experts with η = 1 the nearest interpolant (Li et al.
/// 2025). With `ridge` λ, Δw minimises ‖J Δw − (y − f)‖² / k + λ ‖Δw‖², or λ ‖w + Δw‖² for a penalty on
/// `weights`.
struct MinimumNormOptions {
  enum class Penalty { step, weights };
  std::optional<double> ridge = std::nullopt;
  Penalty penalty = Penalty::step;
  void bind(Fields& fields);
};

/// Whether the experts move by minimum norm; the other parameters then follow the gradient, w ← w − η (g + λ
/// w).
bool is_solved(const TrainOptions& options);

/// Throws InvalidOption at "train.optimizer" unless the model has experts and the loss is squared.
void check_minimum_norm(const TrainOptions& options, const ModelOptions& model, const LossOptions& loss);

/// Moves the experts before the gradient of a step is taken. All references must outlive the object.
template <class Real>
class MinimumNormSteps {
 public:
  /// `frozen` are places of the experts' parameters that do not move.
  MinimumNormSteps(const TrainOptions& options, const std::vector<std::size_t>& frozen, Model<Real>& model,
                   Workspace<Real>& workspace);

  /// Moves the experts of step `step` of `steps`, under the routing and the noise of this step. Leaves ‖Δw_e‖
  /// in each mixture's scratch until forget().
  void move(const Samples<Real>& x, const Real* y, int samples, std::int64_t step, std::int64_t steps);
  void forget();

 private:
  /// A parameter of an expert.
  struct Entry {
    std::size_t place = 0;
    int layer = 0, expert = 0;
  };

  MinimumNormOptions options_;
  double rate_;
  Schedule schedule_;
  Model<Real>& model_;
  Workspace<Real>& workspace_;
  std::vector<Entry> entries_;
};

}  // namespace moelab
