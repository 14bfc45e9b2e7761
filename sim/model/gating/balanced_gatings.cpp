#include <cmath>

#include "sim/model/gating/selection.h"

namespace moelab {
namespace {

template <class Real>
class BalancedAssignmentGating final : public Gating<Real> {
 public:
  explicit BalancedAssignmentGating(const BalancedAssignmentGatingOptions& /*options*/) {}

  bool couples_rows() const override { return true; }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    start_routing(context, scratch);
    clear_gates(scratch);
    const int stride = scratch.routing.stride;
    Assignment& assignment = scratch.assignment;
    for_each_group(context, [&](int first, int rows) {
      const auto score = [&](int row, int e) {
        return context.scores[entries(first + row, stride) + size(e)];
      };
      assignment.solve(rows, context.experts, (rows + context.experts - 1) / context.experts,
                       [&](int row, int e) { return -static_cast<double>(score(row, e)); });
      for (int row = 0; row < rows; ++row) {
        const int e = assignment.expert_of(row);
        if (e >= 0) scratch.gates[entries(first + row, stride) + size(e)] = sigmoid_gate(score(row, e));
      }
    });
    list_pairs(scratch.routing);
  }

  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    sigmoid_gates_backward(scratch.routing, gate_gradient, score_gradient);
  }
};

template <class Real>
class ExpertChoiceGating final : public Gating<Real> {
 public:
  explicit ExpertChoiceGating(const ExpertChoiceGatingOptions& options)
      : capacity_factor_(options.capacity_factor) {}

  bool couples_rows() const override { return true; }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    start_routing(context, scratch);
    clear_gates(scratch);
    for_each_group(context, [&](int first, int rows) {
      const double share = static_cast<double>(rows) / context.experts;
      const int capacity = std::min(rows, capacity_of(capacity_factor_, share));
      for (int e = 0; e < context.experts; ++e) choose_rows(first, rows, e, capacity, scratch);
    });
    list_pairs(scratch.routing);
  }

  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    selected_backward(false, scratch, gate_gradient, score_gradient);
  }

 private:
  /// Sets the gates of the rows with the largest r_e. Ties go to the earlier row.
  void choose_rows(int first, int rows, int expert, int capacity, GatingScratch<Real>& scratch) const {
    const auto place = [&](int row) { return entries(row, scratch.routing.stride) + size(expert); };
    scratch.rows.clear();
    for (int row = first; row < first + rows; ++row) scratch.rows.push_back(row);
    // NaN comes last, so that this is a strict order.
    const auto key = [&](int row) {
      const Real r = scratch.probabilities[place(row)];
      return r >= 0 ? r : Real(-1);
    };
    std::nth_element(scratch.rows.begin(), scratch.rows.begin() + (capacity - 1), scratch.rows.end(),
                     [&](int a, int b) {
                       const Real key_a = key(a);
                       const Real key_b = key(b);
                       return key_a != key_b ? key_a > key_b : a < b;
                     });
    for (int i = 0; i < capacity; ++i) {
      const std::size_t at = place(scratch.rows[size(i)]);
      scratch.gates[at] = scratch.probabilities[at];
    }
  }

  double capacity_factor_;
};

/// Added to sums of rows and columns, to avoid division by zero (Megatron).
constexpr double kSinkhornGuard = 1e-8;

template <class Real>
class SinkhornGating final : public Gating<Real> {
 public:
  explicit SinkhornGating(const SinkhornGatingOptions& options)
      : k_(options.k), tolerance_(options.tolerance), rounds_(options.rounds) {}

