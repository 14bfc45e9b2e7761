#pragma once

/// The axis of gating: from scores γ (n, E) to probabilities r and gates, and back.

#include <memory>
#include <vector>

#include "sim/base/kernels/kernels.h"
#include "sim/base/per_precision.h"
#include "sim/model/gating/routing.h"
#include "sim/model/named_array.h"

namespace moelab {

/// A batch as a gating sees it.
template <class Real>
struct GatingContext {
  const Real* scores = nullptr;  ///< γ (n, padded(E))
  int rows = 0;
  int experts = 0;
  /// (E), added to r when experts are selected (loss-free balancing); null where there are none.
  const double* selection_bias = nullptr;
  const Real* parameters = nullptr;  ///< the gating's own block
};

/// A rule that turns scores into gates. Immutable; its parameters, if it has any, lie in a block of the
/// model's buffer for each layer, which gatings of one kind share (`train` and `eval` of one model).
template <class Real>
class Gating {
 public:
  virtual ~Gating() = default;
  /// Free parameters, and the entries of their block: a multiple of kernels::kPadding, or 0.
  virtual std::size_t parameter_count() const { return 0; }
  virtual std::size_t block_size() const { return 0; }
  virtual void initialize(Real* /*parameters*/) const {}
  virtual std::vector<NamedArray<Real>> arrays(const Real* /*parameters*/) const { return {}; }
  /// Whether every expert is active on every row: load is then counted by the serving expert.
  virtual bool activates_all() const { return false; }
  /// Whether experts are selected by r + bias, so that biases of the selection have an effect.
  virtual bool selects() const { return false; }
  /// probabilities, gates and pairs of the batch.
  virtual void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const = 0;
  /// ∂L/∂gates → ∂L/∂scores, both (n, padded(E)); in place is allowed. `gate_gradient` is read at active
  /// pairs only and may be overwritten. `gradient`: of the gating's own parameters, overwritten; null where
  /// it has none.
  virtual void backward(const GatingContext<Real>& context, const GatingScratch<Real>& scratch,
                        Real* gate_gradient, Real* score_gradient, Real* gradient) const = 0;
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
using MakeGating = std::unique_ptr<Gating<Real>>(const AnyOptions&);

/// An entry of the table of gatings.
struct GatingKind : KindEntry {
  PerPrecision<MakeGating> make = {};
  bool selects = false;        ///< see Gating::selects()
  bool reaches_scores = true;  ///< whether a gradient in the gates reaches the scores
  /// Experts that a row is sent to at most, of resolved options; 0 where there is no such number.
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

template <class Options, template <class> class Made>
GatingKind gating_kind(std::string name, std::string help, Options example = {}) {
  return {{std::move(name), std::move(help), Options{}, std::move(example)},
          {make_from<Gating<float>, Options, Made<float>>, make_from<Gating<double>, Options, Made<double>>}};
}

template <class Real>
std::unique_ptr<Gating<Real>> make_gating(const GatingRule& rule) {
  return rule.entry().make.of<Real>()(rule.options());
}

/// gate_e = r_e = softmax(γ)_e; pairs with r_e < skip_below are left out: zero output, zero gradient.
struct SoftGatingOptions {
  /// Unset: what the training rule makes harmless, see default_skip_below().
  std::optional<double> skip_below = std::nullopt;
  void bind(Fields& fields);
};
/// Gate 1 for the largest score (r + bias with biases); no gradient reaches the router.
struct Top1GatingOptions {
  void bind(Fields& /*fields*/) {}
};
/// The K largest scores; gate_e = r_e / Σ_selected r when renormalised, else r_e. The selection is held fixed
/// in the backward pass.
struct TopKGatingOptions {
  int k = 1;
  std::optional<bool> renormalize = std::nullopt;  ///< unset: for K > 1
  void bind(Fields& fields);
};
/// Every expert with r_e > p (a threshold, no nucleus; Nielsen et al. 2025), the likeliest where there is
/// none; gates as for topk. A step has no gradient in p, so the gates of a `learnable` threshold are
/// (r_e − p)⁺ (over their sum when renormalised): the same experts, and exact gradients in r and p. How the
/// paper learns its threshold it does not say.
struct TopPGatingOptions {
  double p = 0.05;
  bool learnable = false;
  bool renormalize = true;
  void bind(Fields& fields);
};

}  // namespace moelab
