#include <cmath>

#include "sim/model/gating/selection.h"
#include "sim/model/gating/step_stream.h"

namespace moelab {
namespace {

template <class Real>
class DenseToSparseGating final : public Gating<Real> {
 public:
  explicit DenseToSparseGating(const DenseToSparseGatingOptions& options) : options_(options) {}

  bool is_softmax() const override { return false; }
  std::vector<StateArray> state_arrays() const override {
    if (!options_.gumbel) return {};
    return {step_stream::array()};
  }
  void start_state(const Start& start, double* state) const override {
    if (options_.gumbel) step_stream::start(start, state);
  }
  void begin_step(double* state) const override {
    if (options_.gumbel) step_stream::advance(state);
  }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    shape_routing(context, scratch);
    scratch.inverse_temperature =
        1 / temperature_at(options_.tau, options_.tau_end, options_.tau_schedule, context.progress);
    write_warm_scores(context, scratch);
    kernels::softmax_rows(scratch.selected_by.data(), scratch.probabilities.data(), context.rows,
                          context.experts, scratch.routing.stride);
    gate_rows(scratch.selected_by.data(), scratch, [&](const GatedRow<Real>& row) {
      mark_above(static_cast<Real>(options_.threshold), row, context.experts, scratch);
      set_gates<Real>(options_.renormalize, row, scratch.chosen);
    });
  }

  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    selected_backward(options_.renormalize, scratch, gate_gradient, score_gradient);
    cool(scratch, score_gradient);
  }

  void backward_probabilities(const GatingScratch<Real>& scratch, Real* gradient) const override {
    Gating<Real>::backward_probabilities(scratch, gradient);
    cool(scratch, gradient);
  }

 private:
  /// (γ + g) / τ, (n, padded(E)); −ln(−ln u) is a Gumbel variable.
  void write_warm_scores(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const {
    const int stride = scratch.routing.stride;
    const std::size_t count = entries(context.rows, stride);
    reserve_entries(scratch.selected_by, count);
    kernels::scale_into(static_cast<Real>(scratch.inverse_temperature), context.scores,
                        scratch.selected_by.data(), static_cast<int>(count));
    if (!options_.gumbel || !context.training) return;
    Engine engine = step_stream::engine(context.state, kStepNoise);
    for (int row = 0; row < context.rows; ++row) {
      for (int e = 0; e < context.experts; ++e) {
        const double noise = -std::log(-std::log1p(-draw_uniform(engine)));
        if (!std::isfinite(noise)) continue;  // a draw of 0
        scratch.selected_by[entries(row, stride) + size(e)] +=
            static_cast<Real>(noise * scratch.inverse_temperature);
      }
    }
  }
  static void cool(const GatingScratch<Real>& scratch, Real* gradient) {
    const std::size_t count = entries(scratch.routing.rows, scratch.routing.stride);
    kernels::scale_into(static_cast<Real>(scratch.inverse_temperature), gradient, gradient,
                        static_cast<int>(count));
  }

  DenseToSparseGatingOptions options_;
};

}  // namespace

void DenseToSparseGatingOptions::bind(Fields& fields) {
  fields.add("tau", tau, positive(), "temperature τ of the first step");
  fields.add("tau_end", tau_end, positive(),
             "τ that the schedule ends at: step t of N, from 0 on, has the value at t / N, and measuring "
             "that of the step before");
  fields.add("tau_schedule", tau_schedule, {"linear", "cosine", "geometric"}, "how τ moves over the steps");
  fields.add("threshold", threshold, fraction(), "experts with r_e above it are active");
  fields.add("gumbel", gumbel, "Gumbel noise is added to the scores in training steps");
  fields.add("renormalize", renormalize, "divide the gates by their sum");
}

GatingKind dense_to_sparse_gating() {
  return gating_kind<DenseToSparseGatingOptions, DenseToSparseGating>(
      "dense_to_sparse",
      "gates r_e above a threshold of r = softmax((γ + Gumbel noise) / τ), τ from tau to tau_end over the "
      "steps: dense at first, then sparse (EvoMoE); the usual evaluation is by top1",
      {.threshold = 0.15});
}

}  // namespace moelab
