#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/theory/perturbed_cosine.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

/// The published rates of a gate with linear experts, (a'x + b)² and rectifiers.
struct PublishedRates {
  const char* gate;
  const char* linear;
  const char* polynomial;
  const char* relu;
};

constexpr const char* kNone = "none found";
constexpr PublishedRates kRates[] = {
    {"linear", "1/log^tau n (Table 1)", "1/log^tau n (Table 1)", "n^-1/4 (Table 1)"},
    {"cosine", "1/log^tau n (Table 1)", "1/log^tau n (Table 1)", "1/log^tau n (Table 1)"},
    {"perturbed_cosine", "1/log^tau n (Table 1)", "n^-1/4 (Table 1)", "n^-1/4 (Table 1)"},
    {"temperature", "slower than any power of n (ICML 2024, abstract; by likelihood)", kNone, kNone},
    {"topk", "as softmax if K reaches the fits of certain cells (ICLR 2024, abstract; by likelihood)", kNone,
     kNone},
    {"sigmoid", kNone, "1/log^tau n if some beta1* = 0, else n^-1/2 (NeurIPS 2024, not read)",
     "n^-1/4 if some beta1* = 0, else n^-1/2 (NeurIPS 2024, not read)"},
    {"shared_expert", "n^-1/2 to the nearest measure, by likelihood (2505.10860, dense regime)", kNone,
     kNone},
};

MixingMeasure shifted(MixingMeasure measure, const Eigen::RowVectorXd& gate, double bias) {
  measure.gate.rowwise() += gate;
  measure.bias.array() += bias;
  return measure;
}

/// g = β1 / (‖β1‖ + τ1) fills the unit ball, so it may shift. ‖β1‖ = τ1 ‖g‖ / (1 − ‖g‖).
Invariance shifted_cosines(const MixingMeasure& measure, const Eigen::RowVectorXd& shift) {
  MixingMeasure moved = measure;
  moved.gate = effective_directions(measure).rowwise() + shift;
  for (Eigen::Index j = 0; j < moved.gate.rows(); ++j)
    moved.gate.row(j) *= measure.form.tau1 / (1 - moved.gate.row(j).norm());
  return {"a common shift of beta1 / (|beta1| + tau1)", static_cast<int>(shift.size()), moved};
}

void add_softmax_shift(const MixingMeasure& measure, std::vector<Invariance>& all) {
  const Eigen::RowVectorXd shift = Eigen::RowVectorXd::LinSpaced(measure.gate.cols(), 0.5, -0.4);
  switch (measure.form.router) {
    case MixtureForm::Router::linear:
      all.push_back({"a common shift of beta1", static_cast<int>(shift.size()), shifted(measure, shift, 0)});
      break;
    case MixtureForm::Router::squared_distance: {
      // −‖x − w − v‖² / 2 = −‖x − w‖² / 2 + v'x − v'w − ‖v‖² / 2.
      MixingMeasure moved = shifted(measure, shift, 0);
      moved.bias += measure.gate * shift.transpose();
      all.push_back(
          {"a common shift of centres, taken back by beta0", static_cast<int>(shift.size()), moved});
      break;
    }
    case MixtureForm::Router::cosine:
      if (measure.form.tau1 > 0) all.push_back(shifted_cosines(measure, 0.2 * shift));
      break;
    case MixtureForm::Router::two_level: {
      MixingMeasure moved = measure;
      moved.group_gate.rowwise() += shift;
      moved.group_bias.array() += 0.3;
      all.push_back({"a common shift of U and c", static_cast<int>(shift.size()) + 1, moved});
      moved = measure;
      const int groups = static_cast<int>(measure.group_gate.rows());
      for (int j = 0; j < first_of_group(1, groups, measure.components()); ++j) {
        moved.gate.row(j) += shift;
        moved.bias[j] += 0.3;
      }
      all.push_back({"a common shift of beta1 and beta0 in each group",
                     groups * (static_cast<int>(shift.size()) + 1), moved});
      return;
    }
  }
  all.push_back({"a common shift of beta0", 1, shifted(measure, 0 * shift, 0.7)});
}

