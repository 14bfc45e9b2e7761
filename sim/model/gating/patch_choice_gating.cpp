#include <cmath>
#include <numeric>

#include "sim/model/gating/selection.h"

namespace moelab {
namespace {

/// Softmax over rows of the scores of one expert. `selected_by` keeps it, (n, stride), for the backward pass.
template <class Real>
class PatchChoiceGating final : public Gating<Real> {
  using Gate = PatchChoiceGatingOptions::Gate;
  using Average = PatchChoiceGatingOptions::Average;

 public:
  explicit PatchChoiceGating(const PatchChoiceGatingOptions& options)
      : patches_(options.patches), gate_(options.gate), average_(options.average) {}

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    start_routing(context, scratch);
    clear_gates(scratch);
    reserve_entries(scratch.selected_by, entries(context.rows, scratch.routing.stride));
    scratch.rows.resize(size(context.tokens));
    for (int first = 0; first < context.rows; first += context.tokens) {
      for (int e = 0; e < context.experts; ++e) choose_tokens(context, first, e, scratch);
    }
    list_pairs(scratch.routing);
  }

  void backward(const GatingContext<Real>& context, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    const Routing<Real>& routing = scratch.routing;
    clear_inactive(routing, gate_gradient);
    const Real factor = share(context.tokens);
    for (int first = 0; first < routing.rows; first += context.tokens) {
      for (int e = 0; e < routing.experts; ++e) {
        const auto place = [&](int t) { return entries(first + t, routing.stride) + size(e); };
        Real mean = 0;
        for (int t = 0; t < context.tokens; ++t)
          mean += scratch.selected_by[place(t)] * gate_gradient[place(t)];
        for (int t = 0; t < context.tokens; ++t) {
          const std::size_t at = place(t);
          score_gradient[at] =
              gate_ == Gate::one ? Real(0) : factor * scratch.selected_by[at] * (gate_gradient[at] - mean);
        }
      }
    }
    for (int row = 0; row < routing.rows; ++row) {
      Real* const line = score_gradient + entries(row, routing.stride);
      std::fill(line + routing.experts, line + routing.stride, Real(0));
    }
  }

 private:
  int chosen(int tokens) const { return std::min(patches_, tokens); }
  /// 1 over the number by which gates are divided.
  Real share(int tokens) const {
    if (average_ == Average::none) return 1;
    return Real(1) / static_cast<Real>(average_ == Average::chosen ? chosen(tokens) : tokens);
  }

  void choose_tokens(const GatingContext<Real>& context, int first, int expert,
                     GatingScratch<Real>& scratch) const {
    const int stride = scratch.routing.stride, tokens = context.tokens, most = chosen(tokens);
    const auto place = [&](int t) { return entries(first + t, stride) + size(expert); };
    std::iota(scratch.rows.begin(), scratch.rows.end(), 0);
    // NaN comes last, so that this is a strict order.
    const auto key = [&](int t) {
      const Real score = context.scores[place(t)];
      return std::isnan(score) ? -std::numeric_limits<Real>::infinity() : score;
    };
    std::partial_sort(scratch.rows.begin(), scratch.rows.begin() + most, scratch.rows.end(),
                      [&](int a, int b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
    const int counted = gate_ == Gate::chosen ? most : tokens;
    const Real largest = context.scores[place(scratch.rows[0])];
    Real total = 0;
    for (int i = 0; i < tokens; ++i) {
      Real& weight = scratch.selected_by[place(scratch.rows[size(i)])];
      weight = i < counted ? std::exp(context.scores[place(scratch.rows[size(i)])] - largest) : Real(0);
      total += weight;
    }
    for (int t = 0; t < tokens; ++t) scratch.selected_by[place(t)] /= total;
    for (int i = 0; i < most; ++i) {
      const std::size_t at = place(scratch.rows[size(i)]);
      const Real weight = gate_ == Gate::one ? Real(1) : scratch.selected_by[at];
      // Never 0, since a gate of 0 makes a pair inactive.
      scratch.gates[at] = std::max(share(tokens) * weight, std::numeric_limits<Real>::min());
    }
  }

  int patches_;
  Gate gate_;
  Average average_;
};

}  // namespace

void PatchChoiceGatingOptions::bind(Fields& fields) {
  fields.required().add("patches", patches, between(1, 65536),
                        "tokens of a sequence that an expert takes, l; more than there are count as all");
  fields.add("gate", gate, {"one", "chosen", "all"},
             "a chosen token's gate: 1, without a gradient in the scores; or a softmax of the expert's "
             "scores over chosen or over all tokens");
  fields.add("average", average, {"chosen", "tokens", "none"},
             "gates are divided by l, by the tokens of the sequence, or by nothing");
}

GatingKind patch_choice_gating() {
  GatingKind kind = gating_kind<PatchChoiceGatingOptions, PatchChoiceGating>(
      "patch_choice",
      "each expert takes the l tokens of each sequence with the largest scores (patch-level routing, "
      "Chowdhury et al. 2023); a token may have no expert; r_e = softmax(γ)_e",
      {.patches = 2});
  kind.reaches_scores = [](const AnyOptions& options, int /*experts*/) {
    return options.get<PatchChoiceGatingOptions>().gate != PatchChoiceGatingOptions::Gate::one;
  };
  kind.may_leave_rows = [](const AnyOptions&, int) { return true; };
  kind.looks_ahead = [](const AnyOptions&) -> std::string {
    return "each expert compares all tokens of a sequence and takes those with the largest scores";
  };
  return kind;
}

}  // namespace moelab
