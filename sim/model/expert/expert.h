#pragma once

/// The axis of experts: a bank of E equal networks, called once per batch.

#include <functional>
#include <memory>
#include <vector>

#include "sim/base/per_precision.h"
#include "sim/base/random.h"
#include "sim/base/view.h"
#include "sim/model/gating/routing.h"
#include "sim/model/named_array.h"
#include "sim/model/scratch.h"

namespace moelab {

/// What a bank is made for: `experts` networks R^input_dim → R^output_dim.
struct ExpertSetting {
  int input_dim = 0;
  int output_dim = 0;
  int experts = 1;
};

/// What a bank's backward pass reads and writes. `pair_outputs`, `gates` and `inputs` are null where nobody
/// asked for them.
template <class Real>
struct ExpertGradients {
  const Real* outputs = nullptr;  ///< ∂L/∂f (n, padded(o)), padding zero
  /// (n, E, padded(o)): a further ∂L/∂x̃ of the outputs before their gates, read at active pairs.
  const Real* pair_outputs = nullptr;
  /// ∂L/∂parameters, overwritten. With one scratch the same array from pass to pass, which nobody else writes
  /// to: a bank need not write zeros again.
  Real* parameters = nullptr;
  /// Given the gradient of each active expert once it is whole, in place of `parameters`, which stays as it
  /// is. Only where a bank has an expert_block_size().
  const std::function<void(int expert, const Real* gradient)>* take = nullptr;
  Real* gates = nullptr;   ///< ∂L/∂gates (n, padded(E)), written at active pairs
  Real* inputs = nullptr;  ///< ∂L/∂x at fixed gates (n, padded(d)), overwritten
};

/// f(x) = Σ_e gate_e(x) · expert_e(x), over the active pairs of a routing. Immutable; a batch's arrays live
/// in its scratch.
template <class Real>
class ExpertBank {
 public:
  virtual ~ExpertBank() = default;
  /// Free parameters of one expert; and those beside the E experts.
  virtual std::size_t parameters_per_expert() const = 0;
  virtual std::size_t parameters_beside() const { return 0; }
  /// Entries of the bank's parameter block, padding included; a multiple of kernels::kPadding.
  virtual std::size_t block_size() const = 0;
  /// Entries of one expert's block where experts lie one after another and one without active pairs has zero
  /// gradient; 0 where they are interleaved.
  virtual std::size_t expert_block_size() const { return 0; }
  /// Starting values; expert e's do not depend on E.
  virtual void initialize(const Seeds& seeds, Real* parameters) const = 0;
  virtual std::unique_ptr<Scratch> make_scratch() const = 0;
  /// outputs (n, padded(o)) ← f(x), for x (n, d). `keep` keeps what backward needs.
  virtual void forward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
                       Scratch& scratch, Real* outputs, bool keep) const = 0;
  /// For the batch and routing of the last forward pass that kept.
  virtual void backward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
                        Scratch& scratch, const ExpertGradients<Real>& gradients) const = 0;
  /// x̃ (n, E, padded(o)) of the last forward pass that kept: the experts' outputs before their gates, written
  /// at active pairs.
  virtual void pair_outputs(const Routing<Real>& routing, const Real* parameters, const Scratch& scratch,
                            Real* outputs) const = 0;
  /// Arrays for saving, experts first: expert_weight_1 (E, out, in), …
  virtual std::vector<NamedArray<Real>> arrays(const Real* parameters) const = 0;
};

template <class Real>
using MakeExpertBank = std::unique_ptr<ExpertBank<Real>>(const AnyOptions&, const ExpertSetting&);

/// An entry of the table of experts.
struct ExpertKind : KindEntry {
  PerPrecision<MakeExpertBank> make = {};
  /// Weight matrices on the way from x to the output of one expert; null for 1 (a constant counts as one).
  int (*depth)(const AnyOptions&) = nullptr;
};

/// The table: adding a kind of expert is a new file and a line in experts.cpp.
struct ExpertAxis {
  using Entry = ExpertKind;
  static const std::vector<ExpertKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "expert";
};
using ExpertOptions = OneOf<ExpertAxis>;
void add_expert_kind(ExpertKind kind);

/// The entry of a bank class `Made<Real>` that is made from (Options, ExpertSetting).
template <class Options, template <class> class Made>
ExpertKind expert_kind(std::string name, std::string help, Options example = {}) {
  return {{std::move(name), std::move(help), Options{}, std::move(example)},
          {make_from<ExpertBank<float>, Options, Made<float>, const ExpertSetting&>,
           make_from<ExpertBank<double>, Options, Made<double>, const ExpertSetting&>}};
}

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_expert_bank(const ExpertOptions& options,
                                                   const ExpertSetting& setting) {
  return options.entry().make.of<Real>()(options.options(), setting);
}

/// Weight matrices on the way from x to the output of one expert.
int expert_depth(const ExpertOptions& options);

}  // namespace moelab
