#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "analysis/metrics/geometry.h"
#include "analysis/theory/acmoe2025.h"
#include "analysis/theory/check.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

constexpr int kPooledClusters = 16, kPooledDim = 24, kTightFeatures = 6, kPooledDraws = 400;
constexpr double kTightDeviation = 0.15, kWideDeviation = 1.5;
/// Of the law of the scenarios, for which the proposition is used.
constexpr double kShippedMeanStd = 0.6;

Vector draw_deviations(Engine& engine) {
  std::vector<Eigen::Index> features(kPooledDim);
  std::iota(features.begin(), features.end(), 0);
  Vector deviations = Vector::Constant(kPooledDim, kWideDeviation);
  for (std::size_t i = 0; i < kTightFeatures; ++i) {
    const std::size_t left = features.size() - i;
    std::swap(features[i],
              features[i + static_cast<std::size_t>(draw_uniform(engine) * static_cast<double>(left))]);
    deviations[features[i]] = kTightDeviation;
  }
  return deviations;
}

/// κ of the pooled second moment with the clusters' own scales over that without.
double pooled_quotient(Engine& engine, double mean_std) {
  Matrix plain = Matrix::Zero(kPooledDim, kPooledDim), scaled = plain;
  for (int c = 0; c < kPooledClusters; ++c) {
    const Vector mean = draw_normals(engine, kPooledDim, 1, mean_std), deviations = draw_deviations(engine);
    Matrix moment = mean * mean.transpose();
    moment.diagonal() += deviations.cwiseAbs2();
    plain += moment;
    scaled += transformed_covariance(moment, inverse_weights(deviations));
  }
  return conditioning(scaled).condition / conditioning(plain).condition;
}

}  // namespace

CheckFinding check_pooled_moment(const CheckEffort& effort, double mean_std) {
  const int draws = kPooledDraws * effort.seeds;
  Engine engine = check_stream(effort, "acmoe2025.proposition2.pooled", 0);
  std::vector<double> quotients;
  for (int i = 0; i < draws; ++i) quotients.push_back(pooled_quotient(engine, mean_std));
  std::sort(quotients.begin(), quotients.end());
  const auto hits = std::upper_bound(quotients.begin(), quotients.end(), 1.0) - quotients.begin();
  CheckFinding finding = every_instance(static_cast<int>(hits), draws, "none: every quotient is far from 1");
  finding.details.emplace_back("median quotient", quotients[quotients.size() / 2]);
  finding.details.emplace_back("smallest quotient", quotients.front());
  finding.details.emplace_back("largest quotient", quotients.back());
  return finding;
}

std::vector<Check> acmoe2025_pooled_moment_checks() {
  const std::string source = "Nielsen et al. 2025, Proposition 2", id = "acmoe2025.proposition2.pooled.";
  return {{id + "shipped_means", source,
           "kappa of the second moment pooled over 16 clusters, each scaled by its own M = diag(1/s), is at "
           "most that without M: share of draws of the law of scenarios/acmoe2025",
           CheckVerdict::fails,
           [](const CheckEffort& effort) { return check_pooled_moment(effort, kShippedMeanStd); }},
          {id + "zero_means", source, "the same where all means are 0", CheckVerdict::holds,
           [](const CheckEffort& effort) { return check_pooled_moment(effort, 0); }}};
}

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

namespace {

constexpr int kWeightInstances = 300;
/// The minimiser stops here, far above the rounding of its gradient.
constexpr double kDecrement = 1e-11;
/// Sums of up to 16 quotients.
constexpr double kWeightRounding = 256 * std::numeric_limits<double>::epsilon();
/// How far beyond, or within, the dispersions λ is taken for its limits.
constexpr double kFar = 1e6;

struct WeightInstance {
  Vector dispersion;
  double lambda = 1;
};

/// d uniform on 2 … 16, log s ~ N(0, a²) with a uniform on (0.25, 2), λ/s̄ log-uniform on (1/30, 30).
WeightInstance draw_instance(const CheckEffort& effort, const char* id, int repetition) {
  Engine engine = check_stream(effort, id, repetition);
  const int dim = 2 + draw_index(engine, 15);
  const double spread = 0.25 + 1.75 * draw_uniform(engine);
  WeightInstance instance;
  instance.dispersion = draw_log_normal(engine, dim, spread);
  instance.lambda = instance.dispersion.mean() * std::pow(30, 2 * draw_uniform(engine) - 1);
  return instance;
}

/// The largest of `error(instance)` over all.
template <class ErrorOf>
CheckFinding largest_error(const CheckEffort& effort, const char* id, const ErrorOf& error) {
  double largest = 0;
  for (int i = 0; i < kWeightInstances * effort.seeds; ++i)
    largest = larger(largest, error(draw_instance(effort, id, i)));
  CheckFinding finding;
  finding.measured = largest;
  finding.details = {{"instances", kWeightInstances * effort.seeds}};
  return finding;
}

}  // namespace

