#include <algorithm>
#include <array>
#include <boost/math/quadrature/gauss.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>

#include "analysis/theory/dikkala2023.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

constexpr int kRouted = 3, kInputs = kBiasedInputs, kOutputs = kBiasedOutputs;  // E, d and o
constexpr int kWeights = kRouted * kInputs, kUnits = kRouted * kOutputs;
constexpr int kFree = kWeights + kUnits;  // entries without biases
constexpr int kAll = kBiasedEntries;
static_assert(kAll == kFree + kRouted);
constexpr double kPenalty = kBiasedPenalty;

/// The entries of θ on which the score s_e depends, with their factors.
template <class Real>
std::array<std::pair<int, Real>, kInputs + 1> score_entries(int expert, const std::array<Real, kInputs>& x) {
  std::array<std::pair<int, Real>, kInputs + 1> entries;
  for (int j = 0; j < kInputs; ++j) entries[size(j)] = {expert * kInputs + j, x[size(j)]};
  entries[kInputs] = {kFree + expert, Real(1)};
  return entries;
}

using Digits = boost::multiprecision::number<boost::multiprecision::cpp_bin_float_50::backend_type,
                                             boost::multiprecision::et_off>;

/// The rounding of sums of thousands of terms of order one.
constexpr double kSumRounding = 1e-12;

/// The law of the counterexample. x₂ has the trapezoidal rule with step 1/`nodes` on [−14, 14].
std::vector<BiasedSample<Digits>> counterexample(int nodes) {
  const Digits half = Digits(1) / 2, height = 2 * sqrt(Digits(3));
  const std::array<std::array<Digits, 2>, 4> places = {
      {{Digits(0), Digits(0)}, {Digits(4), Digits(0)}, {Digits(-2), height}, {Digits(-2), -height}}};
  const std::array<std::array<int, 2>, 4> targets = {{{0, 0}, {0, 1}, {0, -1}, {6, 0}}};
  const Digits density = 1 / (sqrt(2 * boost::math::constants::pi<Digits>()) * nodes);
  std::vector<BiasedSample<Digits>> samples;
  for (std::size_t p = 0; p < places.size(); ++p) {
    for (int i = -14 * nodes; i <= 14 * nodes; ++i) {
      const Digits x2 = Digits(i) / nodes;
      const Digits mass = (p == 0 ? Digits(2) : Digits(1)) / 5 * density * exp(-half * x2 * x2);
      samples.push_back(
          {{places[p][0], places[p][1], x2}, {Digits(targets[p][0]), Digits(targets[p][1])}, mass});
    }
  }
  return samples;
}

/// The solution δ of H δ = g over the entries without biases, by elimination with the largest pivots.
std::array<Digits, kFree> newton_step(BiasedLoss<Digits> local) {
  auto& h = local.hessian;
  auto& g = local.gradient;
  for (std::size_t column = 0; column < kFree; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < kFree; ++row)
      if (abs(h[row][column]) > abs(h[pivot][column])) pivot = row;
    std::swap(h[pivot], h[column]);
    std::swap(g[pivot], g[column]);
    for (std::size_t row = column + 1; row < kFree; ++row) {
      const Digits factor = h[row][column] / h[column][column];
      for (std::size_t k = column; k < kFree; ++k) h[row][k] -= factor * h[column][k];
      g[row] -= factor * g[column];
    }
  }
  std::array<Digits, kFree> step;
  for (std::size_t row = kFree; row-- > 0;) {
    step[row] = g[row];
    for (std::size_t k = row + 1; k < kFree; ++k) step[row] -= h[row][k] * step[k];
    step[row] /= h[row][row];
  }
  return step;
}

double gradient_norm(const BiasedPoint<Digits>& gradient) {
  Digits sum = 0;
  for (std::size_t i = 0; i < kFree; ++i) sum += gradient[i] * gradient[i];
  return static_cast<double>(Digits(sqrt(sum)));
}