constexpr int kInputRows = 256, kDescents = 6;
/// The slope is taken between the first two, and its change to the third gives the error. The others are for
/// figures.
constexpr double kSpreads[] = {0.025, 0.05, 0.1, 0.2, 0.4};
/// The rounding of sums of a few terms of order one.
constexpr double kValueRounding = 1e-13;
/// The error of second differences with step 1e-4 of functions of order ten.
constexpr double kDifferenceError = 1e-5;
constexpr double kFirstScale = 0.5;
/// Kinks need many rows near them.
constexpr int kKinkRows = 65536, kKinkDirections = 8;
constexpr double kKinkSpreads[] = {0.01, 0.02};
/// A slope below this one is not 2. At these spreads it lies between 3/2, of the kink, and 2, of the rest.
constexpr double kBelowTwo = 1.9;
/// Rates of components that share a cell: of all of their parameters, and of rectifiers.
constexpr double kQuarter = -0.25, kThird = -1.0 / 3, kHalf = -0.5;
/// The error of a slope of distances over 256 rows. A few rows are near a rectifier's kink.
constexpr double kSlopeError = 0.05;

Matrix draw_inputs(const CheckEffort& effort, const char* id, int rows = kInputRows) {
  Engine engine = check_stream(effort, id, 0);
  return QuasiRandom(2, engine).normals(rows);
}

/// The predicted rates of each group of parameters, as powers of n.
void add_rates(double experts, double gates, CheckFinding& finding) {
  finding.details.emplace_back("power of n: f", kHalf);
  finding.details.emplace_back("power of n: components alone in their cell", kHalf);
  finding.details.emplace_back("power of n: experts that share a cell", experts);
  finding.details.emplace_back("power of n: gates that share a cell", gates);
}

double largest_change(const MixingMeasure& measure, const MixingMeasure& truth, const Matrix& x) {
  return (regression_values(measure, x) - regression_values(truth, x)).cwiseAbs().maxCoeff();
}

CheckFinding nothing_changes(double change) {
  return expected_zero(change, kValueRounding, "rounding");
}

/// The degree q of h(x, c η) = c^q h(x, η), c > 0.
int degree(const MixtureForm& form) {
  return form.expert == MixtureForm::Expert::power ? form.power : 1;
}

/// F of the first component at one row: its unnormalised weight times its expert.
double numerator(const MixingMeasure& measure, const Matrix& x, Eigen::Index row) {
  return std::exp(gate_scores(measure, x.row(row))[0]) * expert_values(measure, x.row(row))[0];
}

/// Whether the family has measures with one component more and the same regression function.
bool can_split(const MixtureForm& form) {
  return form.gate == MixtureForm::Gate::softmax && form.selected == 0;
}

constexpr const char* kTable = "Nguyen et al. (perturbed cosine router), Table 1";
constexpr const char* kOthers = "Nguyen et al. (estimation in mixtures of experts), rates";

/// The causes that Table 1 names for its three routers.
void add_causes(const NamedForm& gate, std::vector<Check>& checks) {
  const bool is_linear = gate.form.router == MixtureForm::Router::linear;
  const bool is_cosine = !is_linear && gate.form.tau1 == 0;
  const auto expected = [](bool holds) { return holds ? CheckVerdict::holds : CheckVerdict::fails; };
  const std::string id = "identifiability." + gate.name;
  checks.push_back({id + ".radius", kTable, "f_G is the same where every beta1 is twice as long",
                    expected(is_cosine),
                    [form = gate.form](Effort effort) { return check_radius(effort, form); }});
  checks.push_back(
      {id + ".mixed_derivative", kTable,
       "d2F / dbeta1 db = dF / da for F = exp(gate score) h(a'x + b), h linear (largest difference)",
       expected(is_linear),
       [form = gate.form](Effort effort) { return check_mixed_derivative(effort, form); }});
}

void add_pair(const NamedForm& gate, const NamedForm& expert, const char* source,
              std::vector<Check>& checks) {
  const std::string name = "identifiability." + gate.name + "." + expert.name;
  const MixtureForm form = expert.form;
  const bool splits = can_split(form), is_split = splits || form.gate == MixtureForm::Gate::sigmoid;
  checks.push_back({name + ".invariances", source,
                    "what f_G cannot see with as many components as the truth (largest change of f_G)",
                    CheckVerdict::holds, [form](Effort effort) { return check_invariances(effort, form); }});
  checks.push_back({name + ".gram", source,
                    "with as many components as the truth f_G sees everything else to first order: rate "
                    "n^(-1/2) (directions that it does not see)",
                    CheckVerdict::holds, [form](Effort effort) { return check_gram(effort, form); }});
  checks.push_back({name + ".scaled_experts", source,
                    "two components with one gate and experts c eta of different c give the f* of one: no "
                    "least-squares fit determines c, at any n; published rate: " +
                        published_rate(gate, expert),
                    is_split ? CheckVerdict::holds : CheckVerdict::fails,
                    [form](Effort effort) { return check_scaled_experts(effort, form, kFirstScale); }});
  if (!splits) return;
  checks.push_back({name + ".flatness", source,
                    "where the length of (a, b) is known, two components e apart in one cell have at least "
                    "|f_G - f*| ~ e^2: rate n^(-1/4)",
                    CheckVerdict::holds, [form](Effort effort) { return check_flatness(effort, form); }});
}

