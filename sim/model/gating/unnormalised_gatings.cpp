#include <cmath>
#include <limits>

#include "sim/base/error.h"
#include "sim/model/gating/selection.h"

namespace moelab {
namespace {

/// Computes σ(γ) row by row, and r. σ(γ) is never 0, so its sums are not 0.
template <class Real>
void write_activations(const GatingContext<Real>& context, GatingScratch<Real>& scratch) {
  shape_routing(context, scratch);
  const int stride = scratch.routing.stride;
  reserve_entries(scratch.selected_by, entries(context.rows, stride));
  for (int row = 0; row < context.rows; ++row) {
    const Real* const scores = context.scores + entries(row, stride);
    Real* const activations = scratch.selected_by.data() + entries(row, stride);
    Real* const r = scratch.probabilities.data() + entries(row, stride);
    Real total = 0;
    for (int e = 0; e < context.experts; ++e) {
      const Real value = 1 / (1 + std::exp(-scores[e]));
      activations[e] = value < std::numeric_limits<Real>::min() ? std::numeric_limits<Real>::min() : value;
      total += activations[e];
    }
    for (int e = 0; e < context.experts; ++e) r[e] = activations[e] / total;
    std::fill(activations + context.experts, activations + stride, Real(0));
    std::fill(r + context.experts, r + stride, Real(0));
  }
}

/// Computes ∂L/∂γ from ∂L/∂share_e; both (n, stride), and in place is allowed. share_e = σ_e / Σ_j σ_j over
/// the experts with a share, or share_e = σ_e.
template <class Real>
void sigmoid_backward(bool normalised, const GatingScratch<Real>& scratch, const Real* shares,
                      const Real* share_gradient, Real* score_gradient) {
  const Routing<Real>& routing = scratch.routing;
  for (int row = 0; row < routing.rows; ++row) {
    const std::size_t at = entries(row, routing.stride);
    const Real* const share = shares + at;
    const Real* const given = share_gradient + at;
    const Real* const activations = scratch.selected_by.data() + at;
    Real mean = 0;
    for (int e = 0; normalised && e < routing.experts; ++e) mean += share[e] * given[e];
    for (int e = 0; e < routing.experts; ++e) {
      score_gradient[at + size(e)] = share[e] * (1 - activations[e]) * (given[e] - mean);
    }
    std::fill(score_gradient + at + routing.experts, score_gradient + at + routing.stride, Real(0));
  }
}

template <class Real>
class SigmoidGating final : public LimitedGating<Real> {
 public:
  explicit SigmoidGating(const SigmoidGatingOptions& options)
      : LimitedGating<Real>(options.capacity, false),
        k_(options.k.value_or(0)),
        renormalize_(options.renormalize.value_or(k_ > 1)) {}

  bool selects() const override { return k_ > 0; }
  bool activates_all() const override { return k_ == 0; }
  bool is_softmax() const override { return false; }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    write_activations(context, scratch);
    if (k_ == 0) {
      const std::size_t count = entries(context.rows, scratch.routing.stride);
      reserve_entries(scratch.gates, count);
      const AlignedVector<Real>& gates = renormalize_ ? scratch.probabilities : scratch.selected_by;
      std::copy_n(gates.begin(), count, scratch.gates.begin());
      scratch.routing.gates = scratch.gates.data();
      scratch.routing.every_pair = true;
      return;
    }
    const auto row_at = [&](std::size_t at) {
      return GatedRow<Real>{context.scores + at, scratch.selected_by.data() + at, nullptr};
    };
    this->select(std::min(k_, context.experts), context, scratch, row_at, [&](const GatedRow<Real>& row) {
      set_gates<Real>(renormalize_, row, scratch.chosen, row.scores);
    });
  }

  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    clear_inactive(scratch.routing, gate_gradient);
    sigmoid_backward(renormalize_, scratch, scratch.gates.data(), gate_gradient, score_gradient);
  }

  void backward_probabilities(const GatingScratch<Real>& scratch, Real* gradient) const override {
    sigmoid_backward(true, scratch, scratch.probabilities.data(), gradient, gradient);
  }

