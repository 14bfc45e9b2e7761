#include <boost/math/constants/constants.hpp>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "analysis/theory/check.h"
#include "analysis/theory/dikkala2023.h"

namespace moelab {
namespace {

constexpr int kWeightDraws = 20, kWeightRows = 2000;
/// The weight of the component at z; the other one has the rest.
constexpr double kWeightsAtMean[] = {0.01, 0.2, 0.9};

/// The term of one component in the loss E‖q u − y‖², and its gradient (w, then u).
struct ComponentTerm {
  double loss = 0;
  Vector gradient;
};

/// Over x = sign (z + g), y = sign v, for the rows g of `noise`; q = tanh((wᵀx + bias) / 2).
ComponentTerm component_term(const TwoComponentProblem& problem, const TwoComponentState& at, double bias,
                             const Matrix& noise, double sign) {
  const Eigen::Index d = at.w.size(), o = at.u.size();
  ComponentTerm term{0, Vector::Zero(d + o)};
  for (Eigen::Index i = 0; i < noise.rows(); ++i) {
    const Vector x = sign * (problem.mean + noise.row(i).transpose());
    const double q = std::tanh((at.w.dot(x) + bias) / 2);
    const Vector residual = q * at.u - sign * problem.value;
    term.loss += residual.squaredNorm();
    term.gradient.head(d) += residual.dot(at.u) * (1 - q * q) * x;
    term.gradient.tail(o) += 2 * q * residual;
  }
  return term;
}

/// Rows of g ~ N(0, σ² I) given ‖g‖ ≤ ρ.
Matrix truncated_noise(const TwoComponentProblem& problem, Engine& engine) {
  Matrix noise(kWeightRows, problem.mean.size());
  for (Eigen::Index i = 0; i < noise.rows(); ++i) {
    do noise.row(i) = draw_normals(engine, 1, static_cast<int>(noise.cols()), problem.noise_std);
    while (noise.row(i).norm() > problem.radius);
  }
  return noise;
}

}  // namespace

CheckFinding check_weights(const CheckEffort& effort, double bias) {
  double loss = 0, gradient = 0;
  for (int i = 0; i < kWeightDraws * effort.seeds; ++i) {
    Engine engine = check_stream(effort, "dikkala2023.theorem4.weights", i);
    const TwoComponentProblem problem = reference_problem(engine);
    const TwoComponentState at = draw_start(engine, problem, 1, 0);
    const Matrix noise = truncated_noise(problem, engine);
    const ComponentTerm here = component_term(problem, at, bias, noise, 1);
    const ComponentTerm there = component_term(problem, at, bias, noise, -1);
    const double even = (here.loss + there.loss) / 2;
    const Vector even_gradient = (here.gradient + there.gradient) / 2;
    for (const double weight : kWeightsAtMean) {
      loss = larger(loss, std::abs(weight * here.loss + (1 - weight) * there.loss - even) / even);
      gradient =
          larger(gradient, (weight * here.gradient + (1 - weight) * there.gradient - even_gradient).norm() /
                               even_gradient.norm());
    }
  }
  CheckFinding finding;
  finding.measured = larger(loss, gradient);
  finding.error_bound = 1e-12;
  finding.error_origin = "rounding of sums over 2000 rows";
  finding.details = {{"largest relative difference of losses", loss},
                     {"largest relative difference of gradients", gradient}};
  return finding;
}

namespace {

constexpr int kGradientDraws = 100000;
constexpr double kGradientDifferenceStep = 1e-4;
constexpr double kGradientDifferenceTolerance = 1e-7;
constexpr std::initializer_list<double> kNorms = {0.1, 1.0, 4.0};  // of w at the points of comparison

/// A point with ‖w‖ = norm in a random direction and u ~ N(0, I).
TwoComponentState draw_point(Engine& engine, const TwoComponentProblem& problem, double norm) {
  TwoComponentState point = draw_start(engine, problem, 1.0, 0);
  point.w *= norm / point.w.norm();
  return point;
}

/// z + g or −(z + g). The ball of the reference problem holds 98 % of the Gaussian.
Vector draw_input(Engine& engine, const TwoComponentProblem& problem, int side) {
  Vector g(problem.mean.size());
  do {
    fill_normal(engine, problem.noise_std, g.data(), static_cast<std::size_t>(g.size()));
  } while (g.norm() > problem.radius);
  return side * (problem.mean + g);
}

/// ∂/∂(w, u) of ‖(2p − 1)u − y‖² at one input, y = ±v: a vector (d + o).
Vector sample_gradient(const TwoComponentState& point, const Vector& x, const Vector& y) {
  const double p = 1 / (1 + std::exp(-point.w.dot(x)));
  const Vector residual = (2 * p - 1) * point.u - y;
  Vector gradient(point.w.size() + point.u.size());
  gradient << 2 * residual.dot(point.u) * 2 * p * (1 - p) * x, 2 * (2 * p - 1) * residual;
  return gradient;
}

Vector joined(const TwoComponentGradient& gradient) {
  Vector all(gradient.router.size() + gradient.expert.size());
  all << gradient.router, gradient.expert;
  return all;
}

}  // namespace

CheckFinding check_gradient_by_sampling(const CheckEffort& effort, const TwoComponentRule& rule) {
  Engine engine = check_stream(effort, "dikkala2023.theorem4.gradient.monte_carlo", 0);
  const TwoComponentProblem problem = reference_problem(engine);
  const TwoComponentPopulation population(problem);
  // More seeds are more draws, not more comparisons: the largest of many would pass any number of errors.
  const int draws = kGradientDraws * effort.seeds;
  double largest = 0;
  for (const double norm : kNorms) {
    const TwoComponentState point = draw_point(engine, problem, norm);
    const Vector exact = joined(rule(population, point));
    Vector sum = Vector::Zero(exact.size()), squares = sum;
    for (int i = 0; i < draws; ++i) {
      // One draw of each component: L is the sum over the two.
      const Vector gradient = sample_gradient(point, draw_input(engine, problem, 1), problem.value) +
                              sample_gradient(point, draw_input(engine, problem, -1), -problem.value) - exact;
      sum += gradient;
      squares += gradient.cwiseAbs2();
    }
    const Vector mean = sum / draws;
    const Vector variance = squares / draws - mean.cwiseAbs2();
    const Vector errors = (mean.array() / (variance.array() / draws).sqrt()).abs();
    largest = larger(largest, errors.maxCoeff<Eigen::PropagateNaN>());
  }
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = kStandardErrors;
  finding.error_origin = "4 standard errors";
  finding.details = {{"draws of each component", draws}};
  return finding;
}

CheckFinding check_gradient_by_differences(const CheckEffort& effort, const TwoComponentRule& rule) {
  double largest = 0;
  for (int repetition = 0; repetition < effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, "dikkala2023.theorem4.gradient.central_difference", repetition);
    const TwoComponentProblem problem = reference_problem(engine);
    const TwoComponentPopulation population(problem);
    for (const double norm : kNorms) {
      TwoComponentState point = draw_point(engine, problem, norm);
      const TwoComponentGradient exact = rule(population, point);
      const auto compare = [&](double& coordinate, double derivative) {
        const double kept = coordinate;
        coordinate = kept + kGradientDifferenceStep;
        const double above = population.loss(point.w, point.u);
        coordinate = kept - kGradientDifferenceStep;
        const double below = population.loss(point.w, point.u);
        coordinate = kept;
        largest = larger(largest, std::abs((above - below) / (2 * kGradientDifferenceStep) - derivative));
      };
      for (Eigen::Index i = 0; i < point.w.size(); ++i) compare(point.w[i], exact.router[i]);
      for (Eigen::Index i = 0; i < point.u.size(); ++i) compare(point.u[i], exact.expert[i]);
    }
  }
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = kGradientDifferenceTolerance;
  finding.error_origin = "central differences of step 1e-4: curvature about 1e-9, rounding 1e-11";
  return finding;
}