/// The checks of a gate with unit experts, and of GELUs and sigmoids with any lengths.
void add_unit_pair(const NamedForm& gate, const NamedForm& expert, const char* source,
                   std::vector<Check>& checks) {
  const std::string name = "identifiability." + gate.name + "." + expert.name + ".unit";
  const MixtureForm form = expert.form;
  checks.push_back({name + ".gram", source,
                    "where |(a, b)| = 1 and with as many components as the truth, f_G sees all directions on "
                    "the sphere to first order: rate n^(-1/2) (directions that it does not see)",
                    CheckVerdict::holds, [form](Effort effort) { return check_gram(effort, form); }});
  if (!can_split(form)) return;
  if (form.expert == MixtureForm::Expert::relu) {
    checks.push_back(
        {name + ".kinks", source,
         "where |(a, b)| = 1, " + unit_argument(form) +
             ". Experts e apart in one cell have |f_G - f*| of order e^(3/2), below e^2: rate n^(-1/3)",
         CheckVerdict::holds, [form](Effort effort) { return check_kinks(effort, form); }});
    return;
  }
  const auto run = [](const MixtureForm& own) {
    return [own](Effort effort) { return check_second_order(effort, own); };
  };
  checks.push_back({name + ".second_order", source,
                    "where |(a, b)| = 1, " + unit_argument(form) +
                        ". Any number of components of one cell change f to second order: rate n^(-1/4) "
                        "(ways in which they do not)",
                    CheckVerdict::holds, run(form)});
  if (form.expert == MixtureForm::Expert::power) return;
  MixtureForm free = form;
  free.unit = false;
  checks.push_back({"identifiability." + gate.name + "." + expert.name + ".free.second_order", source,
                    "with (a, b) of any length, any number of components of one cell change f to second "
                    "order: rate n^(-1/4) (ways in which they do not)",
                    CheckVerdict::holds, run(free)});
}

}  // namespace

std::vector<NamedForm> gate_forms() {
  using Router = MixtureForm::Router;
  using Gate = MixtureForm::Gate;
  return {{"linear", {.router = Router::linear}},
          {"cosine", {.router = Router::cosine}},
          {"perturbed_cosine", {.router = Router::cosine, .tau1 = 1, .tau2 = 1}},
          {"temperature", {.router = Router::linear, .temperature = true}},
          {"squared_distance", {.router = Router::squared_distance}},
          {"two_level", {.router = Router::two_level, .groups = 2}},
          {"topk", {.router = Router::linear, .selected = 2}},
          {"sigmoid", {.router = Router::linear, .gate = Gate::sigmoid}},
          {"normalised_sigmoid", {.router = Router::linear, .gate = Gate::normalised_sigmoid}},
          {"shared_expert", {.router = Router::linear, .gate = Gate::normalised_sigmoid, .shared = 1}}};
}

std::vector<NamedForm> with_experts(const NamedForm& gate) {
  std::vector<NamedForm> pairs = {{"linear", gate.form}, {"polynomial", gate.form}, {"relu", gate.form}};
  pairs[1].form.power = 2;
  pairs[2].form.expert = MixtureForm::Expert::relu;
  return pairs;
}

std::vector<NamedForm> with_unit_experts(const NamedForm& gate) {
  using Expert = MixtureForm::Expert;
  std::vector<NamedForm> pairs;
  const auto add = [&](const char* name, Expert expert, int power) {
    MixtureForm form = gate.form;
    form.expert = expert;
    form.power = power;
    form.unit = true;
    pairs.push_back({name, form});
  };
  add("linear", Expert::power, 1);
  add("polynomial", Expert::power, 2);
  add("cubic", Expert::power, 3);
  add("relu", Expert::relu, 1);
  add("gelu", Expert::gelu, 1);
  add("sigmoid", Expert::sigmoid, 1);
  return pairs;
}