double least_eigenvalue(const BiasedLoss<Digits>& local, int entries) {
  Matrix hessian(entries, entries);
  for (int i = 0; i < entries; ++i)
    for (int j = 0; j < entries; ++j) hessian(i, j) = static_cast<double>(local.hessian[size(i)][size(j)]);
  return symmetric_eigenvalues(hessian)[0];
}

/// K, a bound of |d³ loss / dt³| along unit directions at parameters within 1 of θ. With X = ‖x‖, B = 1 + max
/// ‖u_e‖ and D = max ‖y‖ + B, the derivatives of the outputs are at most 2XB + 1, 8X²B + 4X and 48X³B + 24X².
double third_derivative_bound(const std::vector<BiasedSample<Digits>>& samples,
                              const BiasedPoint<Digits>& theta) {
  double unit = 0;
  for (std::size_t i = kWeights; i < kFree; i += kOutputs)
    unit = std::max(unit, std::hypot(static_cast<double>(theta[i]), static_cast<double>(theta[i + 1])));
  const double b = 1 + unit, d = 6 + b;
  double bound = 0;
  for (const BiasedSample<Digits>& sample : samples) {
    double square = 0;
    for (const Digits& entry : sample.x) square += static_cast<double>(entry * entry);
    const double x = std::sqrt(square);
    bound += static_cast<double>(sample.mass) *
             (2 * d * (48 * x * square * b + 24 * square) + 6 * (2 * x * b + 1) * (8 * square * b + 4 * x));
  }
  return bound;
}

constexpr int kStepMixtures = 12;
/// The error of a Gauss rule in panels of length 2, and of the tail beyond them.
constexpr double kPanelError = 1e-7;
/// The rounding of sums of a few terms of order one.
constexpr double kStepRounding = 1e-12;

/// A random mixture with random targets at a few places of x₁, each combined with the law of x₂.
struct StepProblem {
  std::vector<BiasedSample<double>> samples;
  BiasedPoint<double> theta;
};

/// Values of x₂ with their masses.
std::vector<std::pair<double, double>> law_values(IrrelevantLaw law) {
  if (law == IrrelevantLaw::two_point) return {{-1, 0.5}, {1, 0.5}};
  using Rule = boost::math::quadrature::gauss<double, 20>;
  std::vector<std::pair<double, double>> values;
  for (int panel = 0; panel < 10; ++panel) {
    for (std::size_t i = 0; i < Rule::abscissa().size(); ++i) {
      for (const double side : {-1.0, 1.0}) {
        const double x = 2 * panel + 1 + side * Rule::abscissa()[i];
        const double mass = Rule::weights()[i] * std::exp(-x) / 2;
        values.insert(values.end(), {{x, mass}, {-x, mass}});
      }
    }
  }
  return values;
}

StepProblem draw_step_problem(Engine& engine, IrrelevantLaw law) {
  constexpr int kPlaces = 4;
  const Matrix places = draw_normals(engine, kPlaces, 2, 2),
               targets = draw_normals(engine, kPlaces, kOutputs, 2);
  StepProblem problem;
  for (int p = 0; p < kPlaces; ++p)
    for (const auto& [x2, mass] : law_values(law))
      problem.samples.push_back(
          {{places(p, 0), places(p, 1), x2}, {targets(p, 0), targets(p, 1)}, mass / kPlaces});
  const Matrix theta = draw_normals(engine, 1, kAll);
  std::copy_n(theta.data(), theta.size(), problem.theta.begin());
  return problem;
}

/// θ with W₂ → a W₂ and b → b + c W₂.
BiasedPoint<double> stepped(BiasedPoint<double> theta, double a, double c) {
  for (int e = 0; e < kRouted; ++e) {
    double& weight = theta[size(e * kInputs + kInputs - 1)];
    theta[size(kFree + e)] += c * weight;
    weight *= a;
  }
  return theta;
}

