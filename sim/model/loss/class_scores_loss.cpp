/// A loss that is linear in the router's scores (Chowdhury et al. 2023, stage 1 of separate training).

#include "sim/model/loss/auxiliary_loss.h"

namespace moelab {
namespace {

/// −(1/n) Σ_i Σ_t Σ_e c_ie γ_e(x_it), over n samples and their tokens t. With C classes, expert e belongs to
/// class e mod C, and c_ie = (C y_i,e mod C − 1) / (C − 1): 1 for an expert of the sample's class, and −1 /
/// (C − 1) for others. For two classes and experts this is −y (γ_1 − γ_2), y = ±1. With one output, c_ie =
/// ±y_i for experts in turn. The term is 0 if no targets are known.
struct ClassScores : ValueAndGradient<ClassScores> {
  template <class Real>
  static double sum(const RoutedBatch<Real>& batch, double coefficient,
                    const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& /*scratch*/) {
    const Targets<Real>& targets = batch.targets;
    if (!targets.first) return 0;
    const Routing<Real>& routing = *batch.routing;
    const int rows_of_target = routing.rows / targets.rows;
    double value = 0;
    for (int row = 0; row < routing.rows; ++row) {
      const Real* const y = targets.first + entries(row / rows_of_target, targets.columns);
      for (int e = 0; e < routing.experts; ++e) {
        const std::size_t at = entries(row, routing.stride) + size(e);
        const double slope = -share(targets.columns, y, e) / targets.rows;
        value += slope * static_cast<double>(batch.scores[at]);
        if (gradients.scores) gradients.scores[at] += static_cast<Real>(coefficient * slope);
      }
    }
    return value;
  }

 private:
  template <class Real>
  static double share(int classes, const Real* y, int expert) {
    if (classes == 1) return static_cast<double>(expert % 2 == 0 ? y[0] : -y[0]);
    return (classes * static_cast<double>(y[expert % classes]) - 1) / (classes - 1);
  }
};

}  // namespace

AuxiliaryLossKind class_scores_loss() {
  AuxiliaryLossKind kind =
      auxiliary_loss<ClassScores>("class_scores",
                                  "−(1/n) Σ_i Σ_t Σ_e c_ie γ_e(x_it), c_ie 1 for experts of the sample's "
                                  "class, else −1/(C − 1) (Chowdhury et al. 2023)",
                                  AuxiliaryPath::scores);
  kind.needs_targets = true;
  return kind;
}

}  // namespace moelab
