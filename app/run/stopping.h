#pragma once

/// When a training has come as far as `train.until` asks for, and what it has cost.

#include <vector>

#include "analysis/stats/result_table.h"
#include "sim/train/experiment.h"

namespace moelab {

/// Operations of one training step: 6 P for each row of a batch, P the parameters outside of the experts and
/// those of the experts that a row reaches under the training gating (all, where that fixes no number).
/// Skipped pairs and smaller last batches count as if they were whole.
template <class Real>
double operations_of_step(const Network<Real>& network, const ModelOptions& model, const TrainOptions& train,
                          int train_samples);

/// The rule of one phase of training.
class StoppingRule {
 public:
  StoppingRule(const std::optional<UntilOptions>& until, double operations_of_step)
      : until_(until), operations_(operations_of_step) {}

  /// Whether training ends at the last entry of `trace`, the records of this phase from its place `first` on;
  /// `steps` are those that the phase has done.
  bool is_reached(const std::vector<TraceEntry>& trace, std::size_t first, std::int64_t steps) const;

 private:
  std::optional<UntilOptions> until_;
  double operations_;
};

/// Whether values no longer fall, see PlateauOptions; values that are not finite are left out.
bool is_plateau(const std::vector<double>& values, int records, double relative);

}  // namespace moelab