/// Newton steps in b while the loss falls. A later decrease is then due to W₂.
void descend_in_bias(StepProblem& problem) {
  BiasedLoss<double> local = biased_loss(problem.samples, problem.theta, true);
  for (int step = 0; step < 12; ++step) {
    Matrix hessian(kRouted, kRouted);
    Vector gradient(kRouted);
    for (int e = 0; e < kRouted; ++e) {
      gradient[e] = local.gradient[size(kFree + e)];
      for (int f = 0; f < kRouted; ++f) hessian(e, f) = local.hessian[size(kFree + e)][size(kFree + f)];
    }
    const SymmetricEigen eigen = symmetric_eigen(hessian);
    const Vector lengths = eigen.values.cwiseAbs().cwiseMax(1e-3);
    const Vector change = eigen.vectors * (eigen.vectors.transpose() * gradient).cwiseQuotient(lengths);
    BiasedPoint<double> next = problem.theta;
    for (int e = 0; e < kRouted; ++e) next[size(kFree + e)] -= change[e];
    BiasedLoss<double> moved = biased_loss(problem.samples, next, true);
    if (!(moved.value < local.value)) return;
    problem.theta = next;
    local = moved;
  }
}

double irrelevant_square(const BiasedPoint<double>& theta) {
  double square = 0;
  for (int e = 0; e < kRouted; ++e) square += std::pow(theta[size(e * kInputs + kInputs - 1)], 2);
  return square;
}

/// The loss at (a W₂, b + c W₂).
double loss_at(const StepProblem& problem, double a, double c) {
  return biased_loss(problem.samples, stepped(problem.theta, a, c), false).value;
}

}  // namespace

template <class Real>
BiasedLoss<Real> biased_loss(const std::vector<BiasedSample<Real>>& samples, const BiasedPoint<Real>& theta,
                             bool derivatives) {
  using std::exp;
  BiasedLoss<Real> local;
  const auto unit = [&](int e, int k) { return theta[size(kWeights + e * kOutputs + k)]; };
  for (const BiasedSample<Real>& sample : samples) {
    std::array<Real, kRouted> r;
    Real total = 0;
    for (int e = 0; e < kRouted; ++e) {
      Real score = theta[size(kFree + e)];
      for (int j = 0; j < kInputs; ++j) score += theta[size(e * kInputs + j)] * sample.x[size(j)];
      r[size(e)] = exp(score);
      total += r[size(e)];
    }
    for (Real& share : r) share /= total;
    std::array<Real, kOutputs> output{}, error;
    for (int k = 0; k < kOutputs; ++k) {
      for (int e = 0; e < kRouted; ++e) output[size(k)] += r[size(e)] * unit(e, k);
      error[size(k)] = output[size(k)] - sample.y[size(k)];
      local.value += sample.mass * error[size(k)] * error[size(k)];
    }
    if (!derivatives) continue;
    // Derivatives of the output in the scores: a_e = r_e (u_e − output), and c_e = (u_e − output)·error.
    std::array<std::array<Real, kOutputs>, kRouted> slope;
    std::array<Real, kRouted> along{};
    for (int e = 0; e < kRouted; ++e) {
      for (int k = 0; k < kOutputs; ++k) {
        slope[size(e)][size(k)] = r[size(e)] * (unit(e, k) - output[size(k)]);
        along[size(e)] += (unit(e, k) - output[size(k)]) * error[size(k)];
      }
    }
    const Real twice = 2 * sample.mass;
    for (int e = 0; e < kRouted; ++e) {
      const auto rows = score_entries(e, sample.x);
      for (const auto& [i, factor] : rows)
        local.gradient[size(i)] += twice * r[size(e)] * along[size(e)] * factor;
      for (int k = 0; k < kOutputs; ++k)
        local.gradient[size(kWeights + e * kOutputs + k)] += twice * r[size(e)] * error[size(k)];
      for (int f = 0; f < kRouted; ++f) {
        const Real change = r[size(e)] * (Real(e == f) - r[size(f)]);  // ∂r_e / ∂s_f
        Real curvature = change * along[size(e)] - r[size(e)] * r[size(f)] * along[size(f)];
        for (int k = 0; k < kOutputs; ++k) curvature += slope[size(e)][size(k)] * slope[size(f)][size(k)];
        const auto columns = score_entries(f, sample.x);
        for (const auto& [i, left] : rows)
          for (const auto& [j, right] : columns)
            local.hessian[size(i)][size(j)] += twice * curvature * left * right;
        for (int k = 0; k < kOutputs; ++k) {
          const int u = kWeights + e * kOutputs + k;
          const Real mixed = r[size(e)] * slope[size(f)][size(k)] + change * error[size(k)];
          for (const auto& [j, right] : columns) {
            local.hessian[size(u)][size(j)] += twice * mixed * right;
            local.hessian[size(j)][size(u)] += twice * mixed * right;
          }
          local.hessian[size(u)][size(kWeights + f * kOutputs + k)] += twice * r[size(e)] * r[size(f)];
        }
      }
    }
  }
  for (int i = 0; i < kFree; ++i) {
    const Real& entry = theta[size(i)];
    local.value += Real(kPenalty) * entry * entry;
    local.gradient[size(i)] += 2 * Real(kPenalty) * entry;
    local.hessian[size(i)][size(i)] += 2 * Real(kPenalty);
  }
  return local;
}

