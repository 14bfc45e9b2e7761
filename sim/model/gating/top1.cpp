#include "sim/model/gating/selection.h"

namespace moelab {
namespace {

template <class Real>
class Top1Gating final : public Gating<Real> {
 public:
  explicit Top1Gating(const Top1GatingOptions&) {}

  bool selects() const override { return true; }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    gate_rows(context, scratch, [&](const GatedRow<Real>& row) {
      mark_largest(1, row, context.selection_bias, context.experts);
    });
  }

  void backward(const GatingContext<Real>&, const GatingScratch<Real>& scratch, Real*, Real* score_gradient,
                Real*) const override {
    std::fill_n(score_gradient, entries(scratch.routing.rows, scratch.routing.stride), Real(0));
  }
};

}  // namespace

GatingKind top1_gating() {
  GatingKind kind = gating_kind<Top1GatingOptions, Top1Gating>(
      "top1", "gate 1 for the largest score; gives the router no gradient");
  kind.selects = true;
  kind.reaches_scores = false;
  kind.most_experts = [](const AnyOptions&) { return 1; };
  return kind;
}

}  // namespace moelab