 private:
  int k_;  ///< 0: every expert
  bool renormalize_;
};

void check_sigmoid(const AnyOptions& options, const std::string& path) {
  const SigmoidGatingOptions& own = options.get<SigmoidGatingOptions>();
  check_capacity(own.capacity, path);
  if (own.k || !own.capacity.capacity_factor) return;
  throw InvalidOption(path + ".capacity_factor", "given, but without k every expert takes every row");
}

/// The ReLU gating. With a target K its state is "gating_l1" (1), λ.
template <class Real>
class ReluGating final : public Gating<Real> {
 public:
  explicit ReluGating(const ReluGatingOptions& options)
      : k_(options.k.value_or(0)), l1_start_(options.l1_start), l1_factor_(options.l1_factor) {}

  bool is_softmax() const override { return false; }

  std::vector<StateArray> state_arrays() const override {
    if (k_ == 0) return {};
    return {{"gating_l1", {1}}};
  }
  void start_state(const Start&, double* state) const override {
    if (k_ > 0) *state = static_cast<Real>(l1_start_);
  }
  void end_step(const GatingScratch<Real>& scratch, double* state) const override {
    if (k_ == 0) return;
    const double most = static_cast<double>(k_) * scratch.routing.rows;
    *state = static_cast<Real>(pairs_of(scratch.routing) > most ? *state * l1_factor_ : *state / l1_factor_);
  }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    shape_routing(context, scratch);
    clear_gates(scratch);
    for (int row = 0; row < context.rows; ++row) {
      const std::size_t at = entries(row, scratch.routing.stride);
      const Real* const scores = context.scores + at;
      Real* const gates = scratch.gates.data() + at;
      Real* const r = scratch.probabilities.data() + at;
      Real total = 0;
      for (int e = 0; e < context.experts; ++e) {
        gates[e] = scores[e] < 0 ? Real(0) : scores[e];  // NaN stays NaN
        total += gates[e];
      }
      for (int e = 0; e < context.experts; ++e)
        r[e] = total == 0 ? Real(1) / Real(context.experts) : gates[e] / total;
      std::fill(r + context.experts, r + scratch.routing.stride, Real(0));
    }
    list_pairs(scratch.routing);
  }

  void backward(const GatingContext<Real>& context, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    const Routing<Real>& routing = scratch.routing;
    if (has_l1(context)) {
      for (int e = 0; e < routing.experts; ++e) {
        const Real slope = static_cast<Real>(l1_slope(context, routing, e));
        for (int row = 0; row < routing.rows; ++row)
          gate_gradient[entries(row, routing.stride) + size(e)] += slope;
      }
    }
    clear_inactive(routing, gate_gradient);
    if (score_gradient == gate_gradient) return;
    std::copy_n(gate_gradient, entries(routing.rows, routing.stride), score_gradient);
  }

  /// The backward pass of r_e = γ_e / Σ_j γ_j over the experts with a positive score.
  void backward_probabilities(const GatingScratch<Real>& scratch, Real* gradient) const override {
    const Routing<Real>& routing = scratch.routing;
    for (int row = 0; row < routing.rows; ++row) {
      const std::size_t at = entries(row, routing.stride);
      const Real* const gates = scratch.gates.data() + at;
      Real total = 0;
      Real mean = 0;
      for (int e = 0; e < routing.experts; ++e) {
        total += gates[e];
        mean += scratch.probabilities[at + size(e)] * gradient[at + size(e)];
      }
      for (int e = 0; e < routing.experts; ++e) {
        Real& entry = gradient[at + size(e)];
        entry = gates[e] > 0 ? (entry - mean) / total : Real(0);
      }
    }
  }

  double added_loss(const GatingContext<Real>& context, const GatingScratch<Real>& scratch) const override {
    if (!has_l1(context)) return 0;
    const Routing<Real>& routing = scratch.routing;
    double value = 0;
    for (int e = 0; e < routing.experts; ++e) {
      double sum = 0;
      for (int row = 0; row < routing.rows; ++row) {
        sum += static_cast<double>(routing.gate_of(row, e));
      }
      value += l1_slope(context, routing, e) * sum;
    }
    return value;
  }

 private:
  static double pairs_of(const Routing<Real>& routing) {
    double pairs = 0;
    for (int e = 0; e < routing.experts; ++e) pairs += routing.pairs_of(e);
    return pairs;
  }
  bool has_l1(const GatingContext<Real>& context) const {
    return k_ > 0 && context.training && context.state;
  }
  /// The coefficient of the sum of an expert's gates: λ E f_e / n.
  double l1_slope(const GatingContext<Real>& context, const Routing<Real>& routing, int expert) const {
    const double rows = routing.rows;
    return *context.state * routing.experts * routing.pairs_of(expert) / (rows * k_) / rows;
  }

  int k_;  ///< 0: without the loss
  double l1_start_;
  double l1_factor_;
};

