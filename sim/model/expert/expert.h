#pragma once

/// The axis of experts: a bank of E equal networks, called once per batch.

#include <functional>
#include <memory>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/options.h"
#include "sim/base/random.h"
#include "sim/model/gating/routing.h"
#include "sim/model/parameters.h"

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

// Banks of experts with others beside them.

/// The same with `count` null experts after its own (MoE++'s zero experts): f_e(x) = 0, so that a row that
/// selects one is computed by fewer networks, and with renormalised gates the others' gates are as much
/// smaller. Routings have E + count experts.
template <class Real>
std::unique_ptr<ExpertBank<Real>> with_null_experts(std::unique_ptr<ExpertBank<Real>> bank,
                                                    const ExpertSetting& setting, int count);

/// The same with `count` experts that serve every row, no gate before them (DeepSeekMoE):
/// f(x) = Σ_e gate_e(x) f_e(x) + Σ_s f_s(x). They start from streams of their own. Arrays "shared_…".
template <class Real>
std::unique_ptr<ExpertBank<Real>> with_shared_experts(std::unique_ptr<ExpertBank<Real>> bank,
                                                      const ExpertOptions& expert,
                                                      const ExpertSetting& setting, int count);

/// expert_e(x) = u_e in R^o (Dikkala et al. 2023, section 3.1). u_e starts N(0, init_scale² I).
struct ConstantExpertOptions {
  double init_scale = 1.0;
  void bind(Fields& fields);
};

/// expert_e(x) = A_e x + b_e (Dikkala et al. 2023, section 3.5). Entries of A_e start N(0, init_scale² / d),
/// b_e zero.
struct LinearExpertOptions {
  double init_scale = 1.0;
  void bind(Fields& fields);
};

/// expert_e(x) = MLP_e(x), ReLU hidden layers, biases (Dikkala et al. 2023, section 3.1: depth 3, width 96).
struct MlpExpertOptions {
  int depth = 3;  ///< weight matrices
  int width = 96;
  double init_scale = 1.0;
  void bind(Fields& fields);
};

/// For other kinds whose experts are MLPs.
template <class Real>
std::unique_ptr<ExpertBank<Real>> make_mlp_bank(const MlpExpertOptions& options,
                                                const ExpertSetting& setting);

/// expert_e(x) = (A_e x + b_e)^power, output by output (Nguyen et al., Statistical Advantages of Perturbing
/// Cosine Router, Table 1). For an even power (A_e, b_e) and (−A_e, −b_e) are the same expert. Entries of A_e
/// start N(0, init_scale² / d), b_e zero.
struct PolynomialExpertOptions {
  double init_scale = 1.0;
  int power = 2;
  void bind(Fields& fields);
};

/// expert_e(x) = (A_e x + b_e)_+, one neuron for each output. The slides' theory has experts of the form
/// φ(a^T x + b), whose slope and intercept are identified; "mlp" of depth 2 has a further layer, and with it
/// scales and an order of the neurons that data cannot tell. Entries of A_e start N(0, init_scale² / d), b_e
/// zero.
struct ReluExpertOptions {
  double init_scale = 1.0;
  void bind(Fields& fields);
};

}  // namespace moelab
