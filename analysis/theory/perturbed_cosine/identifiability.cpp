#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/theory/perturbed_cosine.h"
#include "sim/base/numerics.h"
#include "sim/base/random.h"

namespace moelab {
namespace {

constexpr int kInputRows = 256, kDescents = 6;
/// The slope is that of the first two, judged by its change to the third; the others show where it holds.
constexpr double kSpreads[] = {0.025, 0.05, 0.1, 0.2, 0.4};
/// Of sums of a few terms of order one.
constexpr double kValueRounding = 1e-13;
/// Of second differences with step 1e-4 of functions of order ten.
constexpr double kDifferenceError = 1e-5;
constexpr double kFirstScale = 0.5;
/// Of a slope of distances over 256 rows, a few of which lie within a spread of a rectifier's kink.
constexpr double kSlopeError = 0.05;

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

/// All parameters, one after another.
std::vector<double*> parameters_of(MixingMeasure& measure) {
  std::vector<double*> all;
  const auto add = [&](auto& values) {
    for (Eigen::Index i = 0; i < values.size(); ++i) all.push_back(values.data() + i);
  };
  add(measure.gate);
  add(measure.bias);
  add(measure.slope);
  add(measure.intercept);
  add(measure.group_gate);
  add(measure.group_bias);
  add(measure.shared_slope);
  add(measure.shared_intercept);
  if (measure.form.temperature) all.push_back(&measure.log_scale);
  return all;
}

/// Whether the family has measures with one component more and the same regression function.
bool can_split(const MixtureForm& form) {
  return form.gate == MixtureForm::Gate::softmax && form.selected == 0;
}

}  // namespace

CheckFinding check_scaled_experts(const CheckEffort& effort, const MixtureForm& form, double first_scale) {
  const MixingMeasure truth = example_measure(form);
  const double power = degree(form);
  const bool divides = form.gate == MixtureForm::Gate::softmax;
  if (!divides) first_scale *= first_scale;  // of halves, too, the second is another
  const double second_scale = std::pow((divides ? 2 : 1) - std::pow(first_scale, power), 1 / power);
  const SplitCell cell{truth};
  MixingMeasure split = cell.at(Vector::Unit(cell.coordinates(), 0), 0);
  const Eigen::Index second = cell.second_place();
  if (!divides) split.bias[0] = split.bias[second] = truth.bias[0];
  if (form.selected > 0) ++split.form.selected;
  for (const auto& [place, scale] :
       {std::pair(Eigen::Index(0), first_scale), std::pair(second, second_scale)}) {
    split.slope.row(place) *= scale;
    split.intercept[place] *= scale;
  }
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

CheckFinding check_invariances(const CheckEffort& effort, const MixtureForm& form) {
  const MixingMeasure truth = example_measure(form);
  const Matrix x = draw_inputs(effort, "identifiability.invariances");
  CheckFinding finding = nothing_changes(0);
  for (const Invariance& invariance : invariances(truth)) {
    finding.measured = std::max(finding.measured, largest_change(invariance.moved, truth, x));
    finding.details.emplace_back(invariance.name + ", dimensions", invariance.dimension);
  }
  return finding;
}

CheckFinding check_gram(const CheckEffort& effort, const MixtureForm& form) {
  constexpr double kStep = 1e-5, kUnseen = 1e-13;
  MixingMeasure moved = example_measure(form);
  const Matrix x = draw_inputs(effort, "identifiability.gram");
  const std::vector<double*> parameters = parameters_of(moved);
  Matrix jacobian(x.rows(), static_cast<Eigen::Index>(parameters.size()));
  for (Eigen::Index i = 0; i < jacobian.cols(); ++i) {
    double& parameter = *parameters[static_cast<std::size_t>(i)];
    const double kept = parameter;
    parameter = kept + kStep;
    const Vector above = regression_values(moved, x);
    parameter = kept - kStep;
    jacobian.col(i) = (above - regression_values(moved, x)) / (2 * kStep);
    parameter = kept;
  }
  const Vector spectrum =
      symmetric_eigenvalues(jacobian.transpose() * jacobian / static_cast<double>(x.rows()));
  const double largest = spectrum.maxCoeff();
  const auto unseen = (spectrum.array() <= kUnseen * largest).count();
  CheckFinding finding;
  for (const Invariance& invariance : invariances(moved)) finding.predicted += invariance.dimension;
  finding.measured = static_cast<double>(unseen);
  finding.error_bound = 0.5;
  finding.error_origin = "a count";
  finding.details = {{"parameters", static_cast<double>(spectrum.size())},
                     {"largest eigenvalue", largest},
                     {"least eigenvalue that is seen", spectrum[unseen]}};
  return finding;
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
  CheckFinding finding;
  finding.curve = {"flattest two components in one cell",
                   "How flat the population loss is where two share a cell",
                   "how far apart the two stand",
                   "‖f_G − f*‖ ÷ ‖f*‖",
                   {}};
  for (const double spread : kSpreads) {
    FlattestSplit flattest = flattest_split(cell, x, spread, starts);
    finding.curve.points.emplace_back(spread, flattest.distance);
    starts = {std::move(flattest.coordinates)};
  }
  const auto distance = [&](std::size_t i) { return finding.curve.points[i].second; };
  const double last = std::log2(distance(1) / distance(0)), first = std::log2(distance(2) / distance(1));
  finding.predicted = 2;
  finding.measured = last;
  finding.error_bound = 2 * std::abs(last - first) + kSlopeError;
  finding.error_origin = "twice the change of the slope over spreads, and the kinks of rectifiers";
  finding.resolution = 0.5;
  finding.details = {{"distance at spread .025", distance(0)},
                     {"distance at spread .05", distance(1)},
                     {"distance at spread .1", distance(2)}};
  return finding;
}

namespace {

constexpr const char* kTable = "Nguyen et al. (perturbed cosine router), Table 1";
constexpr const char* kOthers = "Nguyen et al. (estimation in mixtures of experts), rates";

/// What Table 1 names as causes, of its three routers.
void add_causes(const NamedForm& gate, std::vector<Check>& checks) {
  const bool is_linear = gate.form.router == MixtureForm::Router::linear;
  const bool is_cosine = !is_linear && gate.form.tau1 == 0;
  const auto expected = [](bool holds) { return holds ? CheckVerdict::holds : CheckVerdict::fails; };
  const std::string id = "identifiability." + gate.name;
  checks.push_back({id + ".radius", kTable, "f_G is the same where every beta1 is twice as long",
                    expected(is_cosine),
                    [form = gate.form](const CheckEffort& effort) { return check_radius(effort, form); }});
  checks.push_back(
      {id + ".mixed_derivative", kTable,
       "d2F / dbeta1 db = dF / da for F = exp(gate score) h(a'x + b), h linear (largest difference)",
       expected(is_linear),
       [form = gate.form](const CheckEffort& effort) { return check_mixed_derivative(effort, form); }});
}

void add_pair(const NamedForm& gate, const NamedForm& expert, const char* source,
              std::vector<Check>& checks) {
  const std::string name = "identifiability." + gate.name + "." + expert.name;
  const MixtureForm form = expert.form;
  const bool splits = can_split(form), is_split = splits || form.gate == MixtureForm::Gate::sigmoid;
  checks.push_back({name + ".invariances", source,
                    "what f_G cannot see with as many components as the truth (largest change of f_G)",
                    CheckVerdict::holds,
                    [form](const CheckEffort& effort) { return check_invariances(effort, form); }});
  checks.push_back(
      {name + ".gram", source,
       "with as many components as the truth f_G sees everything else to first order: rate n^(-1/2) "
       "(directions that it does not see)",
       CheckVerdict::holds, [form](const CheckEffort& effort) { return check_gram(effort, form); }});
  checks.push_back({name + ".scaled_experts", source,
                    "two components with one gate and experts c eta of different c give the f* of one: no "
                    "least-squares fit "
                    "tells c, at any n; published rate: " +
                        published_rate(gate, expert),
                    is_split ? CheckVerdict::holds : CheckVerdict::fails, [form](const CheckEffort& effort) {
                      return check_scaled_experts(effort, form, kFirstScale);
                    }});
  if (!splits) return;
  checks.push_back({name + ".flatness", source,
                    "where the length of (a, b) is known, two components e apart in one cell have at least "
                    "|f_G - f*| ~ e^2: rate n^(-1/4)",
                    CheckVerdict::holds,
                    [form](const CheckEffort& effort) { return check_flatness(effort, form); }});
}

}  // namespace

std::vector<Check> identifiability_checks() {
  std::vector<Check> checks;
  for (const NamedForm& gate : gate_forms()) {
    const bool in_table = gate.name == "linear" || gate.name == "cosine" || gate.name == "perturbed_cosine";
    if (in_table) add_causes(gate, checks);
    for (const NamedForm& expert : with_experts(gate))
      add_pair(gate, expert, in_table ? kTable : kOthers, checks);
  }
  return checks;
}

}  // namespace moelab