std::vector<Check> dikkala2023_theorem4_gradient_checks() {
  const std::string prefix = "dikkala2023.theorem4.gradient.", source = "Dikkala et al. 2023, appendix F";
  const std::string formula =
      "dL/du = 4(E[q^2] u - E[q] v), dL/dw = 4 E[q'(q |u|^2 - v.u)(z + t w/|w|)] by quadrature ";
  return {{prefix + "monte_carlo", source, formula + "is the mean of sampled gradients (in standard errors)",
           CheckVerdict::holds, [](const CheckEffort& effort) { return check_gradient_by_sampling(effort); }},
          {prefix + "central_difference", source,
           formula + "is the derivative of the quadrature of L (largest deviation)", CheckVerdict::holds,
           [](const CheckEffort& effort) { return check_gradient_by_differences(effort); }}};
}

namespace {

constexpr int kSmallStarts = 40, kLongStarts = 4, kSideStarts = 2000;
constexpr double kTinyScale = 1e-4, kReferenceScale = 1e-3;
/// The ratio of the reference trajectory stands for η_u ≫ η_w.
constexpr double kFastExperts = 10;
constexpr DescentRates kReferenceRates{0.05, 0.5};
/// ‖w‖ after 10⁴ and 10⁵ steps by an independent NumPy simulation
/// (tests/analysis/theory/dikkala2023/reference.py).
constexpr double kNormAfter1e4 = 5.39, kNormAfter1e5 = 7.24;
constexpr DescentRates kSlowExperts{0.5, 0.005};

/// A problem with a start on it. Odd starts lie on the side −z.
struct Case {
  TwoComponentPopulation population;
  TwoComponentState start;
};

Case draw_case(const CheckEffort& effort, std::string_view id, int index, double scale, int side) {
  Engine engine = check_stream(effort, id, index);
  const TwoComponentProblem problem = reference_problem(engine);
  return {TwoComponentPopulation(problem), draw_start(engine, problem, scale, side)};
}

int side_of(int index) {
  return index % 2 == 0 ? 1 : -1;
}

std::vector<Hypothesis> hypotheses(const TwoComponentProblem& problem, const DescentRates& rates,
                                   double scale) {
  const double ratio = rates.expert / rates.router;
  // As a quotient, which is a number for whole Gaussians too.
  const double truncation = problem.mean.norm() / problem.radius;
  return {{"truncated short of the other side: |z| / rho > 1", truncation, truncation > 1},
          {"eta_u / eta_w >= 10", ratio, ratio >= kFastExperts},
          {"entries of w and u start at most of scale 1e-3", scale, scale <= kReferenceScale}};
}

/// The trajectories of the reference setting, recorded at `record`.
struct Trajectories {
  std::vector<Case> cases;
  std::vector<std::vector<TwoComponentState>> states;
};

Trajectories long_trajectories(const CheckEffort& effort, const std::vector<int>& record,
                               const TwoComponentRule& rule) {
  Trajectories all;
  for (int i = 0; i < kLongStarts * effort.seeds; ++i) {
    all.cases.push_back(draw_case(effort, "dikkala2023.theorem4.long", i, kReferenceScale, side_of(i)));
    const Case& last = all.cases.back();
    all.states.push_back(descend(last.population, last.start, kReferenceRates, record, rule));
  }
  return all;
}

CheckFinding finding_of(const Trajectories& all) {
  CheckFinding finding;
  finding.hypotheses = hypotheses(all.cases.front().population.problem(), kReferenceRates, kReferenceScale);
  finding.details = {{"starts", static_cast<double>(all.cases.size())}};
  return finding;
}

/// Takes the pair that is furthest apart, relative to the prediction; one that is not a number stays.
void keep_furthest(CheckFinding& finding, double measured, double predicted) {
  const double known = std::abs(finding.measured - finding.predicted) / std::abs(finding.predicted);
  const double found = std::abs(measured - predicted) / std::abs(predicted);
  const bool first = finding.predicted == 0;
  if (!first && (std::isnan(known) || found <= known)) return;
  finding.measured = measured;
  finding.predicted = predicted;
}

}  // namespace

