#include "tests/sim/data/statistics.h"

#include <Eigen/QR>
#include <boost/math/distributions/chi_squared.hpp>

namespace moelab {

bool below_quantile(double statistic, double freedom) {
  constexpr double kProbability = 1e-4;
  return statistic < quantile(complement(boost::math::chi_squared(freedom), kProbability));
}

Matrix regression(const Matrix& x, const Matrix& y) {
  return x.colPivHouseholderQr().solve(y);
}

double residual_correlation(const Matrix& x, const Matrix& y, const Matrix& prediction) {
  const Matrix residual = y - prediction;
  double worst = 0;
  for (const Vector& feature : {Vector(prediction.col(0)), Vector(x.rowwise().squaredNorm())}) {
    for (Eigen::Index j = 0; j < residual.cols(); ++j) {
      const Vector product = residual.col(j).cwiseProduct(feature);
      const double rows = static_cast<double>(product.size());
      const double error = std::sqrt((product.array() - product.mean()).square().mean() / rows);
      worst = std::max(worst, std::abs(product.mean()) / error);
    }
  }
  return worst;
}

Span span_of_columns(const Matrix& a, double rounding) {
  Eigen::ColPivHouseholderQR<Matrix> qr(a);
  qr.setThreshold(rounding);
  return {qr.householderQ(), static_cast<int>(qr.rank())};
}

}  // namespace moelab
