#pragma once

/// Random inputs of benchmarks.

#include "sim/base/arrays.h"
#include "sim/base/kernels/kernels.h"
#include "sim/base/random.h"

namespace moelab {

/// Standard normals (rows, columns) in rows that are padded(columns) apart, with zero padding as in training.
inline AlignedVector<float> normals(int rows, int columns, std::uint64_t stream = 0) {
  const int stride = kernels::padded(columns);
  AlignedVector<float> values(entries(rows, stride));
  Engine engine = Seeds{1, 0}.stream(Purpose::evaluation, stream);
  for (int row = 0; row < rows; ++row) {
    for (int j = 0; j < columns; ++j)
      values[entries(row, stride) + size(j)] = static_cast<float>(draw_normal(engine));
  }
  return values;
}

}  // namespace moelab
