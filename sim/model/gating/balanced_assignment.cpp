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

}  // namespace

GatingKind balanced_assignment_gating() {
  GatingKind kind = gating_kind<BalancedAssignmentGatingOptions, BalancedAssignmentGating>(
      "balanced_assignment",
      "one expert for each row of a group, none with more than ⌈n / E⌉ of the n rows, largest Σ γ; gate "
      "σ(γ_e) "
      "(BASE); the usual evaluation is by top1");
  kind.looks_ahead = [](const AnyOptions&) -> std::string {
    return "all rows of a group are assigned together";
  };
  kind.most_experts = [](const AnyOptions&) { return 1; };
  return kind;
}

}  // namespace moelab
