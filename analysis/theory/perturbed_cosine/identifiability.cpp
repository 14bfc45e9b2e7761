#include "analysis/theory/perturbed_cosine/identifiability.h"

#include <cmath>

#include "sim/base/quasi_random.h"

namespace moelab {
namespace {

constexpr int kInputRows = 256, kDescents = 6;
constexpr double kSpreads[] = {0.025, 0.05, 0.1};
/// Of sums of a few terms of order one.
constexpr double kValueRounding = 1e-13;
/// Of second differences with step 1e-4 of functions of order ten.
constexpr double kDifferenceError = 1e-5;
constexpr double kFirstScale = 0.5;

Matrix draw_inputs(const CheckEffort& effort, const char* id) {
  Engine engine = check_stream(effort, id, 0);
  return QuasiRandom(2, engine).normals(kInputRows);
}

double largest_change(const MixingMeasure& measure, const MixingMeasure& truth, const Matrix& x) {
  return (regression_values(measure, x) - regression_values(truth, x)).cwiseAbs().maxCoeff();
}

CheckFinding nothing_changes(double change) {
  CheckFinding finding;
  finding.measured = change;
  finding.error_bound = kValueRounding;
  finding.error_origin = "rounding";
  return finding;
}

/// The degree q of h(x, c η) = c^q h(x, η), c > 0.
int degree(const MixtureForm& form) {
  return form.expert == MixtureForm::Expert::relu ? 1 : form.power;
}

/// F of the first component alone at one row, its weight kept apart from the others'.
double numerator(const MixingMeasure& measure, const Matrix& x, Eigen::Index row) {
  return std::exp(gate_scores(measure, x.row(row))[0]) * expert_values(measure, x.row(row))[0];
}

struct NamedForm {
  const char* name;
  MixtureForm form;
};

/// τ of the order of ‖β1‖: at .1 the perturbed router is nearly the cosine router.
std::vector<NamedForm> routers() {
  using Router = MixtureForm::Router;
  return {{"linear", {.router = Router::linear}},
          {"cosine", {.router = Router::cosine}},
          {"perturbed_cosine", {.router = Router::cosine, .tau1 = 1, .tau2 = 1}}};
}

std::vector<NamedForm> pairs_with(const NamedForm& router) {
  std::vector<NamedForm> pairs = {
      {"linear", router.form}, {"polynomial", router.form}, {"relu", router.form}};
  pairs[1].form.power = 2;
  pairs[2].form.expert = MixtureForm::Expert::relu;
  return pairs;
}

}  // namespace

MixingMeasure example_measure(const MixtureForm& form) {
  MixingMeasure measure{form, Matrix(2, 2), Vector(2), Matrix(2, 2), Vector(2)};
  measure.gate << 2, 0, -1, 1.5;
  measure.bias << 0, 0.3;
  measure.slope << 1, -0.5, -0.5, 1.5;
  measure.intercept << 0.5, -0.5;
  return measure;
}

CheckFinding check_scaled_experts(const CheckEffort& effort, const MixtureForm& form, double first_scale) {
  const MixingMeasure truth = example_measure(form);
  const double power = degree(form);
  const double second_scale = std::pow(2 - std::pow(first_scale, power), 1 / power);
  MixingMeasure split{form, Matrix(3, 2), Vector(3), Matrix(3, 2), Vector(3)};
  split.gate << truth.gate, truth.gate.row(0);
  split.bias << truth.bias[0] - std::log(2.0), truth.bias[1], truth.bias[0] - std::log(2.0);
  split.slope << first_scale * truth.slope.row(0), truth.slope.row(1), second_scale * truth.slope.row(0);
  split.intercept << first_scale * truth.intercept[0], truth.intercept[1], second_scale * truth.intercept[0];
  CheckFinding finding =
      nothing_changes(largest_change(split, truth, draw_inputs(effort, "identifiability.scaled_experts")));
  const double length = std::hypot(truth.slope.row(0).norm(), truth.intercept[0]);
  finding.details = {{"distance of an expert from the truth", (1 - first_scale) * length}};
  return finding;
}

CheckFinding check_radius(const CheckEffort& effort, const MixtureForm& form) {
  const MixingMeasure truth = example_measure(form);
  MixingMeasure longer = truth;
  longer.gate *= 2;
  return nothing_changes(largest_change(longer, truth, draw_inputs(effort, "identifiability.radius")));
}

CheckFinding check_mixed_derivative(const CheckEffort& effort, const MixtureForm& form) {
  constexpr double kStep = 1e-4;
  const MixingMeasure truth = example_measure(form);
  const Matrix x = draw_inputs(effort, "identifiability.mixed_derivative");
  double difference = 0, largest = 0;
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    for (Eigen::Index u = 0; u < truth.gate.cols(); ++u) {
      const auto value = [&](double gate, double slope, double intercept) {
        MixingMeasure moved = truth;
        moved.gate(0, u) += gate * kStep;
        moved.slope(0, u) += slope * kStep;
        moved.intercept[0] += intercept * kStep;
        return numerator(moved, x, row);
      };
      const double mixed =
          (value(1, 0, 1) - value(1, 0, -1) - value(-1, 0, 1) + value(-1, 0, -1)) / (4 * kStep * kStep);
      const double slope = (value(0, 1, 0) - value(0, -1, 0)) / (2 * kStep);
      difference = std::max(difference, std::abs(mixed - slope));
      largest = std::max(largest, std::abs(slope));
    }
  }
  CheckFinding finding;
  finding.measured = difference / largest;
  finding.error_bound = kDifferenceError;
  finding.error_origin = "central differences";
  return finding;
}

