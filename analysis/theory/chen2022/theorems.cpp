#include <algorithm>
#include <cmath>

#include "analysis/theory/chen2022.h"

namespace moelab {
namespace {

constexpr const char* kQuadrupleId = "chen2022.theorem41";
constexpr const char* kChoiceId = "chen2022.lemma51";
constexpr int kPatchWidth = 50, kQuadruples = 4000, kPairs = 2000, kMostChoices = 10;

double uniform_in(Engine& engine, double low, double high) {
  return low + (high - low) * draw_uniform(engine);
}

/// Orthonormal columns v_k, v_k', c_k, c_k' (d, 4).
Matrix orthonormal_directions(Engine& engine) {
  Matrix columns = draw_normals(engine, kPatchWidth, 4);
  for (Eigen::Index j = 0; j < columns.cols(); ++j) {
    for (Eigen::Index i = 0; i < j; ++i)
      columns.col(j) -= columns.col(i) * columns.col(i).dot(columns.col(j));
    columns.col(j).normalize();
  }
  return columns;
}

/// Nodes and weights of Gauss's rule with five points on [−1, 1].
constexpr double kGaussNodes[] = {0, 0.5384693101056831, 0.9061798459386640};
constexpr double kGaussWeights[] = {128.0 / 225, 0.4786286704993665, 0.2369268850561891};

template <class Integrand>
double integrate(double low, double high, const Integrand& integrand) {
  const double middle = (low + high) / 2, half = (high - low) / 2;
  double sum = kGaussWeights[0] * integrand(middle);
  for (int i = 1; i < 3; ++i)
    sum += kGaussWeights[i] *
           (integrand(middle - half * kGaussNodes[i]) + integrand(middle + half * kGaussNodes[i]));
  return half * sum;
}

}  // namespace

PatchFunction draw_single_expert(Engine& engine, const Matrix& signals) {
  const int kind = draw_index(engine, 4), filters = 1 + draw_index(engine, 16);
  const Matrix weights = draw_normals(engine, filters, kPatchWidth, uniform_in(engine, 0, 1));
  const Matrix outputs = draw_normals(engine, filters, 1), biases = draw_normals(engine, filters, 1);
  const double first = uniform_in(engine, 0, 2), second = uniform_in(engine, 0, 2);
  return [=](bool /*is_second*/, const Vector& patch) {
    // Right alone where the signal is stronger than the feature noise.
    double value =
        first * std::pow(signals.col(0).dot(patch), 3) + second * std::pow(signals.col(1).dot(patch), 3);
    for (int j = 0; j < filters; ++j) {
      const double z = weights.row(j).dot(patch) + biases(j, 0);
      const double activated = kind == 0   ? z
                               : kind == 1 ? z * z * z
                               : kind == 2 ? std::max(z, 0.0)
                                           : std::tanh(z);
      value += outputs(j, 0) * activated / filters;
    }
    return value;
  };
}

PatchFunction draw_routed_experts(Engine& /*engine*/, const Matrix& signals) {
  return [=](bool is_second, const Vector& patch) {
    return std::pow(signals.col(is_second ? 1 : 0).dot(patch), 3);
  };
}

CheckFinding check_quadruples(const CheckEffort& effort, const DrawPatchFunction& draw) {
  const int quadruples = kQuadruples * effort.seeds;
  int with_error = 0, errors = 0;
  for (int repetition = 0; repetition < quadruples; ++repetition) {
    Engine engine = check_stream(effort, kQuadrupleId, repetition);
    const Matrix directions = orthonormal_directions(engine);
    const Matrix signals = directions.leftCols(2), centres = directions.rightCols(2);
    const PatchFunction f = draw(engine, signals);
    const double a = uniform_in(engine, 0.5, 2), b = uniform_in(engine, 0.5, 2),
                 beta = uniform_in(engine, 1, 2);
    const Vector noise = draw_normals(engine, kPatchWidth, 1, 1 / std::sqrt(1.0 * kPatchWidth));
    int own = 0;
    for (const bool is_second : {false, true}) {
      for (const int y : {1, -1}) {
        // The signal of the own cluster has the sign y, and the other cluster's has the sign −y.
        const double on_first = (is_second ? -y : y) * a, on_second = (is_second ? y : -y) * b;
        const double value = f(is_second, on_first * signals.col(0)) +
                             f(is_second, on_second * signals.col(1)) +
                             f(is_second, beta * centres.col(is_second ? 1 : 0)) + f(is_second, noise);
        if (!(y * value > 0)) ++own;
      }
    }
    errors += own;
    with_error += own > 0 ? 1 : 0;
  }
  return every_instance(with_error, quadruples, "none: errors are counted",
                        {{"mean errors of four", static_cast<double>(errors) / quadruples}});
}

std::vector<double> choice_probabilities(const std::vector<double>& scores) {
  std::vector<double> probabilities;
  for (std::size_t m = 0; m < scores.size(); ++m) {
    std::vector<double> kinks = {0, 1};
    for (const double score : scores) {
      for (const double kink : {score - scores[m], score - scores[m] + 1})
        if (kink > 0 && kink < 1) kinks.push_back(kink);
    }
    std::sort(kinks.begin(), kinks.end());
    double sum = 0;
    for (std::size_t i = 0; i + 1 < kinks.size(); ++i) {
      sum += integrate(kinks[i], kinks[i + 1], [&](double r) {
        double product = 1;
        for (std::size_t j = 0; j < scores.size(); ++j)
          if (j != m) product *= std::clamp(scores[m] - scores[j] + r, 0.0, 1.0);
        return product;
      });
    }
    probabilities.push_back(sum);
  }
  return probabilities;
}

CheckFinding check_choice_constant(const CheckEffort& effort, double constant) {
  double largest = 0, rounding = 0;
  for (int repetition = 0; repetition < kPairs * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kChoiceId, repetition);
    const int experts = 2 + draw_index(engine, kMostChoices - 1);
    const double spread = std::pow(10, uniform_in(engine, -3, 0.5)),
                 distance = std::pow(10, uniform_in(engine, -3, 0.5));
    std::vector<double> scores, others;
    double apart = 0;
    for (int e = 0; e < experts; ++e) {
      // Half of the steps go to the corners of the cube, where the ratio is largest.
      const double draw = uniform_in(engine, -1, 1);
      const double step = distance * (repetition % 2 == 0 ? draw : draw > 0 ? 1 : -1);
      scores.push_back(spread * draw_normal(engine));
      others.push_back(scores.back() + step);
      apart = std::max(apart, std::abs(step));
    }
    const std::vector<double> one = choice_probabilities(scores), other = choice_probabilities(others);
    double difference = 0, sum = 0;
    for (std::size_t m = 0; m < one.size(); ++m) {
      difference = larger(difference, std::abs(one[m] - other[m]));
      sum += one[m];
    }
    largest = larger(largest, difference / apart);
    rounding = larger(rounding, std::abs(sum - 1));
  }
  CheckFinding finding;
  finding.hypotheses = {{"probabilities sum to 1 (largest deviation)", rounding, rounding < 1e-12}};
  finding.relation = Relation::at_most;
  finding.predicted = constant;
  finding.measured = largest;
  finding.error_bound = 1e-9;
  finding.error_origin = "rounding, over distances of 1e-3 and more";
  finding.details = {{"least constant of the paper, E^2 for E = 2", 4}};
  return finding;
}

std::vector<Check> chen2022_theorem_checks() {
  return {
      {kQuadrupleId, "Chen et al. 2022, Theorem 4.1, in the exact form for quadruples",
       "F = sum_p f(x^(p)) errs on one or more of the four points (k: +a,-b and -a,+b; k': +b,-a and -b,+a) "
       "with equal magnitudes (share of random quadruples)",
       CheckVerdict::holds, [](Effort effort) { return check_quadruples(effort); }},
      {kChoiceId, "Chen et al. 2022, Lemma 5.1, with the constant 2 in place of E^2",
       "max|p - p'| <= 2 max|h - h'| for the choice probabilities of argmax(h + r), r ~ U[0, 1] (largest "
       "ratio)",
       CheckVerdict::holds, [](Effort effort) { return check_choice_constant(effort); }}};
}

}  // namespace moelab
