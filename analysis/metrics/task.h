#pragma once

/// Task losses as they are reported (Dikkala et al. 2023: "1 being trivial, 0 perfect"). Uses no routing.

#include <optional>

#include "sim/base/arrays.h"

namespace moelab {

/// Mean squared error over rows and outputs: (1/(n·o)) Σ_ij (f_ij − y_ij)², both arrays (n, o).
/// The optimised loss sums over outputs instead, so it is o times this.
/// Throws InvalidOption when the shapes differ or there are no entries.
double mean_squared_error(const Eigen::Ref<const Matrix>& outputs, const Eigen::Ref<const Matrix>& targets);

/// The loss of the best constant prediction: (1/(n·o)) Σ_ij (y_ij − ȳ_j)², ȳ_j the mean of output j.
/// Exactly 0 when every output is constant. Throws InvalidOption when there are no entries.
double label_variance(const Eigen::Ref<const Matrix>& targets);

/// Loss ÷ label variance of the same array, (n, o) both; none where the labels do not vary.
std::optional<double> normalised_mean_squared_error(const Eigen::Ref<const Matrix>& outputs,
                                                    const Eigen::Ref<const Matrix>& targets);

/// Mean over rows of −Σ_j y_ij log softmax(f_i)_j in nats, both arrays (n, o). The targets y are indicators
/// of classes or other probabilities. Throws InvalidOption when the shapes differ or there are no entries.
double mean_cross_entropy(const Eigen::Ref<const Matrix>& outputs, const Eigen::Ref<const Matrix>& targets);

/// The gradient of the cross-entropy in each row's outputs, without the mean: softmax(f_i) Σ_j y_ij − y_i,
/// (n, o). Throws likewise.
Matrix cross_entropy_gradients(const Eigen::Ref<const Matrix>& outputs,
                               const Eigen::Ref<const Matrix>& targets);

/// Share of rows whose largest output is at the largest target. Of equal outputs the first counts. Throws
/// likewise.
double accuracy(const Eigen::Ref<const Matrix>& outputs, const Eigen::Ref<const Matrix>& targets);

}  // namespace moelab
