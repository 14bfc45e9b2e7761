#pragma once

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"

namespace moelab {

/// probabilities[i] ← softmax(scores[i]) over `columns`, then scores[i] ← log softmax(scores[i]), finite
/// where a probability underflows. Both (rows, stride), padding of `probabilities` zero.
template <class Real>
void log_softmax_rows(Real* scores, Real* probabilities, int rows, int columns, int stride) {
  kernels::softmax_rows(scores, probabilities, rows, columns, stride);
  for (std::ptrdiff_t row = 0; row < rows; ++row) {
    Real* const values = scores + row * stride;
    const std::ptrdiff_t at = std::max_element(values, values + columns) - values;
    const Real peak = values[at], log_peak = std::log(probabilities[row * stride + at]);
    for (int j = 0; j < columns; ++j) values[j] = values[j] - peak + log_peak;
  }
}

}  // namespace moelab
