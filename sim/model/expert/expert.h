#pragma once

/// The axis of experts: a bank of E equal networks, called once per batch.

#include <memory>
#include <vector>

#include "sim/base/random.h"
#include "sim/base/schema.h"
#include "sim/model/gating.h"
#include "sim/model/named_array.h"

namespace moelab {

/// f(x) = Σ_e gate_e(x) · expert_e(x), over the active pairs of a routing.
template <class Real>
class ExpertBank {
 public:
  virtual ~ExpertBank() = default;
  /// Free parameters of one expert.
  virtual std::size_t parameters_per_expert() const = 0;
  /// Entries of the bank's parameter block, padding included; a multiple of kernels::kPadding.
  virtual std::size_t block_size() const = 0;
  /// Entries of one expert's block where experts lie one after another and one without active pairs has zero
  /// gradient; 0 where they are interleaved.
  virtual std::size_t expert_block_size() const { return 0; }
  /// Starting values; expert e's do not depend on E.
  virtual void initialize(const Seeds& seeds, Real* parameters) const = 0;
  /// outputs (n, padded(o)) ← f(x), for x (n, d). `keep` keeps what backward needs.
  virtual void forward(const Real* x, const Routing<Real>& routing, const Real* parameters, Real* outputs,
                       bool keep) = 0;
  /// From ∂L/∂f (n, padded(o), padding zero): ∂L/∂parameters (overwritten), ∂L/∂gates (n, padded(E)) at the
  /// active pairs and, unless null, ∂L/∂x at fixed gates (n, padded(d), overwritten). `pair_gradient`
  /// (n, E, padded(o)), unless null, is a further ∂L/∂x̃ of the outputs before their gates, read at active
  /// pairs. For the batch and routing of the last forward pass that kept.
  virtual void backward(const Real* x, const Routing<Real>& routing, const Real* parameters,
                        const Real* output_gradient, Real* gradient, Real* gate_gradient,
                        Real* input_gradient, const Real* pair_gradient = nullptr) = 0;
  /// x̃ (n, E, padded(o)) of the last forward pass that kept: the experts' outputs before their gates, written
  /// at active pairs.
  virtual void pair_outputs(const Routing<Real>& routing, const Real* parameters, Real* outputs) const = 0;
  /// Arrays for saving, experts first: expert_weight_1 (E, out, in), …
  virtual std::vector<NamedArray<Real>> arrays(const Real* parameters) const = 0;
};

/// The kinds of experts with their fields: from the one table in experts.cpp.
std::vector<Kind> expert_kinds();

/// A bank of `experts` networks R^input_dim → R^output_dim, from a resolved `model.expert` object.
template <class Real>
std::unique_ptr<ExpertBank<Real>> make_expert_bank(const Json& spec, int input_dim, int output_dim,
                                                   int experts);

/// Weight matrices on the way from x to the output of one expert (a constant counts as one).
int expert_depth(const Json& spec);

}  // namespace moelab