SimplexMinimum minimise_over_simplex(const Vector& dispersion, double lambda) {
  const Eigen::Index dim = dispersion.size();
  // A constant added to all dispersions changes the objective by a constant: the smallest is taken off.
  const Vector cost = (dispersion.array() - dispersion.minCoeff()) * (static_cast<double>(dim) / lambda);
  SimplexMinimum minimum{Vector::Constant(dim, 1.0 / static_cast<double>(dim)), 1};
  constexpr int kWeightSteps = 10000;
  for (int step = 0; step < kWeightSteps && minimum.decrement > kDecrement; ++step) {
    Vector& w = minimum.weights;
    const Vector inverse_curvature = w.cwiseAbs2();
    const Vector gradient = cost - w.cwiseInverse();
    const double multiplier = inverse_curvature.dot(gradient) / inverse_curvature.sum();
    const Vector move = -inverse_curvature.cwiseProduct((gradient.array() - multiplier).matrix());
    minimum.decrement = move.cwiseQuotient(w).norm();
    w += move / (minimum.decrement > 0.25 ? 1 + minimum.decrement : 1);
    w /= w.sum();
  }
  return minimum;
}

CheckFinding check_minimiser(const CheckEffort& effort, const WeightRule& rule) {
  double decrement = 0;
  CheckFinding finding =
      largest_error(effort, "acmoe2025.theorem1.minimiser", [&](const WeightInstance& instance) {
        const SimplexMinimum minimum = minimise_over_simplex(instance.dispersion, instance.lambda);
        decrement = larger(decrement, minimum.decrement);
        const Vector ratio = rule(instance.dispersion, instance.lambda).cwiseQuotient(minimum.weights);
        return (ratio.array() - 1).abs().maxCoeff<Eigen::PropagateNaN>();
      });
  finding.error_bound = 1e-9;
  finding.error_origin = "the minimiser: twice its last Newton decrement, and rounding";
  finding.hypotheses = {
      {"the minimiser converged: largest Newton decrement <= 1e-11", decrement, decrement <= kDecrement}};
  return finding;
}

bool every_root(int, int) {
  return true;
}

bool largest_root(int j, int count) {
  return j == count - 1;
}

CheckFinding check_root_choice(const CheckEffort& effort, const RootClaim& claim) {
  int right = 0, all = 0;
  double sum_error = 0;
  for (int i = 0; i < kWeightInstances * effort.seeds; ++i) {
    const WeightInstance instance = draw_instance(effort, "acmoe2025.theorem1.root", i);
    const Vector& s = instance.dispersion;
    const Vector roots = weight_equation_roots(s, instance.lambda);
    const int count = static_cast<int>(roots.size());
    for (int j = 0; j < count; ++j) {
      const Vector weights =
          instance.lambda / static_cast<double>(s.size()) * (s.array() + roots[j]).inverse().matrix();
      sum_error = larger(sum_error, std::abs(weights.sum() - 1) / weights.cwiseAbs().sum());
      if ((weights.minCoeff() >= 0) == claim(j, count)) ++right;
      ++all;
    }
  }
  CheckFinding finding = every_instance(right, all, "none: signs of weights");
  finding.details = {{"roots", all}, {"largest |sum of weights - 1| / sum of |weights|", sum_error}};
  return finding;
}

double harmonic_lambda(const Vector& dispersion) {
  return static_cast<double>(dispersion.size()) / dispersion.cwiseInverse().sum();
}

CheckFinding check_inverse_weights(const CheckEffort& effort, const LambdaRule& lambda) {
  CheckFinding finding =
      largest_error(effort, "acmoe2025.theorem1.inverse", [&](const WeightInstance& instance) {
        const Vector& s = instance.dispersion;
        const Vector inverse = s.cwiseInverse() / s.cwiseInverse().sum();
        const Vector ratio = optimal_weights(s, lambda(s)).cwiseQuotient(inverse);
        return (ratio.array() - 1).abs().maxCoeff<Eigen::PropagateNaN>();
      });
  finding.error_bound = kWeightRounding;
  finding.error_origin = "rounding: 256 epsilon";
  return finding;
}

