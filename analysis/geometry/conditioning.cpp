#include "analysis/geometry/conditioning.h"

#include <fmt/core.h>

#include <limits>

#include "sim/base/error.h"
#include "sim/base/linear_algebra.h"

namespace moelab {

Conditioning conditioning(const Matrix& symmetric) {
  if (symmetric.rows() == 0 || symmetric.rows() != symmetric.cols())
    throw InvalidOption("matrix", fmt::format("shape ({}, {}); eigenvalues need a square matrix",
                                              symmetric.rows(), symmetric.cols()));
  const Vector values = symmetric_eigenvalues(symmetric);
  const Vector sizes = values.cwiseAbs();
  const double rounding =
      static_cast<double>(values.size()) * std::numeric_limits<double>::epsilon() * sizes.maxCoeff();
  const double condition =
      sizes.minCoeff() == 0 ? std::numeric_limits<double>::infinity() : sizes.maxCoeff() / sizes.minCoeff();
  return {condition, values.maxCoeff(), values.minCoeff(),
          static_cast<int>((values.array() < -rounding).count())};
}

Matrix transformed_covariance(const Matrix& covariance, const Vector& weights) {
  return weights.asDiagonal() * covariance * weights.asDiagonal();
}

}  // namespace moelab
