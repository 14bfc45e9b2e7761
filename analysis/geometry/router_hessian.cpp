#include "analysis/geometry/router_hessian.h"

#include <fmt/core.h>

#include <cmath>

#include "sim/base/error.h"

namespace moelab {
namespace {

void require_shapes(const MixtureSamples& batch) {
  const Eigen::Index rows = batch.features.rows(), experts = batch.probabilities.cols();
  if (rows == 0) throw InvalidOption("features", "empty; a mean over samples needs at least one");
  const auto require = [](const char* name, const Matrix& array, Eigen::Index n, Eigen::Index columns) {
    if (array.rows() != n || array.cols() != columns)
      throw InvalidOption(
          name, fmt::format("shape ({}, {}), expected ({}, {})", array.rows(), array.cols(), n, columns));
  };
  require("probabilities", batch.probabilities, rows, experts);
  require("targets", batch.targets, rows, batch.targets.cols());
  require("outputs", batch.outputs, rows, experts * batch.targets.cols());
}

/// Of one sample: a_e = o_e − f (E, o) and ρ = f − y (o).
struct SampleOutputs {
  Matrix deviations;
  Vector residual;
};

SampleOutputs sample_outputs(const MixtureSamples& batch, Eigen::Index i) {
  const Eigen::Map<const Matrix> outputs(batch.outputs.row(i).data(), batch.probabilities.cols(),
                                         batch.targets.cols());
  const Vector mixed = outputs.transpose() * batch.probabilities.row(i).transpose();
  return {outputs.rowwise() - mixed.transpose(), mixed - batch.targets.row(i).transpose()};
}

/// B (E, E): ∂²‖f − y‖²/∂γ² of one sample in its scores γ = W z.
Matrix score_curvature(const SampleOutputs& sample, const Vector& r, RouterCurvature curvature) {
  const Matrix weighted = r.asDiagonal() * sample.deviations;
  Matrix result = 2 * weighted * weighted.transpose();
  if (curvature == RouterCurvature::gauss_newton) return result;
  const Vector pull = weighted * sample.residual;  // r_e ρᵀa_e
  result -= 2 * (pull * r.transpose() + r * pull.transpose());
  result.diagonal() += 2 * pull;
  return result;
}

/// (E, E − 1), orthonormal columns that add up to 0 (Helmert's contrasts).
Matrix contrasts(int experts) {
  Matrix basis = Matrix::Zero(experts, experts - 1);
  for (int j = 1; j < experts; ++j) {
    const double scale = 1 / std::sqrt(static_cast<double>(j) * (j + 1));
    basis.col(j - 1).head(j).setConstant(scale);
    basis(j, j - 1) = -j * scale;
  }
  return basis;
}

int rows_per_expert(const Matrix& hessian, int experts) {
  const int size = static_cast<int>(hessian.rows());
  if (experts < 1 || hessian.rows() != hessian.cols() || size % experts != 0)
    throw InvalidOption("hessian", fmt::format("shape ({}, {}) does not fit {} experts", hessian.rows(),
                                               hessian.cols(), experts));
  return size / experts;
}

}  // namespace

Matrix router_hessian(const MixtureSamples& batch, RouterCurvature curvature) {
  require_shapes(batch);
  const Eigen::Index dim = batch.features.cols(), experts = batch.probabilities.cols();
  Matrix hessian = Matrix::Zero(experts * dim, experts * dim);
  Matrix square(dim, dim);
  for (Eigen::Index i = 0; i < batch.features.rows(); ++i) {
    const Matrix curvatures =
        score_curvature(sample_outputs(batch, i), batch.probabilities.row(i).transpose(), curvature);
    square.noalias() = batch.features.row(i).transpose() * batch.features.row(i);
    for (Eigen::Index e = 0; e < experts; ++e) {
      for (Eigen::Index k = 0; k < experts; ++k)
        hessian.block(e * dim, k * dim, dim, dim) += curvatures(e, k) * square;
    }
  }
  return hessian / static_cast<double>(batch.features.rows());
}

Matrix expert_block(const Matrix& hessian, int experts, int expert) {
  const int dim = rows_per_expert(hessian, experts);
  if (expert < 0 || expert >= experts)
    throw InvalidOption("expert", fmt::format("{}, but there are {} experts", expert, experts));
  return hessian.block(expert * dim, expert * dim, dim, dim);
}

Matrix without_common_shift(const Matrix& hessian, int experts) {
  const int dim = rows_per_expert(hessian, experts);
  const Matrix basis = contrasts(experts);
  // Q ⊗ I.
  Matrix wide = Matrix::Zero(experts * dim, (experts - 1) * dim);
  for (int e = 0; e < experts; ++e) {
    for (int j = 0; j < experts - 1; ++j)
      wide.block(e * dim, j * dim, dim, dim).diagonal().setConstant(basis(e, j));
  }
  return wide.transpose() * hessian * wide;
}

Matrix router_gradient(const MixtureSamples& batch) {
  require_shapes(batch);
  Matrix gradient = Matrix::Zero(batch.probabilities.cols(), batch.features.cols());
  for (Eigen::Index i = 0; i < batch.features.rows(); ++i) {
    const SampleOutputs sample = sample_outputs(batch, i);
    const Vector pull = sample.deviations * sample.residual;
    const Vector slope = 2 * batch.probabilities.row(i).transpose().cwiseProduct(pull);
    gradient += slope * batch.features.row(i);
  }
  return gradient / static_cast<double>(batch.features.rows());
}

}  // namespace moelab