std::string unit_argument(const MixtureForm& form) {
  if (form.expert == MixtureForm::Expert::relu)
    return "rectifiers with different unit (a, b) have kinks on different hyperplanes: they are linearly "
           "independent";
  if (form.expert != MixtureForm::Expert::power)
    return "h, h' and h'' times powers of x are linearly independent, and so are experts with different (a, "
           "b)";
  if (form.power == 1)
    return "sum_i p_i (a, b)_i = (a, b)* holds for equal (a, b) alone, since a sphere is strictly convex";
  return "sum_i p_i <(a, b)_i, z>^p = <(a, b)*, z>^p at z = (a, b)* needs <(a, b)_i, (a, b)*>^p = 1 for all "
         "i. Then experts are equal up to the sign of an even power";
}

MixingMeasure on_sphere(MixingMeasure measure) {
  put_on_sphere(measure);
  return measure;
}

std::vector<double*> measure_parameters(MixingMeasure& measure) {
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

std::string published_rate(const NamedForm& gate, const NamedForm& expert) {
  for (const PublishedRates& rates : kRates) {
    if (gate.name != rates.gate) continue;
    if (expert.form.expert == MixtureForm::Expert::relu) return rates.relu;
    return expert.form.power == 1 ? rates.linear : rates.polynomial;
  }
  return kNone;
}

MixingMeasure example_measure(const MixtureForm& form) {
  const int components = form.router == MixtureForm::Router::two_level ? 4 : (form.selected > 0 ? 3 : 2);
  Matrix gate(4, 2), slope(4, 2);
  Vector bias(4), intercept(4);
  gate << 2, 0, -1, 1.5, 0.5, -2, -1.5, -1;
  bias << 0, 0.3, -0.2, 0.1;
  slope << 1, -0.5, -0.5, 1.5, -1, -1, 1.5, 0.5;
  intercept << 0.5, -0.5, 0.8, -0.2;
  MixingMeasure measure{form, gate.topRows(components), bias.head(components), slope.topRows(components),
                        intercept.head(components)};
  if (form.router == MixtureForm::Router::two_level) {
    measure.group_gate = (Matrix(2, 2) << 1, 0.5, -1, 0.5).finished();
    measure.group_bias = (Vector(2) << 0, 0.2).finished();
  }
  if (form.temperature) measure.log_scale = -std::log(2.0);
  if (form.shared > 0) {
    measure.shared_slope = (Matrix(1, 2) << 0.3, 0.8).finished();
    measure.shared_intercept = Vector::Constant(1, 0.4);
  }
  return on_sphere(std::move(measure));
}

std::vector<Invariance> invariances(const MixingMeasure& measure) {
  const MixtureForm& form = measure.form;
  const int dim = static_cast<int>(measure.gate.cols());
  std::vector<Invariance> all;
  if (form.gate == MixtureForm::Gate::softmax) add_softmax_shift(measure, all);
  if (form.router == MixtureForm::Router::cosine && form.tau1 == 0) {
    MixingMeasure moved = measure;
    moved.gate.row(0) *= 2;
    all.push_back({"the length of each beta1", measure.components(), moved});
  }
  if (form.temperature) {
    MixingMeasure moved = measure;
    moved.gate *= 3;
    moved.bias *= 3;
    moved.log_scale -= std::log(3.0);
    all.push_back({"beta1, beta0 and t in proportion", 1, moved});
  }
  const bool is_linear = form.expert == MixtureForm::Expert::power && form.power == 1;
  // Unit experts cannot all move by the same vector.
  if (form.shared > 0 && is_linear && form.gate != MixtureForm::Gate::sigmoid && !form.unit) {
    MixingMeasure moved = measure;
    moved.slope.array() += 0.6;
    moved.intercept.array() -= 0.2;
    moved.shared_slope.row(0).array() -= 0.6;
    moved.shared_intercept[0] += 0.2;
    all.push_back({"what routed experts have in common, taken from the shared one", dim + 1, moved});
  }
  return all;
}

CheckFinding check_scaled_experts(const CheckEffort& effort, const MixtureForm& form, double first_scale) {
  const MixingMeasure truth = example_measure(form);
  const double power = degree(form);
  const bool divides = form.gate == MixtureForm::Gate::softmax;
  if (!divides) first_scale *= first_scale;  // also for c = 1/2 the second scale must differ
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
  constexpr double kUnseen = 1e-13;
  MixingMeasure moved = example_measure(form);
  const Matrix x = draw_inputs(effort, "identifiability.gram");
  const std::vector<double*> parameters = measure_parameters(moved);
  Matrix jacobian(x.rows(), static_cast<Eigen::Index>(parameters.size()));
  for (Eigen::Index i = 0; i < jacobian.cols(); ++i) {
    jacobian.col(i) = central_difference(*parameters[size(i)], 1e-5,
                                         [&] { return regression_values(on_sphere(moved), x); });
  }
  const Vector spectrum =
      symmetric_eigenvalues(jacobian.transpose() * jacobian / static_cast<double>(x.rows()));
  const double largest = spectrum.maxCoeff();
  const auto unseen = (spectrum.array() <= kUnseen * largest).count();
  CheckFinding finding;
  for (const Invariance& invariance : invariances(moved)) finding.predicted += invariance.dimension;
  if (form.unit) finding.predicted += moved.components() + form.shared;
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
  return expected_zero(difference / largest, kDifferenceError, "central differences");
}

CheckFinding check_second_order(const CheckEffort& effort, const MixtureForm& form) {
  const SplitCell cell{example_measure(form), form.unit ? ExpertFamily::fixed_length : ExpertFamily::whole};
  const SecondOrder found = second_order(cell, draw_inputs(effort, "identifiability.second_order"));
  CheckFinding finding;
  finding.measured = found.least < kUnseenChange ? 1 : 0;
  finding.error_bound = 0.5;
  finding.error_origin = "a count";
  finding.details = {{"least |f_G - f*| / |f*| for two components, over their squared distance", found.least},
                     {"directions of a component", static_cast<double>(found.directions)},
                     {"null directions of the Gram matrix", static_cast<double>(found.unseen)}};
  const double rate = finding.measured > 0 ? 0 : kQuarter;
  add_rates(rate, rate, finding);
  return finding;
}

CheckFinding check_kinks(const CheckEffort& effort, const MixtureForm& form) {
  const SplitCell cell{example_measure(form), ExpertFamily::fixed_length};
  const Matrix x = draw_inputs(effort, "identifiability.kinks", kKinkRows);
  const Vector truth = regression_values(cell.truth, x);
  Engine engine = check_stream(effort, "identifiability.kinks.directions", 0);
  std::vector<double> distances(std::size(kKinkSpreads), 0.0);
  for (Vector direction : draw_starts(cell, kKinkDirections * effort.seeds, engine)) {
    // Equal weights, the gates of the truth.
    direction.head(cell.truth.gate.cols()).setZero();
    direction.tail(2).setZero();
    for (std::size_t i = 0; i < distances.size(); ++i) {
      const Vector change = regression_values(cell.at(direction, kKinkSpreads[i]), x) - truth;
      distances[i] += std::log2(change.norm() / truth.norm()) / (kKinkDirections * effort.seeds);
    }
  }
  CheckFinding finding;
  finding.relation = Relation::at_most;
  finding.predicted = kBelowTwo;
  finding.measured = distances[1] - distances[0];
  finding.error_origin = "none, the bound has a margin";
  finding.details = {{"|f_G - f*| / |f*| at spread 0.01", std::exp2(distances[0])},
                     {"|f_G - f*| / |f*| at spread 0.02", std::exp2(distances[1])}};
  add_rates(kThird, kQuarter, finding);
  return finding;
}

CheckFinding check_flatness(const CheckEffort& effort, const MixtureForm& form, ExpertFamily family) {
  const SplitCell cell{example_measure(form), family};
  const Matrix x = draw_inputs(effort, "identifiability.flatness");
  Engine engine = check_stream(effort, "identifiability.flatness.starts", 0);
  // Each flattest measure is the start for the next larger spread.
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
  finding.details = {{"distance at spread 0.025", distance(0)},
                     {"distance at spread 0.05", distance(1)},
                     {"distance at spread 0.1", distance(2)}};
  return finding;
}

std::vector<Check> identifiability_checks() {
  std::vector<Check> checks;
  for (const NamedForm& gate : gate_forms()) {
    const bool in_table = gate.name == "linear" || gate.name == "cosine" || gate.name == "perturbed_cosine";
    if (in_table) add_causes(gate, checks);
    for (const NamedForm& expert : with_experts(gate))
      add_pair(gate, expert, in_table ? kTable : kOthers, checks);
    for (const NamedForm& expert : with_unit_experts(gate))
      add_unit_pair(gate, expert, in_table ? kTable : kOthers, checks);
  }
  return checks;
}

}  // namespace moelab