CheckFinding check_alignment(const CheckEffort& effort, int side, const TwoComponentRule& rule) {
  const std::string id =
      side > 0 ? "dikkala2023.theorem4.start_at_z" : "dikkala2023.theorem4.start_at_minus_z";
  const int starts = kSmallStarts * effort.seeds;
  constexpr double kAligned = 1e-6;
  double largest = 0;
  int kept = 0, from_reference = 0;
  CheckFinding finding;
  for (int i = 0; i < starts; ++i) {
    const Case tiny = draw_case(effort, id, i, kTinyScale, side);
    const TwoComponentProblem& problem = tiny.population.problem();
    const double cosine =
        alignment(problem, descend(tiny.population, tiny.start, kReferenceRates, {100}, rule).front());
    largest = larger(largest, 1 - std::abs(cosine));
    if (cosine * side > 0) ++kept;
    // The same draws ten times larger.
    const TwoComponentState tenfold = {10 * tiny.start.w, 10 * tiny.start.u};
    const TwoComponentState end = descend(tiny.population, tenfold, kReferenceRates, {100}, rule).front();
    if (1 - std::abs(alignment(problem, end)) < kAligned) ++from_reference;
    if (i == 0) finding.hypotheses = hypotheses(problem, kReferenceRates, kTinyScale);
  }
  finding.relation = Relation::at_most;
  finding.measured = largest;
  finding.error_bound = kAligned;
  finding.error_origin = "what is left of the start across z after 100 steps";
  finding.details = {
      {"starts", starts},
      {"share that ends on the side of its start", static_cast<double>(kept) / starts},
      {"share aligned from starts of scale 1e-3", static_cast<double>(from_reference) / starts}};
  return finding;
}