void check_relu(const AnyOptions& options, const std::string& path) {
  const ReluGatingOptions& own = options.get<ReluGatingOptions>();
  const ReluGatingOptions defaults;
  if (own.k) return;
  if (own.l1_start != defaults.l1_start) throw InvalidOption(path + ".l1_start", "given, but k is not");
  if (own.l1_factor != defaults.l1_factor) throw InvalidOption(path + ".l1_factor", "given, but k is not");
}

}  // namespace

void SigmoidGatingOptions::bind(Fields& fields) {
  fields.add("k", k, between(1, 65536), "experts per row K (default: every expert)");
  fields.add("renormalize", renormalize,
             "divide the gates by their sum (default: true where k is given and above 1)");
  capacity.bind(fields);
}

GatingKind sigmoid_gating() {
  GatingKind kind = gating_kind<SigmoidGatingOptions, SigmoidGating>(
      "sigmoid",
      "gates σ(γ_e) of the K largest scores, or of every expert. For K > 1 they are divided by their sum, "
      "unless renormalize is false. Selection biases are added to σ(γ_e) (DeepSeek-V3). r_e = σ(γ_e) / Σ_j "
      "σ(γ_j)",
      {.k = 2});
  kind.selects = true;
  kind.check = check_sigmoid;
  kind.looks_ahead = [](const AnyOptions& options) {
    const SigmoidGatingOptions& own = options.get<SigmoidGatingOptions>();
    return capacity_looks_ahead(own.capacity, own.k.value_or(1));
  };
  kind.most_experts = [](const AnyOptions& options) {
    return options.get<SigmoidGatingOptions>().k.value_or(0);
  };
  kind.reaches_scores = [](const AnyOptions& options, int experts) {
    const SigmoidGatingOptions& own = options.get<SigmoidGatingOptions>();
    return !own.renormalize.value_or(false) || std::min(own.k.value_or(experts), experts) > 1;
  };
  return kind;
}

void ReluGatingOptions::bind(Fields& fields) {
  fields.add("k", k, between(1, 65536),
             "target of active experts per row; each layer's λ is steered to it, in the loss λ E Σ_e f_e "
             "mean(gate_e) (default: none)");
  fields.add("l1_start", l1_start, positive(), "λ of the first step");
  fields.add("l1_factor", l1_factor, at_least(1),
             "λ is multiplied by this after a step with more than k experts per row, else divided by it");
}

GatingKind relu_gating() {
  GatingKind kind = gating_kind<ReluGatingOptions, ReluGating>(
      "relu",
      "gate_e = max(γ_e, 0), no top-K (ReMoE). A row may have no expert. No row has one if the router never "
      "gives positive scores, as with routers that mix tokens. r_e = gate_e / Σ_j gate_j, uniform where all "
      "gates are 0");
  kind.may_leave_rows = [](const AnyOptions&, int) { return true; };
  kind.check = check_relu;
  kind.most_experts = [](const AnyOptions& options) {
    return options.get<ReluGatingOptions>().k.value_or(0);
  };
  return kind;
}

}  // namespace moelab
