#include "sim/model/gating/limited_gating.h"

namespace moelab {
namespace {

template <class Real>
class Top1Gating final : public LimitedGating<Real> {
 public:
  explicit Top1Gating(const Top1GatingOptions& options)
      : LimitedGating<Real>(options.capacity, false), straight_through_(options.straight_through) {}

  bool selects() const override { return true; }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    start_routing(context, scratch);
    this->select(1, context, scratch, [](const GatedRow<Real>&) {});
  }

  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    if (straight_through_) return selected_backward(false, scratch, gate_gradient, score_gradient);
    std::fill_n(score_gradient, entries(scratch.routing.rows, scratch.routing.stride), Real(0));
  }

 private:
  bool straight_through_;
};

}  // namespace

void Top1GatingOptions::bind(Fields& fields) {
  fields.add("straight_through", straight_through,
             "the gradient goes to the scores as though the gate were r_e");
  capacity.bind(fields);
}

GatingKind top1_gating() {
  GatingKind kind = gating_kind<Top1GatingOptions, Top1Gating>(
      "top1", "gate 1 for the largest score; gives the router no gradient, unless straight through");
  kind.selects = true;
  kind.reaches_scores = false;
  kind.check = [](const AnyOptions& options, const std::string& path) {
    check_capacity(options.get<Top1GatingOptions>().capacity, path);
  };
  kind.looks_ahead = [](const AnyOptions& options) {
    return capacity_looks_ahead(options.get<Top1GatingOptions>().capacity, 1);
  };
  kind.most_experts = [](const AnyOptions&) { return 1; };
  return kind;
}

}  // namespace moelab
