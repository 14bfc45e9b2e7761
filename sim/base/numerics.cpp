#include "sim/base/numerics.h"

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <cmath>

#include "sim/base/contract.h"

namespace moelab {

SymmetricEigen symmetric_eigen(const Matrix& symmetric) {
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(symmetric);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

Vector symmetric_eigenvalues(const Matrix& symmetric) {
  return Eigen::SelfAdjointEigenSolver<Matrix>(symmetric, Eigen::EigenvaluesOnly).eigenvalues();
}

QrFactors qr_factors(const Matrix& a) {
  MOELAB_EXPECT(a.rows() >= a.cols());
  const Eigen::HouseholderQR<Matrix> qr(a);
  QrFactors factors{{}, qr.matrixQR().diagonal()};
  if (a.rows() == a.cols()) {
    factors.q = qr.householderQ();
  } else {
    factors.q = qr.householderQ() * Matrix::Identity(a.rows(), a.cols());
  }
  return factors;
}

Vector least_norm_solution(const Matrix& a, const Vector& b) {
  return Eigen::CompleteOrthogonalDecomposition<Matrix>(a).solve(b);
}

Matrix inverse(const Matrix& a) {
  return a.inverse();
}

Matrix log_softmax(const Eigen::Ref<const Matrix>& scores) {
  const Matrix shifted = scores.colwise() - scores.rowwise().maxCoeff();
  const Vector log_sums = shifted.array().exp().rowwise().sum().log();
  return shifted.colwise() - log_sums;
}

Matrix softmax(const Eigen::Ref<const Matrix>& scores) {
  const Matrix shifted = scores.colwise() - scores.rowwise().maxCoeff();
  // Eigen's own exponential of −∞ is not zero.
  Matrix values = shifted.unaryExpr([](double value) { return std::exp(value); });
  values.array().colwise() /= values.rowwise().sum().array();
  return values;
}

}  // namespace moelab