  bool couples_rows() const override { return true; }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    start_routing(context, scratch);
    clear_gates(scratch);
    begin_pairs(scratch.routing);
    const int stride = scratch.routing.stride;
    const int k = std::min(k_, context.experts);
    // Divide exp(γ) by its row's sum. A factor on a row does not change the plan.
    const std::size_t count = entries(context.rows, stride);
    reserve_entries(scratch.selected_by, count);
    for_each_group(context, [&](int first, int rows) {
      const Real* const weights = scratch.probabilities.data() + entries(first, stride);
      scale_columns(weights, rows, context.experts, stride, scratch);
      for (int row = first; row < first + rows; ++row) {
        const std::size_t at = entries(row, stride);
        Real* const plan = scratch.selected_by.data() + at;
        for (int e = 0; e < context.experts; ++e) {
          plan[e] = static_cast<Real>(static_cast<double>(scratch.probabilities[at + size(e)]) *
                                      scratch.column_scales[size(e)]);
        }
        const GatedRow<Real> gated{plan, scratch.probabilities.data() + at, scratch.gates.data() + at};
        mark_largest<Real>(k, gated, nullptr, context.experts, scratch);
        for (const int e : scratch.chosen) {
          gated.gates[e] = k_ == 1 ? sigmoid_gate(context.scores[at + size(e)]) : gated.probabilities[e];
        }
        add_row<Real>(scratch.routing, row, scratch.chosen);
      }
    });
    sort_pairs(scratch.routing);
  }

  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    if (k_ > 1) return selected_backward(false, scratch, gate_gradient, score_gradient);
    sigmoid_gates_backward(scratch.routing, gate_gradient, score_gradient);
  }

 private:
  /// The factors b (E) of the columns: a_t ← 1 / (n Σ_e w_te b_e), b_e ← 1 / (E Σ_t w_te a_t), from b = 1.
  void scale_columns(const Real* weights, int rows, int experts, int stride,
                     GatingScratch<Real>& scratch) const {
    std::vector<double>& scales = scratch.column_scales;
    scales.assign(size(experts), 1.0);
    scratch.keys.resize(std::max(scratch.keys.size(), size(experts)));  // column sums
    for (int round = 0; round < rounds_; ++round) {
      std::fill_n(scratch.keys.begin(), experts, 0.0);
      for (int row = 0; row < rows; ++row) {
        const Real* const own = weights + entries(row, stride);
        double sum = 0;
        for (int e = 0; e < experts; ++e) sum += static_cast<double>(own[e]) * scales[size(e)];
        const double scale = 1 / (rows * (sum + kSinkhornGuard));
        for (int e = 0; e < experts; ++e) scratch.keys[size(e)] += static_cast<double>(own[e]) * scale;
      }
      double change = 0;
      for (int e = 0; e < experts; ++e) {
        const double next = 1 / (experts * (scratch.keys[size(e)] + kSinkhornGuard));
        change += std::abs(next - scales[size(e)]) / experts;
        scales[size(e)] = next;
      }
      if (!(change > tolerance_)) return;
    }
  }

  int k_;
  double tolerance_;
  int rounds_;
};

}  // namespace

GatingKind balanced_assignment_gating() {
  GatingKind kind = gating_kind<BalancedAssignmentGatingOptions, BalancedAssignmentGating>(
      "balanced_assignment",
      "one expert for each row of a group. The assignment has the largest Σ γ with at most ⌈n / E⌉ of n rows "
      "for an expert. The gate is σ(γ_e) (BASE). The usual evaluation is by top1");
  kind.looks_ahead = [](const AnyOptions&) -> std::string {
    return "all rows of a group are assigned together";
  };
  kind.most_experts = [](const AnyOptions&) { return 1; };
  return kind;
}

void ExpertChoiceGatingOptions::bind(Fields& fields) {
  fields.add(
      "capacity_factor", capacity_factor, positive(),
      "each expert takes ⌈capacity_factor · n / E⌉ of the n rows of a group: the mean of experts per row");
}

GatingKind expert_choice_gating() {
  GatingKind kind = gating_kind<ExpertChoiceGatingOptions, ExpertChoiceGating>(
      "expert_choice",
      "each expert takes the rows of a group with its largest r_e, which are the gates (Zhou et al. 2022); a "
      "row may have none");
  kind.may_leave_rows = [](const AnyOptions&, int) { return true; };
  kind.experts_per_row = [](const AnyOptions& options, int, double) {
    return options.get<ExpertChoiceGatingOptions>().capacity_factor;
  };
  kind.looks_ahead = [](const AnyOptions&) -> std::string {
    return "each expert compares all rows of a group and takes those with its largest r_e";
  };
  return kind;
}

void SinkhornGatingOptions::bind(Fields& fields) {
  fields.required().add("k", k, between(1, 65536), "experts per row K");
  fields.add("tolerance", tolerance, at_least(0),
             "mean change of the column factors at which the rounds end");
  fields.add("rounds", rounds, between(1, 1e6), "rounds at most");
}

GatingKind sinkhorn_gating() {
  GatingKind kind = gating_kind<SinkhornGatingOptions, SinkhornGating>(
      "sinkhorn",
      "the K largest entries of each row of the plan diag(a) exp(γ) diag(b), whose sums are equal over a "
      "group of rows. Gates are r_e, or σ(γ_e) for K = 1 (S-BASE). The usual evaluation is by topk or top1");
  kind.looks_ahead = [](const AnyOptions&) -> std::string {
    return "all rows of a group determine the factors of the columns";
  };
  kind.most_experts = [](const AnyOptions& options) { return options.get<SinkhornGatingOptions>().k; };
  return kind;
}

}  // namespace moelab
