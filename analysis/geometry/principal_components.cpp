#include "analysis/geometry/principal_components.h"

#include <fmt/core.h>

#include "sim/base/error.h"
#include "sim/base/linear_algebra.h"

namespace moelab {

PrincipalComponents principal_components(const Eigen::Ref<const Matrix>& x, int components) {
  if (x.rows() == 0) throw InvalidOption("x", "has no rows");
  if (components < 1 || components > x.cols()) {
    throw InvalidOption("components",
                        fmt::format("got {}, needs 1 to {}, the columns of x", components, x.cols()));
  }
  const Vector centre = x.colwise().mean();
  const Matrix centred = x.rowwise() - centre.transpose();
  const Matrix covariance = centred.transpose() * centred / static_cast<double>(x.rows());
  const SymmetricEigen eigen = symmetric_eigen(covariance);
  // Eigenvalues ascend.
  Matrix directions = eigen.vectors.rightCols(components).rowwise().reverse();
  for (Eigen::Index k = 0; k < components; ++k) {
    Eigen::Index largest = 0;
    directions.col(k).cwiseAbs().maxCoeff(&largest);
    if (directions(largest, k) < 0) directions.col(k) *= -1;
  }
  const double total = covariance.trace();
  // Rounding may leave a variance of zero below it.
  const Vector variances = eigen.values.tail(components).reverse().cwiseMax(0);
  return {centred * directions, total > 0 ? Vector(variances / total) : Vector(Vector::Zero(components)),
          centre, directions};
}

}  // namespace moelab
