#include "tests/sim/data/statistics.h"

#include <Eigen/QR>
#include <boost/math/distributions/chi_squared.hpp>

namespace moelab {

bool below_quantile(double statistic, double freedom) {
  constexpr double kLevel = 1e-4;
  return statistic < quantile(complement(boost::math::chi_squared(freedom), kLevel));
}

Matrix regression(const Matrix& x, const Matrix& y) {
  return x.colPivHouseholderQr().solve(y);
}

Span span_of_columns(const Matrix& a, double rounding) {
  Eigen::ColPivHouseholderQR<Matrix> qr(a);
  qr.setThreshold(rounding);
  return {qr.householderQ(), static_cast<int>(qr.rank())};
}

}  // namespace moelab
