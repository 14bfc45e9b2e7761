#include "analysis/metrics/similarity.h"

#include <fmt/core.h>

#include <vector>

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

void check_signals(const Eigen::Ref<const Matrix>& outputs, int experts,
                   const Eigen::Ref<const Matrix>& gradients) {
  const Eigen::Index width = output_width(outputs, experts);
  if (gradients.rows() == outputs.rows() && gradients.cols() <= width) return;
  throw InvalidOption("gradients", fmt::format("({}, {}) for outputs ({}, {} · {})", gradients.rows(),
                                               gradients.cols(), outputs.rows(), experts, width));
}

/// g^T x̃ of a row and an expert.
double signal_of(const Eigen::Ref<const Matrix>& outputs, int experts,
                 const Eigen::Ref<const Matrix>& gradients, Eigen::Index row, int expert) {
  const Eigen::Index width = outputs.cols() / experts;
  return outputs.row(row).segment(expert * width, gradients.cols()).dot(gradients.row(row));
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
  check_signals(outputs, experts, gradients);
  Vector variances(outputs.rows());
  Vector signals(experts);
  for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
    for (int e = 0; e < experts; ++e) signals[e] = signal_of(outputs, experts, gradients, i, e);
    variances[i] = (signals.array() - signals.mean()).square().mean();
  }
  return variances;
}

SignalSpread selected_signal_spread(const Eigen::Ref<const Matrix>& outputs, int experts,
                                    const Eigen::Ref<const Matrix>& gradients,
                                    std::span<const unsigned char> selected) {
  check_signals(outputs, experts, gradients);
  if (selected.size() != static_cast<std::size_t>(outputs.rows() * experts)) {
    throw InvalidOption("selected", fmt::format("{} entries for {} rows of {} experts", selected.size(),
                                                outputs.rows(), experts));
  }
  SignalSpread spread;
  std::vector<double> signals;
  for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
    signals.clear();
    for (int e = 0; e < experts; ++e) {
      if (selected[static_cast<std::size_t>(i * experts + e)])
        signals.push_back(signal_of(outputs, experts, gradients, i, e));
    }
    if (signals.size() < 2) continue;
    const Eigen::Map<const Vector> of_row(signals.data(), static_cast<Eigen::Index>(signals.size()));
    spread.variance += (of_row.array() - of_row.mean()).square().mean();
    spread.square += of_row.array().square().mean();
  }
  return spread;
}

}  // namespace moelab