CheckFinding check_flatness(const CheckEffort& effort, const MixtureForm& form, ExpertFamily family) {
  const SplitCell cell{example_measure(form), family};
  const Matrix x = draw_inputs(effort, "identifiability.flatness");
  Engine engine = check_stream(effort, "identifiability.flatness.starts", 0);
  // From the smallest spread on, each flattest measure is a start for the next.
  std::vector<Vector> starts = draw_starts(cell, kDescents * effort.seeds, engine);
  std::vector<double> distances;
  for (const double spread : kSpreads) {
    FlattestSplit flattest = flattest_split(cell, x, spread, starts);
    distances.push_back(flattest.distance);
    starts = {std::move(flattest.coordinates)};
  }
  const double last = std::log2(distances[1] / distances[0]), first = std::log2(distances[2] / distances[1]);
  CheckFinding finding;
  finding.predicted = 2;
  finding.measured = last;
  finding.error_bound = 2 * std::abs(last - first) + 0.02;
  finding.error_origin = "twice the change of the slope over spreads";
  finding.resolution = 0.5;
  finding.details = {{"distance at spread .025", distances[0]}, {"distance at spread .1", distances[2]}};
  return finding;
}

std::vector<Check> identifiability_checks() {
  const std::string source = "Nguyen et al. (perturbed cosine router), Table 1";
  std::vector<Check> checks;
  for (const NamedForm& router : routers()) {
    const std::string id = std::string("identifiability.") + router.name;
    const bool is_linear = router.form.router == MixtureForm::Router::linear;
    const bool is_cosine = !is_linear && router.form.tau1 == 0;
    const auto expected = [](bool holds) { return holds ? CheckVerdict::holds : CheckVerdict::fails; };
    checks.push_back(
        {id + ".radius", source, "f_G is the same where every beta1 is twice as long", expected(is_cosine),
         [form = router.form](const CheckEffort& effort) { return check_radius(effort, form); }});
    checks.push_back(
        {id + ".mixed_derivative", source,
         "d2F / dbeta1 db = dF / da for F = exp(gate score) h(a'x + b), h linear (largest difference)",
         expected(is_linear),
         [form = router.form](const CheckEffort& effort) { return check_mixed_derivative(effort, form); }});
    for (const NamedForm& pair : pairs_with(router)) {
      const std::string name = id + "." + pair.name;
      checks.push_back(
          {name + ".scaled_experts", source,
           "two components with one gate and experts c eta of different c give the f* of one: no "
           "least-squares fit tells c, at any n",
           CheckVerdict::holds, [form = pair.form](const CheckEffort& effort) {
             return check_scaled_experts(effort, form, kFirstScale);
           }});
      checks.push_back(
          {name + ".flatness", source,
           "where the length of (a, b) is known, two components e apart in one cell have at least "
           "|f_G - f*| ~ e^2: rate n^(-1/4)",
           CheckVerdict::holds,
           [form = pair.form](const CheckEffort& effort) { return check_flatness(effort, form); }});
    }
  }
  return checks;
}

}  // namespace moelab