template BiasedLoss<double> biased_loss(const std::vector<BiasedSample<double>>&, const BiasedPoint<double>&,
                                        bool);

CheckFinding check_without_bias(const CheckEffort&) {
  // Three digits. Newton steps give the others.
  const std::array<double, kFree> near = {-0.971, -1.682, 0, 2.313,  -0.214, -3.113, -1.342, 1.896,
                                          3.113,  5.632,  0, -0.333, 0.600,  -0.333, -0.600};
  const std::vector<BiasedSample<Digits>> samples = counterexample(32);
  BiasedPoint<Digits> theta{};
  std::copy(near.begin(), near.end(), theta.begin());
  BiasedLoss<Digits> local = biased_loss(samples, theta, true);
  for (int step = 0; step < 6; ++step) {
    const std::array<Digits, kFree> change = newton_step(local);
    for (std::size_t i = 0; i < kFree; ++i) theta[i] -= change[i];
    local = biased_loss(samples, theta, true);
  }
  const BiasedLoss<Digits> finer = biased_loss(counterexample(64), theta, true);
  const double gradient = std::max(gradient_norm(local.gradient), gradient_norm(finer.gradient));
  const double least = least_eigenvalue(finer, kFree), bound = third_derivative_bound(samples, theta);
  Digits irrelevant = 0, whole = 0;
  for (int i = 0; i < kWeights; ++i) {
    whole += theta[size(i)] * theta[size(i)];
    if (i % kInputs == kInputs - 1) irrelevant += theta[size(i)] * theta[size(i)];
  }
  return {.hypotheses = {{"the Hessian is positive (least eigenvalue > 1e-6)", least, least > 1e-6},
                         {"a minimum is certified (2 K |gradient| / eigenvalue^2 < 1)",
                          2 * bound * gradient / (least * least), 2 * bound * gradient < least * least}},
          .measured = static_cast<double>(Digits(sqrt(irrelevant / whole))),
          .error_bound = kSumRounding + 2 * gradient / least,
          .error_origin = "distance of the minimum, certified in 50 digits",
          .details = {{"loss", static_cast<double>(local.value)},
                      {"norm of the gradient", gradient},
                      {"least eigenvalue with a free bias", least_eigenvalue(finer, kAll)}}};
}

