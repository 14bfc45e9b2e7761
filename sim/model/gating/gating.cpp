#include "sim/model/gating/gating.h"

#include <algorithm>
#include <utility>

#include "sim/model/gating/selection.h"

// To add a gating, write a new file that defines <name>_gating() and add a line here.
// clang-format off
#define MOELAB_GATINGS(entry)       \
  entry(soft_gating)                \
  entry(top1_gating)                \
  entry(topk_gating)                \
  entry(topp_gating)                \
  entry(sigmoid_gating)             \
  entry(noisy_topk_gating)          \
  entry(expert_choice_gating)       \
  entry(patch_choice_gating)        \
  entry(relu_gating)                \
  entry(sinkhorn_gating)            \
  entry(balanced_assignment_gating) \
  entry(dense_to_sparse_gating)     \
  entry(soft_slots_gating)          \
  entry(sequence_top1_gating)
// clang-format on

namespace moelab {

MOELAB_TABLE(GatingAxis, MOELAB_GATINGS)

int most_experts(const GatingRule& rule) {
  const GatingKind& kind = rule.entry();
  return kind.most_experts ? kind.most_experts(rule.options()) : 0;
}

double experts_per_row(const GatingRule& rule, int experts, double group_rows) {
  const GatingKind& kind = rule.entry();
  const double most = experts;
  if (kind.experts_per_row) return std::min(most, kind.experts_per_row(rule.options(), experts, group_rows));
  const int limit = most_experts(rule);
  return limit > 0 ? std::min(most, static_cast<double>(limit)) : most;
}

namespace {

template <class Real>
class SoftOf final : public Gating<Real> {
 public:
  explicit SoftOf(const Gating<Real>& gating) : of_(gating) {}

  bool activates_all() const override { return true; }
  bool is_softmax() const override { return false; }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    of_.gate(context, scratch);
    scratch.slots.each = 0;
    scratch.routing.gates = scratch.probabilities.data();
    scratch.routing.every_pair = true;
  }
  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    of_.backward_probabilities(scratch, gate_gradient);
    if (score_gradient == gate_gradient) return;
    std::copy_n(gate_gradient, entries(scratch.routing.rows, scratch.routing.stride), score_gradient);
  }
  void backward_probabilities(const GatingScratch<Real>& scratch, Real* gradient) const override {
    of_.backward_probabilities(scratch, gradient);
  }

 private:
  const Gating<Real>& of_;
};

template <class Real>
class Top1Of final : public Gating<Real> {
 public:
  explicit Top1Of(const Gating<Real>& gating) : of_(gating) {}

  bool selects() const override { return true; }
  bool is_softmax() const override { return false; }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    of_.gate(context, scratch);
    scratch.slots.each = 0;
    clear_gates(scratch);
    Routing<Real>& routing = scratch.routing;
    routing.every_pair = false;
    begin_pairs(routing);
    for (int row = 0; row < context.rows; ++row) {
      const std::size_t at = entries(row, routing.stride);
      const auto rank = [&](int e) {
        const double r = static_cast<double>(scratch.probabilities[at + size(e)]);
        return std::pair(r + (context.selection_bias ? context.selection_bias[e] : 0.0),
                         context.scores[at + size(e)]);
      };
      int best = 0;
      for (int e = 1; e < context.experts; ++e) {
        if (rank(e) > rank(best)) best = e;
      }
      scratch.gates[at + size(best)] = 1;
      scratch.chosen.assign(1, best);
      add_row<Real>(routing, row, scratch.chosen);
    }
    sort_pairs(routing);
  }
  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real*, Real* score_gradient,
                Real*) const override {
    std::fill_n(score_gradient, entries(scratch.routing.rows, scratch.routing.stride), Real(0));
  }

 private:
  const Gating<Real>& of_;
};

}  // namespace

template <class Real>
std::unique_ptr<Gating<Real>> make_soft_gating(const Gating<Real>& gating) {
  if (gating.is_softmax()) return make_gating<Real>(SoftGatingOptions{.skip_below = 0.0});
  return std::make_unique<SoftOf<Real>>(gating);
}

template <class Real>
std::unique_ptr<Gating<Real>> make_top1_gating(const Gating<Real>& gating) {
  if (gating.is_softmax()) return make_gating<Real>(Top1GatingOptions{});
  return std::make_unique<Top1Of<Real>>(gating);
}

template std::unique_ptr<Gating<float>> make_soft_gating(const Gating<float>&);
template std::unique_ptr<Gating<double>> make_soft_gating(const Gating<double>&);
template std::unique_ptr<Gating<float>> make_top1_gating(const Gating<float>&);
template std::unique_ptr<Gating<double>> make_top1_gating(const Gating<double>&);

}  // namespace moelab