CheckFinding check_large_lambda(const CheckEffort& effort, const WeightRule& rule) {
  CheckFinding finding =
      largest_error(effort, "acmoe2025.theorem1.large_lambda", [&](const WeightInstance& instance) {
        const Vector& s = instance.dispersion;
        const double range = s.maxCoeff() - s.minCoeff(), lambda = kFar * range;
        const Vector lost = lambda * (1 - static_cast<double>(s.size()) * rule(s, lambda).array());
        const Vector expected = s.array() - s.mean();
        return (lost - expected).cwiseAbs().maxCoeff<Eigen::PropagateNaN>() / range;
      });
  finding.error_bound = 1e-5;
  finding.error_origin = "the next order, at most 2 (max s - min s)/lambda = 2e-6, and cancellation, 1e-8";
  return finding;
}

CheckFinding check_small_lambda(const CheckEffort& effort, const WeightRule& rule) {
  CheckFinding finding =
      largest_error(effort, "acmoe2025.theorem1.small_lambda", [&](const WeightInstance& instance) {
        const Vector& s = instance.dispersion;
        Eigen::Index tightest = 0;
        const Vector excess = s.array() - s.minCoeff(&tightest);
        double gap = std::numeric_limits<double>::infinity();
        for (Eigen::Index q = 0; q < s.size(); ++q) {
          if (q != tightest) gap = std::min(gap, excess[q]);
        }
        const double share = gap / kFar;  // λ/d
        const Vector weights = rule(s, share * static_cast<double>(s.size()));
        double largest = 0;
        for (Eigen::Index q = 0; q < s.size(); ++q) {
          if (q != tightest) largest = larger(largest, std::abs(weights[q] * excess[q] / share - 1));
        }
        return largest;
      });
  finding.error_bound = 1e-5;
  finding.error_origin = "the next order, about (lambda/d)/(smallest s_q - min s) = 1e-6";
  return finding;
}

std::vector<Check> acmoe2025_theorem1_checks() {
  const std::string source = "Nielsen et al. 2025, Theorem 1";
  const std::string id = "acmoe2025.theorem1.";
  return {
      {id + "minimiser", source,
       "w_q = (lambda/d)/(s_q + alpha), alpha the largest solution of Eq. 7, minimises w.s + lambda "
       "KL(uniform|w) over the simplex: largest relative difference from a numerical minimiser",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_minimiser(effort); }},
      {id + "root.as_printed", source,
       "any alpha that satisfies Eq. 7 gives weights on the simplex: share of the solutions that do",
       CheckVerdict::fails, [](const CheckEffort& effort) { return check_root_choice(effort, every_root); }},
      {id + "root.corrected", source,
       "the largest alpha that satisfies Eq. 7 gives weights on the simplex, and no other does: share of the "
       "solutions of which this is true",
       CheckVerdict::holds,
       [](const CheckEffort& effort) { return check_root_choice(effort, largest_root); }},
      {id + "inverse.as_printed", source + " and text",
       "the optimal weights are proportional to 1/s at any lambda, here the mean of s (largest relative "
       "difference)",
       CheckVerdict::fails,
       [](const CheckEffort& effort) {
         return check_inverse_weights(effort, [](const Vector& s) { return s.mean(); });
       }},
      {id + "inverse.corrected", source + " and text",
       "they are at lambda = d / sum(1/s) (largest relative difference)", CheckVerdict::holds,
       [](const CheckEffort& effort) { return check_inverse_weights(effort); }},
      {id + "large_lambda", source,
       "lambda -> infinity gives uniform weights: d w_q = 1 - (s_q - mean s)/lambda to first order (largest "
       "difference at lambda = 1e6 (max s - min s), times lambda/(max s - min s))",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_large_lambda(effort); }},
      {id + "small_lambda", source,
       "lambda -> 0 puts all mass on the smallest s: the others have w_q = (lambda/d)/(s_q - min s) to first "
       "order (largest relative difference at lambda/d = 1e-6 of the smallest s_q - min s)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_small_lambda(effort); }}};
}

}  // namespace moelab
