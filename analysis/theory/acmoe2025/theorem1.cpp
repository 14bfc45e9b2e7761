#include <cmath>

#include "analysis/theory/acmoe2025.h"

namespace moelab {
namespace {

constexpr int kWeightInstances = 300;
/// The minimiser stops here, far above the rounding of its gradient.
constexpr double kDecrement = 1e-11;
/// The rounding of sums of up to 16 quotients.
constexpr double kWeightRounding = 256 * kEpsilon;
/// The limits of λ are this factor above, or below, the scale of the dispersions.
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

/// The largest error(instance) over all instances.
template <class ErrorOf>
CheckFinding largest_error(const CheckEffort& effort, const char* id, const ErrorOf& error) {
  double largest = 0;
  for (int i = 0; i < kWeightInstances * effort.seeds; ++i)
    largest = larger(largest, error(draw_instance(effort, id, i)));
  return {.measured = largest, .details = {{"instances", kWeightInstances * effort.seeds}}};
}

}  // namespace

SimplexMinimum minimise_over_simplex(const Vector& dispersion, double lambda) {
  const Eigen::Index dim = dispersion.size();
  // Subtracting the smallest dispersion changes the objective by a constant.
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
        double gap = kInfinity;
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
       CheckVerdict::holds, [](Effort effort) { return check_minimiser(effort); }},
      {id + "root.as_printed", source,
       "any alpha that satisfies Eq. 7 gives weights on the simplex: share of the solutions that do",
       CheckVerdict::fails, [](Effort effort) { return check_root_choice(effort, every_root); }},
      {id + "root.corrected", source,
       "the largest alpha that satisfies Eq. 7 gives weights on the simplex, and no other alpha does: share "
       "of the solutions that agree",
       CheckVerdict::holds, [](Effort effort) { return check_root_choice(effort, largest_root); }},
      {id + "inverse.as_printed", source + " and text",
       "the optimal weights are proportional to 1/s at any lambda, here the mean of s (largest relative "
       "difference)",
       CheckVerdict::fails,
       [](Effort effort) { return check_inverse_weights(effort, [](const Vector& s) { return s.mean(); }); }},
      {id + "inverse.corrected", source + " and text",
       "the optimal weights are proportional to 1/s at lambda = d / sum(1/s) (largest relative difference)",
       CheckVerdict::holds, [](Effort effort) { return check_inverse_weights(effort); }},
      {id + "large_lambda", source,
       "lambda -> infinity gives uniform weights: d w_q = 1 - (s_q - mean s)/lambda to first order (largest "
       "difference at lambda = 1e6 (max s - min s), times lambda/(max s - min s))",
       CheckVerdict::holds, [](Effort effort) { return check_large_lambda(effort); }},
      {id + "small_lambda", source,
       "lambda -> 0 puts all mass on the smallest s: the others have w_q = (lambda/d)/(s_q - min s) to first "
       "order (largest relative difference at lambda/d = 1e-6 of the smallest s_q - min s)",
       CheckVerdict::holds, [](Effort effort) { return check_small_lambda(effort); }}};
}

}  // namespace moelab
