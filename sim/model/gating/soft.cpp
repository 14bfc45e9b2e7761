#include "sim/model/gating/selection.h"

namespace moelab {
namespace {

template <class Real>
class SoftGating final : public Gating<Real> {
 public:
  explicit SoftGating(const SoftGatingOptions& options) : skip_below_(options.skip_below.value_or(0.0)) {}

  bool activates_all() const override { return true; }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    start_routing(context, scratch);
    Routing<Real>& routing = scratch.routing;
    if (skip_below_ == 0.0) {
      routing.gates = scratch.probabilities.data();
      routing.every_pair = true;
      return;
    }
    const std::size_t count = entries(routing.rows, routing.stride);
    reserve_entries(scratch.gates, count);
    routing.gates = scratch.gates.data();
    const Real threshold = static_cast<Real>(skip_below_);
    for (std::size_t i = 0; i < count; ++i) {
      scratch.gates[i] = scratch.probabilities[i] >= threshold ? scratch.probabilities[i] : Real(0);
    }
    list_pairs(routing);
  }

  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    selected_backward(false, scratch, gate_gradient, score_gradient);
  }

 private:
  double skip_below_;
};

}  // namespace

void SoftGatingOptions::bind(Fields& fields) {
  fields.add("skip_below", skip_below, fraction(),
             "leave out pairs with r_e(x) below this (default 1e-8 with sgd, 0 with adam and adamw)");
}

GatingKind soft_gating() {
  GatingKind kind = gating_kind<SoftGatingOptions, SoftGating>(
      "soft", "gate_e = r_e = softmax(γ)_e: every expert, weighted");
  // The largest r_e of a row is at least 1/E.
  kind.may_leave_rows = [](const AnyOptions& options, int experts) {
    return options.get<SoftGatingOptions>().skip_below.value_or(0) * experts > 1;
  };
  return kind;
}

}  // namespace moelab