CheckFinding check_norm(const CheckEffort& effort, int steps, double reference,
                        const TwoComponentRule& rule) {
  const Trajectories all = long_trajectories(effort, {steps}, rule);
  CheckFinding finding = finding_of(all);
  for (const std::vector<TwoComponentState>& states : all.states)
    keep_furthest(finding, states.back().w.norm(), reference);
  finding.error_bound = 0.01 * reference;
  finding.error_origin = "1 %: the start matters below that; reference from an independent NumPy simulation";
  return finding;
}

CheckFinding check_growth(const CheckEffort& effort, const TwoComponentRule& rule) {
  const Trajectories all = long_trajectories(effort, {1000, 10000, 100000}, rule);
  CheckFinding finding = finding_of(all);
  for (std::size_t i = 0; i < all.cases.size(); ++i) {
    const std::vector<TwoComponentState>& states = all.states[i];
    const double flow =
        reduced_flow(all.cases[i].population, kReferenceRates.router, states.front().w.norm(), 1000, 100000);
    keep_furthest(finding, states.back().w.norm(), flow);
  }
  finding.error_bound = 1e-4 * finding.predicted;
  finding.error_origin = "1e-4: the share by which u lags behind u* at step 1000";
  finding.details.emplace_back("|w| after 1e3 steps", all.states.front()[0].w.norm());
  finding.details.emplace_back("|w| after 1e4 steps", all.states.front()[1].w.norm());
  return finding;
}

