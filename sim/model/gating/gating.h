#pragma once

/// The axis of gating: from scores γ (n, E) to probabilities r and gates, and back.

#include <memory>
#include <type_traits>
#include <vector>

#include "sim/base/kernels/kernels.h"
#include "sim/base/per_precision.h"
#include "sim/model/gating/gating_context.h"
#include "sim/model/gating/gating_options.h"
#include "sim/model/gating/routing.h"
#include "sim/model/named_array.h"
#include "sim/model/start.h"
#include "sim/model/state.h"

namespace moelab {

/// A rule that turns scores into gates. Immutable; its parameters, if it has any, lie in a block of the
/// model's buffer for each layer, which gatings of one kind share (`train` and `eval` of one model).
template <class Real>
class Gating {
 public:
  virtual ~Gating() = default;
  /// Free parameters, and the entries of their block: a multiple of kernels::kPadding, or 0.
  virtual std::size_t parameter_count() const { return 0; }
  virtual std::size_t block_size() const { return 0; }
  virtual void initialize(const Start& /*start*/, Real* /*parameters*/) const {}
  virtual std::vector<NamedArray<Real>> arrays(const Real* /*parameters*/) const { return {}; }
  /// What training changes beside the parameters: of the training gating alone; see Router.
  virtual std::vector<StateArray> state_arrays() const { return {}; }
  virtual void start_state(const Start& /*start*/, double* /*state*/) const {}
  virtual void begin_step(double* /*state*/) const {}
  /// `routing` is that of the step's pass.
  virtual void end_step(const Routing<Real>& /*routing*/, double* /*state*/) const {}

  /// Whether the gates of a row depend on the other rows of its group.
  virtual bool couples_rows() const { return false; }
  /// Whether every expert is active on every row: load is then counted by the serving expert.
  virtual bool activates_all() const { return false; }
  /// Whether experts are selected by r + bias, so that biases of the selection have an effect.
  virtual bool selects() const { return false; }
  /// Slots of each expert, for gatings that mix the rows of a group into slots, which the experts then read
  /// in their place, and fill GatingScratch::slots; 0 where experts read rows.
  virtual int slots() const { return 0; }
  /// probabilities, gates and pairs of the batch.
  virtual void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const = 0;
  /// ∂L/∂gates → ∂L/∂scores, both (n, padded(E)); in place is allowed. `gate_gradient` is read at active
  /// pairs only and may be overwritten. `gradient`: of the gating's own parameters, overwritten; null where
  /// it has none.
  virtual void backward(const GatingContext<Real>& context, GatingScratch<Real>& scratch, Real* gate_gradient,
                        Real* score_gradient, Real* gradient) const = 0;
  /// From ∂L/∂scores (n, padded(E)), what the gating's own parameters (of noise, of further slots) add to
  /// their gradient and, unless empty, to ∂L/∂x (n, d). Called once for what came through the gates, after
  /// backward(), and once for what came through the probabilities.
  virtual void add_own_gradient(const GatingContext<Real>& /*context*/, GatingScratch<Real>& /*scratch*/,
                                const Real* /*score_gradient*/, Real* /*gradient*/,
                                const View<Real>& /*input_gradient*/) const {}
  /// The same from ∂L/∂(standard deviations of the noise), (n, padded(E)), of losses that look at it.
  virtual void add_spread_gradient(const GatingContext<Real>& /*context*/, GatingScratch<Real>& /*scratch*/,
                                   const Real* /*spread_gradient*/, Real* /*gradient*/,
                                   const View<Real>& /*input_gradient*/) const {}
  /// What a training step adds to the loss for the gating's own sake; backward() has its gradient.
  virtual double added_loss(const GatingContext<Real>& /*context*/,
                            const GatingScratch<Real>& /*scratch*/) const {
    return 0;
  }
  /// Whether r = softmax(γ).
  virtual bool is_softmax() const { return true; }
  /// ∂L/∂r → ∂L/∂scores (n, padded(E)), in place, for losses on the probabilities; of softmax(γ) unless told.
  virtual void backward_probabilities(const GatingScratch<Real>& scratch, Real* gradient) const {
    const Routing<Real>& routing = scratch.routing;
    kernels::softmax_backward_rows(scratch.probabilities.data(), gradient, gradient, routing.rows,
                                   routing.experts, routing.stride);
  }
};

template <class Real>
using MakeGating = std::unique_ptr<Gating<Real>>(const AnyOptions&, const GatingSetting&);

/// An entry of the table of gatings.
struct GatingKind : KindEntry {
  PerPrecision<MakeGating> make = {};
  bool selects = false;        ///< see Gating::selects()
  bool reaches_scores = true;  ///< whether a gradient in the gates reaches the scores
  /// Whether some row may have no expert even without a capacity; null for never.
  bool (*may_leave_rows)(const AnyOptions&, int experts) = nullptr;
  /// Mean of the experts that a row of a group of so many costs, of resolved options; null: `most_experts`.
  double (*experts_per_row)(const AnyOptions&, int experts, double group_rows) = nullptr;
  /// Where the gates of a row depend on rows after it in its group; empty for nowhere, with the ending
  /// " in training" where measuring does not. Null for nowhere, whatever the options.
  std::string (*looks_ahead)(const AnyOptions&) = nullptr;
  /// Experts that a row is sent to at most, or is steered to, of resolved options; 0 where there is no such
  /// number.
  int (*most_experts)(const AnyOptions&) = nullptr;
  /// What options have to satisfy beyond their fields one by one. Throws InvalidOption below `path`; null for
  /// nothing.
  void (*check)(const AnyOptions&, const std::string& path) = nullptr;
};

/// The table: adding a gating is a new file and a line in gatings.cpp.
struct GatingAxis {
  using Entry = GatingKind;
  static const std::vector<GatingKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "gating";
};
using GatingRule = OneOf<GatingAxis>;
void add_gating_kind(GatingKind kind);

/// Mean of the experts that a row of a group of so many costs: all of them where the kind has no number.
double experts_per_row(const GatingRule& rule, int experts, double group_rows);

/// A Made<Real> from its options and, where it asks for it, the setting.
template <class Real, class Options, class Made>
std::unique_ptr<Gating<Real>> make_gating_from(const AnyOptions& options, const GatingSetting& setting) {
  if constexpr (std::is_constructible_v<Made, const Options&, const GatingSetting&>) {
    return std::make_unique<Made>(options.get<Options>(), setting);
  } else {
    return std::make_unique<Made>(options.get<Options>());
  }
}

template <class Options, template <class> class Made>
GatingKind gating_kind(std::string name, std::string help, Options example = {}) {
  return {{std::move(name), std::move(help), Options{}, std::move(example)},
          {make_gating_from<float, Options, Made<float>>, make_gating_from<double, Options, Made<double>>}};
}

template <class Real>
std::unique_ptr<Gating<Real>> make_gating(const GatingRule& rule, const GatingSetting& setting = {}) {
  return rule.entry().make.of<Real>()(rule.options(), setting);
}

}  // namespace moelab