CheckFinding check_two_points(const CheckEffort&) {
  const Digits penalty = Digits(3) / 1000;
  const Digits gap = cbrt(Digits(penalty / 4)), square = 1 - gap, weight = sqrt(square);
  // First and second derivatives of (s² − 1)⁴ at s = ±W₂.
  const Digits slope = 8 * weight * (square - 1) * (square - 1) * (square - 1);
  const Digits bend = 8 * pow(square - 1, 3) + 48 * square * (square - 1) * (square - 1);
  const double gradient = static_cast<double>(Digits(abs(slope + 2 * penalty * weight)));
  // By symmetry the mixed derivative is 0, and b has the same second derivative without the penalty.
  const double curvature = static_cast<double>(bend);
  return {.hypotheses = {{"the gradient vanishes (norm <= 1e-45)", gradient, gradient <= 1e-45},
                         {"a strict minimum in (W2, b) (least curvature > 0)", curvature, curvature > 0}},
          .measured = static_cast<double>(weight),
          .error_bound = kSumRounding,
          .error_origin = "rounding"};
}

CheckFinding check_global_step(const CheckEffort& effort, IrrelevantLaw law, bool shift) {
  double smallest = kInfinity;
  for (int i = 0; i < kStepMixtures * effort.seeds; ++i) {
    Engine engine = check_stream(effort, "dikkala2023.theorem1.global", i);
    StepProblem problem = draw_step_problem(engine, law);
    descend_in_bias(problem);
    double best = kInfinity;
    for (const auto& [value, mass] : law_values(law)) {
      if (mass < 1e-6) continue;  // fewer candidates can only reduce the decrease
      best = std::min(best, loss_at(problem, 0, shift ? value : 0));
    }
    const double decrease = loss_at(problem, 1, 0) - best;
    smallest = std::min(smallest, decrease - kPenalty * irrelevant_square(problem.theta));
  }
  return {.relation = Relation::at_least,
          .measured = smallest,
          .error_bound = law == IrrelevantLaw::two_point ? kStepRounding : kPanelError,
          .error_origin = law == IrrelevantLaw::two_point ? "rounding" : "the rule for x2"};
}

CheckFinding check_local_step(const CheckEffort& effort, bool shift) {
  double smallest = kInfinity;
  for (int i = 0; i < kStepMixtures * effort.seeds; ++i) {
    Engine engine = check_stream(effort, "dikkala2023.theorem1.self_decomposable", i);
    StepProblem problem = draw_step_problem(engine, IrrelevantLaw::laplace);
    descend_in_bias(problem);
    const double before = loss_at(problem, 1, 0);
    for (const double a : {0.99, 0.9}) {
      double best = loss_at(problem, a, 0);
      for (double z = -6; shift && z <= 6; z += 0.25) best = std::min(best, loss_at(problem, a, z));
      smallest =
          std::min(smallest, (before - best) / (kPenalty * (1 - a * a) * irrelevant_square(problem.theta)));
    }
  }
  return {.relation = Relation::at_least,
          .predicted = 1,
          .measured = smallest,
          .error_bound = kPanelError / (kPenalty * 0.02),
          .error_origin = "the rule for x2"};
}

std::vector<Check> dikkala2023_router_bias_checks() {
  const std::string source = "Dikkala et al. 2023, Theorem 1 (3)", id = "dikkala2023.theorem1.";
  return {{id + "no_bias", source,
           "without the bias of Theorem 1, as in section 2, a router W x has |W2|/|W| = 0 at a local minimum "
           "(at one that is certified)",
           CheckVerdict::fails, check_without_bias},
          {id + "two_point", source,
           "for any law of x2, a local minimum has W2 = 0 (x2 = +-1, y = 0, router g(s) = (s^2 - 1)^2 with a "
           "bias)",
           CheckVerdict::fails, check_two_points},
          {id + "global", source,
           "for any law of x2, W2 -> 0 with the best bias lowers L by at least lambda1 |W2|^2: a global "
           "minimum has W2 = 0 (smallest excess, x2 = +-1)",
           CheckVerdict::holds,
           [](Effort effort) { return check_global_step(effort, IrrelevantLaw::two_point); }},
          {id + "self_decomposable", source,
           "for a self-decomposable x2, W2 -> a W2 with the best bias lowers L by at least lambda1 (1 - a^2) "
           "|W2|^2 (smallest ratio, Laplace x2)",
           CheckVerdict::holds, [](Effort effort) { return check_local_step(effort); }}};
}

}  // namespace moelab
