#include "analysis/theory/acmoe2025/router_hessian.h"

#include <fmt/core.h>

#include <cmath>

#include "analysis/geometry/conditioning.h"
#include "analysis/theory/extremes.h"
#include "sim/base/softmax.h"

namespace moelab {
namespace {

constexpr int kHessianDim = 5, kHessianExperts = 4, kHessianOutputs = 3, kSamples = 200;
constexpr int kMixtures = 20;

struct HessianMixture {
  MixtureSamples batch;
  Matrix router;  ///< W (E, d)
};

void route(HessianMixture& mixture) {
  mixture.batch.probabilities = softmax(mixture.batch.features * mixture.router.transpose());
}

/// x with features of log-normal width, linear experts, targets of a linear teacher with noise; z = Mx with
/// M = diag(1/σ) where `adaptive`, else x.
HessianMixture draw_hessian_mixture(Engine& engine, bool adaptive) {
  const Vector widths = draw_log_normal(engine, kHessianDim, 1);
  const Matrix x = draw_normals(engine, kSamples, kHessianDim) * widths.asDiagonal();
  HessianMixture mixture;
  mixture.batch.features = x;
  if (adaptive) mixture.batch.features = x * inverse_weights(widths).asDiagonal();
  mixture.batch.outputs = x * draw_normals(engine, kHessianDim, kHessianExperts * kHessianOutputs);
  mixture.batch.targets = x * draw_normals(engine, kHessianDim, kHessianOutputs) +
                          draw_normals(engine, kSamples, kHessianOutputs);
  mixture.router = draw_normals(engine, kHessianExperts, kHessianDim, 0.5);
  route(mixture);
  return mixture;
}

Matrix hessian_by_differences(const HessianMixture& mixture) {
  constexpr double kStep = 1e-5;
  Matrix hessian(kHessianDim, kHessianDim);
  for (Eigen::Index q = 0; q < kHessianDim; ++q) {
    HessianMixture above = mixture, below = mixture;
    above.router(0, q) += kStep;
    below.router(0, q) -= kStep;
    route(above);
    route(below);
    hessian.row(q) =
        (router_gradient(above.batch).row(0) - router_gradient(below.batch).row(0)) / (2 * kStep);
  }
  return hessian;
}

Matrix row_block(const MixtureSamples& batch, RouterCurvature curvature) {
  return expert_block(router_hessian(batch, curvature), static_cast<int>(batch.probabilities.cols()), 0);
}

}  // namespace

Matrix constant_curvature(const MixtureSamples& batch) {
  const Matrix second_moment =
      batch.features.transpose() * batch.features / static_cast<double>(batch.features.rows());
  const double product = exact_curvature(batch).cwiseProduct(second_moment).sum();
  return product / second_moment.squaredNorm() * second_moment;
}

Matrix exact_curvature(const MixtureSamples& batch) {
  return row_block(batch, RouterCurvature::exact);
}

CheckFinding check_router_hessian(const CheckEffort& effort, const RowHessian& hessian) {
  const int mixtures = kMixtures * effort.seeds;
  double largest = 0;
  int indefinite = 0, negative = 0;
  for (int i = 0; i < mixtures; ++i) {
    Engine engine = check_stream(effort, "acmoe2025.proposition2.hessian", i);
    for (const bool adaptive : {false, true}) {
      const HessianMixture mixture = draw_hessian_mixture(engine, adaptive);
      const Matrix differences = hessian_by_differences(mixture);
      largest = larger(largest, (hessian(mixture.batch) - differences).norm() / differences.norm());
      const int below_zero = conditioning(exact_curvature(mixture.batch)).negative;
      negative += below_zero;
      if (below_zero > 0) ++indefinite;
    }
  }
  Engine engine = check_stream(effort, "acmoe2025.proposition2.hessian", 0);
  const MixtureSamples first = draw_hessian_mixture(engine, false).batch;
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = 1e-6;
  finding.error_origin = "central differences of step 1e-5: rounding and curvature about 1e-9, with a margin";
  finding.details = {
      {"mixtures", 2 * mixtures},
      {"of which with an indefinite Hessian", indefinite},
      {"negative eigenvalues, mean", static_cast<double>(negative) / (2 * mixtures)},
      {"max|lambda|/min|lambda| of the first, exact", conditioning(exact_curvature(first)).condition},
      {"the same, Gauss-Newton", conditioning(row_block(first, RouterCurvature::gauss_newton)).condition}};
  return finding;
}

std::vector<Check> acmoe2025_router_hessian_checks() {
  const std::string source = "Nielsen et al. 2025, proof of Proposition 2";
  const std::string id = "acmoe2025.proposition2.hessian";
  return {{id + ".as_printed", source,
           "the Hessian in one row of the router is B E[(Mh)(Mh)'] with a constant B (largest relative "
           "difference of the nearest multiple)",
           CheckVerdict::fails,
           [](const CheckEffort& effort) { return check_router_hessian(effort, constant_curvature); }},
          {id + ".corrected", source,
           "it is E[B(h)(Mh)(Mh)'], B = 2 r^2 |o - f|^2 + 2 r (1 - 2 r)(f - y).(o - f) for the row's "
           "probability r and output o (largest relative difference from differences of the gradient)",
           CheckVerdict::holds,
           [](const CheckEffort& effort) { return check_router_hessian(effort, exact_curvature); }}};
}

}  // namespace moelab