CheckFinding check_log_rate(const CheckEffort& effort, const TwoComponentRule& rule) {
  const Trajectories all = long_trajectories(effort, {10000, 100000}, rule);
  CheckFinding finding = finding_of(all);
  const double radius = all.cases.front().population.problem().radius;
  const double slowest = 1 / (2 * (1 + radius)), fastest = 1 / (2 * (1 - radius));
  for (std::size_t i = 0; i < all.cases.size(); ++i) {
    const double before = all.states[i][0].w.norm(), after = all.states[i][1].w.norm();
    const double flow = reduced_flow(all.cases[i].population, kReferenceRates.router, before, 10000, 100000);
    keep_furthest(finding, (after - before) / std::log(10.0), (flow - before) / std::log(10.0));
  }
  finding.details.emplace_back("1/(2(1 + rho))", slowest);
  finding.details.emplace_back("1/(2(1 - rho))", fastest);
  finding.error_bound = 0.01 * finding.predicted;
  finding.error_origin = "1 %, far above what u lags behind u* after 1e4 steps";
  return finding;
}

CheckFinding check_experts(const CheckEffort& effort, const TwoComponentRule& rule) {
  const Trajectories all = long_trajectories(effort, {100, 10000, 100000}, rule);
  CheckFinding finding = finding_of(all);
  for (std::size_t i = 0; i < all.cases.size(); ++i) {
    const TwoComponentPopulation& population = all.cases[i].population;
    const TwoComponentState& end = all.states[i].back();
    const double left = (population.best_expert(end.w).norm() / population.problem().value.norm()) - 1;
    keep_furthest(finding, expert_distance(population.problem(), end), left);
  }
  finding.error_bound = 1e-6;
  finding.error_origin = "the lag of u behind u*";
  const TwoComponentProblem& problem = all.cases.front().population.problem();
  finding.details.emplace_back("after 1e2 steps", expert_distance(problem, all.states.front()[0]));
  finding.details.emplace_back("after 1e4 steps", expert_distance(problem, all.states.front()[1]));
  return finding;
}

CheckFinding check_side(const CheckEffort& effort, const DescentRates& rates, const TwoComponentRule& rule) {
  constexpr int kSteps = 300;
  const int starts = kSideStarts * effort.seeds;
  int changed = 0;
  double across = 0, distance = 0, norm = std::numeric_limits<double>::infinity();
  CheckFinding finding;
  for (int i = 0; i < starts; ++i) {
    const Case drawn = draw_case(effort, "dikkala2023.theorem4.side", i, kTinyScale, side_of(i));
    const TwoComponentProblem& problem = drawn.population.problem();
    const TwoComponentState end = descend(drawn.population, drawn.start, rates, {kSteps}, rule).front();
    const double cosine = alignment(problem, end);
    if (!(cosine * side_of(i) > 0)) ++changed;
    across = larger(across, 1 - std::abs(cosine));
    distance = larger(distance, expert_distance(problem, end));
    norm = smaller(norm, end.w.norm());
    if (i == 0) finding.hypotheses = hypotheses(problem, rates, kTinyScale);
  }
  finding.predicted =
      std::atan(std::sqrt(rates.router / rates.expert)) / boost::math::constants::pi<double>();
  finding.measured = static_cast<double>(changed) / starts;
  finding.error_bound = 4 * std::sqrt(finding.predicted * (1 - finding.predicted) / starts);
  finding.error_origin = "4 standard errors of the share";
  finding.resolution = 0.5;
  finding.details = {{"starts", starts},
                     {"largest 1 - |cos(w, z)| after 300 steps", across},
                     {"smallest |w| after 300 steps", norm},
                     {"largest |u -+ v| / |v| after 300 steps", distance}};
  return finding;
}

