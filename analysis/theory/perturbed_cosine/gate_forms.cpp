#include <cmath>

#include "analysis/theory/perturbed_cosine.h"

namespace moelab {
namespace {

/// A gate's published rates, with linear experts, (a'x + b)² and rectifiers.
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

/// g = β1 / (‖β1‖ + τ1) fills the unit ball, and so may shift; ‖β1‖ = τ1 ‖g‖ / (1 − ‖g‖).
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
  return measure;
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
  if (form.shared > 0 && is_linear && form.gate != MixtureForm::Gate::sigmoid) {
    MixingMeasure moved = measure;
    moved.slope.array() += 0.6;
    moved.intercept.array() -= 0.2;
    moved.shared_slope.row(0).array() -= 0.6;
    moved.shared_intercept[0] += 0.2;
    all.push_back({"what routed experts have in common, taken from the shared one", dim + 1, moved});
  }
  return all;
}

}  // namespace moelab
