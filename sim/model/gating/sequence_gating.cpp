/// One expert for all rows of a sequence: the rows of a task that are given together.

#include <algorithm>
#include <cmath>

#include "sim/model/gating/selection.h"

namespace moelab {
namespace {

/// The sequence gating. State of a training step: the noise's stream (3), `dispatched` (E), the sequences
/// that each expert has had, and with termination `settled` (E), 1 for experts whose score was once close.
template <class Real>
class SequenceTop1Gating final : public Gating<Real> {
 public:
  SequenceTop1Gating(const SequenceTop1GatingOptions& options, const GatingSetting& setting)
      : options_(options), experts_(setting.experts) {}

  bool couples_rows() const override { return true; }
  bool is_softmax() const override { return false; }

  std::vector<StateArray> state_arrays() const override {
    std::vector<StateArray> arrays = {step_stream::array(), {"dispatched", {experts_}}};
    if (options_.termination) arrays.push_back({"settled", {experts_}});
    return arrays;
  }
  void start_state(const Start& start, double* state) const override {
    step_stream::start(start, state);
    std::fill_n(state + kDispatched, (options_.termination ? 2 : 1) * experts_, 0.0);
  }
  void begin_step(double* state) const override { step_stream::advance(state); }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    shape_routing(context, scratch);
    const int stride = scratch.routing.stride;
    reserve_entries(scratch.selected_by, entries(context.rows, stride));
    scratch.sequence_rows = context.tokens;
    if (context.training) {
      scratch.dispatched = context.state + kDispatched;
      scratch.is_frozen = is_frozen(context.state);
    }
    Engine engine = step_stream::engine(context.state, kStepNoise);
    for (int first = 0; first < context.rows; first += context.tokens)
      score_sequence(context, first, engine, scratch);
    gate_rows(scratch.selected_by.data(), scratch,
              [&](const GatedRow<Real>& row) { mark_largest(1, row, nullptr, context.experts, scratch); });
  }

  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real*, Real* score_gradient,
                Real*) const override {
    std::fill_n(score_gradient, entries(scratch.routing.rows, scratch.routing.stride), Real(0));
  }

  /// π depends on the sum of the scores, so each row of a sequence gets the gradient in that sum.
  void backward_probabilities(const GatingScratch<Real>& scratch, Real* gradient) const override {
    const Routing<Real>& routing = scratch.routing;
    const int stride = routing.stride;
    if (scratch.is_frozen) {
      std::fill_n(gradient, entries(routing.rows, stride), Real(0));
      return;
    }
    for (int first = 0; first < routing.rows; first += scratch.sequence_rows) {
      Real* const sum = gradient + entries(first, stride);
      for (int row = first + 1; row < first + scratch.sequence_rows; ++row)
        kernels::add_scaled(Real(1), gradient + entries(row, stride), sum, stride);
      kernels::softmax_backward_rows(scratch.probabilities.data() + entries(first, stride), sum, sum, 1,
                                     routing.experts, stride);
      for (int row = first + 1; row < first + scratch.sequence_rows; ++row)
        std::copy_n(sum, stride, gradient + entries(row, stride));
    }
  }

  void end_step(const GatingScratch<Real>& scratch, double* state) const override {
    double* const dispatched = state + kDispatched;
    for (int first = 0; first < scratch.routing.rows; first += scratch.sequence_rows) {
      const int own = serving_expert(scratch.routing, first);
      if (own < 0) continue;
      ++dispatched[own];
      if (options_.termination)
        settle(scratch.selected_by.data() + entries(first, scratch.routing.stride), own, state);
    }
  }

 private:
  static constexpr int kDispatched = 3;  ///< after the state of the noise

  double rounds(const double* state) const {
    double sum = 0;
    for (int e = 0; e < experts_; ++e) sum += state[kDispatched + e];
    return sum;
  }
  bool is_frozen(const double* state) const {
    if (!options_.termination || rounds(state) < static_cast<double>(options_.termination->least_rounds))
      return false;
    const double* const settled = state + kDispatched + experts_;
    return std::all_of(settled, settled + experts_, [](double flag) { return flag != 0; });
  }
  /// Sets the flags of experts whose noisy score h is close to the chosen expert's score.
  void settle(const Real* h, int own, double* state) const {
    if (rounds(state) < static_cast<double>(options_.termination->after)) return;
    for (int e = 0; e < experts_; ++e) {
      if (e != own && std::abs(static_cast<double>(h[e] - h[own])) < options_.termination->gap)
        state[kDispatched + experts_ + e] = 1;
    }
  }

  /// Writes h and π of a sequence to each of its rows.
  void score_sequence(const GatingContext<Real>& context, int first, Engine& engine,
                      GatingScratch<Real>& scratch) const {
    const int stride = scratch.routing.stride;
    Real* const h = scratch.selected_by.data() + entries(first, stride);
    Real* const r = scratch.probabilities.data() + entries(first, stride);
    std::fill_n(h, stride, Real(0));
    for (int row = first; row < first + context.tokens; ++row)
      for (int e = 0; e < context.experts; ++e) h[e] += context.scores[entries(row, stride) + size(e)];
    if (!options_.noisy_probabilities) kernels::softmax_rows(h, r, 1, context.experts, stride);
    for (int e = 0; context.training && options_.noise > 0 && e < context.experts; ++e)
      h[e] += static_cast<Real>(options_.noise * draw_uniform(engine));
    if (options_.noisy_probabilities) kernels::softmax_rows(h, r, 1, context.experts, stride);
    for (int row = first + 1; row < first + context.tokens; ++row) {
      std::copy_n(h, stride, scratch.selected_by.data() + entries(row, stride));
      std::copy_n(r, stride, scratch.probabilities.data() + entries(row, stride));
    }
  }

  SequenceTop1GatingOptions options_;
  int experts_;
};

}  // namespace

void TerminationOptions::bind(Fields& fields) {
  fields.required().add("gap", gap, positive(), "Γ: two scores h that differ by less are close");
  fields.add("after", after, at_least(0), "sequences after which flags are set, T1");
  fields.add("least_rounds", least_rounds, at_least(0), "sequences before which the router is not frozen");
}

void SequenceTop1GatingOptions::bind(Fields& fields) {
  fields.add("noise", noise, at_least(0),
             "λ: in training steps h has noise U[0, λ) for each sequence and expert");
  fields.add("noisy_probabilities", noisy_probabilities,
             "r = softmax(h) with the noise, in place of without it");
  fields.add("termination", termination,
             "freezes the router once every expert's score was close to a chosen one's; losses on r then "
             "have no gradient (Li et al. 2025)");
}

GatingKind sequence_top1_gating() {
  GatingKind kind = gating_kind<SequenceTop1GatingOptions, SequenceTop1Gating>(
      "sequence_top1",
      "one expert for all rows of a sequence, with gate 1: the largest h_e = Σ_rows γ_e + noise; "
      "r = softmax(Σ_rows γ) (Li et al. 2025); not causal: the choice looks at the whole sequence",
      {.noise = 0.3});
  kind.reaches_scores = [](const AnyOptions& /*options*/, int /*experts*/) { return false; };
  kind.looks_ahead = [](const AnyOptions&) -> std::string {
    return "the choice looks at the whole sequence";
  };
  kind.most_experts = [](const AnyOptions&) { return 1; };
  return kind;
}

}  // namespace moelab
