#include "sim/model/gating/limited_gating.h"

namespace moelab {
namespace {

template <class Real>
class TopKGating final : public LimitedGating<Real> {
 public:
  explicit TopKGating(const TopKGatingOptions& options)
      : LimitedGating<Real>(options.capacity, false),
        k_(options.k),
        renormalize_(options.renormalize.value_or(options.k > 1)) {}

  bool selects() const override { return true; }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    start_routing(context, scratch);
    this->select(std::min(k_, context.experts), context, scratch, [&](const GatedRow<Real>& row) {
      set_gates<Real>(renormalize_, row, scratch.chosen, row.scores);
    });
  }

  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    selected_backward(renormalize_, scratch, gate_gradient, score_gradient);
  }

 private:
  int k_;
  bool renormalize_;
};

}  // namespace

void TopKGatingOptions::bind(Fields& fields) {
  fields.required().add("k", k, between(1, 65536), "experts per row K");
  fields.add("renormalize", renormalize, "divide the K gates by their sum (default: true for K > 1)");
  capacity.bind(fields);
}

GatingKind topk_gating() {
  GatingKind kind = gating_kind<TopKGatingOptions, TopKGating>(
      "topk", "gates r_e of the K largest scores, renormalised to sum 1 unless told", {.k = 2});
  kind.selects = true;
  kind.check = [](const AnyOptions& options, const std::string& path) {
    check_capacity(options.get<TopKGatingOptions>().capacity, path);
  };
  kind.looks_ahead = [](const AnyOptions& options) {
    const TopKGatingOptions& own = options.get<TopKGatingOptions>();
    return capacity_looks_ahead(own.capacity, own.k);
  };
  kind.most_experts = [](const AnyOptions& options) { return options.get<TopKGatingOptions>().k; };
  return kind;
}

}  // namespace moelab
