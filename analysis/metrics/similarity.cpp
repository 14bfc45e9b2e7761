#include "analysis/metrics/similarity.h"

#include <fmt/core.h>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// The columns of an expert's output.
Eigen::Index output_width(const Eigen::Ref<const Matrix>& outputs, int experts) {
  if (experts < 2 || outputs.cols() % experts != 0)
    throw InvalidOption("expert outputs",
                        fmt::format("{} columns of {} experts; needs at least two experts and as "
                                    "many outputs of each",
                                    outputs.cols(), experts));
  return outputs.cols() / experts;
}

}  // namespace

Vector expert_output_similarities(const Eigen::Ref<const Matrix>& outputs, int experts) {
  const Eigen::Index width = output_width(outputs, experts);
  Vector similarities(outputs.rows());
  Vector sum(width);
  for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
    // Σ_{e≠f} ⟨u_e, u_f⟩ = ‖Σ_e u_e‖² − Σ_e ‖u_e‖² for u_e of length one or zero.
    sum.setZero();
    int directed = 0;
    for (int e = 0; e < experts; ++e) {
      const Eigen::Map<const Vector> output(outputs.data() + i * outputs.outerStride() + e * width, width);
      const double norm = output.stableNorm();
      if (norm == 0) continue;
      sum += output / norm;
      ++directed;
    }
    similarities[i] = (sum.squaredNorm() - directed) / (static_cast<double>(experts) * (experts - 1));
  }
  return similarities;
}

Vector task_signal_variances(const Eigen::Ref<const Matrix>& outputs, int experts,
                             const Eigen::Ref<const Matrix>& gradients) {
  const Eigen::Index width = output_width(outputs, experts);
  if (gradients.rows() != outputs.rows() || gradients.cols() > width) {
    throw InvalidOption("gradients", fmt::format("({}, {}) for outputs ({}, {} · {})", gradients.rows(),
                                                 gradients.cols(), outputs.rows(), experts, width));
  }
  Vector variances(outputs.rows());
  Vector signals(experts);
  for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
    for (int e = 0; e < experts; ++e) {
      signals[e] = outputs.row(i).segment(e * width, gradients.cols()).dot(gradients.row(i));
    }
    variances[i] = (signals.array() - signals.mean()).square().mean();
  }
  return variances;
}

}  // namespace moelab