CheckFinding check_untruncated(const CheckEffort& effort, const TwoComponentRule& rule) {
  Engine engine = check_stream(effort, "dikkala2023.theorem4.untruncated", 0);
  TwoComponentProblem problem = reference_problem(engine);
  problem.noise_std = 1;
  problem.radius = std::numeric_limits<double>::infinity();
  const TwoComponentPopulation population(problem);
  const TwoComponentState start = draw_start(engine, problem, kReferenceScale, 0);
  const std::vector<TwoComponentState> states =
      descend(population, start, kReferenceRates, {1000, 10000}, rule);
  CheckFinding finding;
  finding.hypotheses = hypotheses(problem, kReferenceRates, kReferenceScale);
  finding.predicted = 2 / (problem.noise_std * problem.noise_std);
  finding.measured = states.back().w.norm();
  finding.error_bound = 1e-8;
  finding.error_origin = "quadrature, and the distance left after 1e4 steps";
  finding.details = {{"|w| after 1e3 steps", states.front().w.norm()},
                     {"cos(w, z) after 1e4 steps", alignment(problem, states.back())},
                     {"|u -+ v| / |v| after 1e4 steps", expert_distance(problem, states.back())}};
  return finding;
}

std::vector<Check> dikkala2023_theorem4_checks() {
  const std::string prefix = "dikkala2023.theorem4.", source = "Dikkala et al. 2023, Theorem 4";
  const std::string setting = " (d = 10, sigma = .15, rho = .7, v = (1, -2), eta_w = .05, eta_u = .5)";
  return {
      {prefix + "start_at_z", source,
       "w aligns with z: 1 - |cos(w, z)| after 100 steps from w.z > 0" + setting, CheckVerdict::holds,
       [](const CheckEffort& effort) { return check_alignment(effort, 1); }},
      {prefix + "start_at_minus_z", source,
       "w aligns with z: 1 - |cos(w, z)| after 100 steps from w.z < 0" + setting, CheckVerdict::holds,
       [](const CheckEffort& effort) { return check_alignment(effort, -1); }},
      {prefix + "norm_1e4", source, "|w| grows without bound: its value after 1e4 steps" + setting,
       CheckVerdict::holds,
       [](const CheckEffort& effort) { return check_norm(effort, 10000, kNormAfter1e4); }},
      {prefix + "norm_1e5", source, "|w| grows without bound: its value after 1e5 steps" + setting,
       CheckVerdict::holds,
       [](const CheckEffort& effort) { return check_norm(effort, 100000, kNormAfter1e5); }},
      {prefix + "growth", source,
       "from step 1e3 to 1e5 |w| follows the proof's reduction w = alpha z, u = u*(w): d alpha/dt = -eta_w "
       "dL*/d alpha, L* = 2 |v|^2 (1 - E[q]^2/E[q^2])",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_growth(effort); }},
      {prefix + "log_rate", source,
       "|w| grows like log t: d|w|/d log t over the last decade is that of the proof's reduction, which lies "
       "between 1/(2(1 + rho)) and 1/(2(1 - rho))",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_log_rate(effort); }},
      {prefix + "experts", source,
       "u tends to +-v: its relative distance after 1e5 steps is E[q]/E[q^2] - 1, which vanishes with "
       "growing "
       "|w|",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_experts(effort); }},
      {prefix + "side", source + ", linearised at the start",
       "a share arctan(sqrt(eta_w/eta_u))/pi of random starts ends on the other side of w.z = 0",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_side(effort, kReferenceRates); }},
      {prefix + "slow_experts", source + ", without eta_u >> eta_w",
       "with eta_u = .005, eta_w = .5 the side of w.z is no longer that of the start: the share that changes "
       "it",
       CheckVerdict::hypotheses_not_met,
       [](const CheckEffort& effort) { return check_side(effort, kSlowExperts); }},
      {prefix + "weights", source + ", its loss",
       "the loss and its gradient are the same whatever the weights of the two components (largest relative "
       "difference from even weights)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_weights(effort); }},
      {prefix + "untruncated", source + ", without truncation",
       "for whole Gaussians |w| stops at 2/sigma^2 (sigma = 1): |w| after 1e4 steps",
       CheckVerdict::hypotheses_not_met,
       [](const CheckEffort& effort) { return check_untruncated(effort); }}};
}

}  // namespace moelab
