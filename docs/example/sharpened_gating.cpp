#include <algorithm>

#include "sim/base/kernels/kernels.h"
#include "sim/model/gating/gating.h"

namespace moelab {
namespace {

struct SharpenedGatingOptions {
  double sharpness = 2.0;

  void bind(Fields& fields) {
    fields.add("sharpness", sharpness, positive(), "factor on the scores: above 1 is nearer to top1");
  }
};

/// gate = softmax(sharpness · γ): every expert, those with low scores less than with `soft`.
template <class Real>
class SharpenedGating final : public Gating<Real> {
 public:
  explicit SharpenedGating(const SharpenedGatingOptions& options)
      : sharpness_(static_cast<Real>(options.sharpness)) {}

  bool activates_all() const override { return true; }
  bool is_softmax() const override { return sharpness_ == 1; }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    Routing<Real>& routing = scratch.routing;
    routing.rows = context.rows;
    routing.experts = context.experts;
    routing.stride = kernels::padded(context.experts);
    const std::size_t count = entries(routing.rows, routing.stride);
    reserve_entries(scratch.probabilities, count);
    kernels::scale_into(sharpness_, context.scores, scratch.probabilities.data(), static_cast<int>(count));
    kernels::softmax_rows(scratch.probabilities.data(), scratch.probabilities.data(), routing.rows,
                          routing.experts, routing.stride);
    routing.gates = scratch.probabilities.data();
    routing.every_pair = true;
  }

  // The gates are the probabilities.
  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real* /*gradient*/) const override {
    const std::size_t count = entries(scratch.routing.rows, scratch.routing.stride);
    if (score_gradient != gate_gradient) std::copy_n(gate_gradient, count, score_gradient);
    backward_probabilities(scratch, score_gradient);
  }

  void backward_probabilities(const GatingScratch<Real>& scratch, Real* gradient) const override {
    const Routing<Real>& routing = scratch.routing;
    kernels::softmax_backward_rows(routing.gates, gradient, gradient, routing.rows, routing.experts,
                                   routing.stride);
    kernels::scale_into(sharpness_, gradient, gradient,
                        static_cast<int>(entries(routing.rows, routing.stride)));
  }

 private:
  Real sharpness_;
};

}  // namespace

GatingKind sharpened_gating() {
  return gating_kind<SharpenedGatingOptions, SharpenedGating>(
      "sharpened", "gate_e = softmax(sharpness · γ)_e: every expert, weighted");
}

}  // namespace moelab
