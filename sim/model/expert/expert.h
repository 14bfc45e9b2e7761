#pragma once

/// The axis of experts. A bank holds E equal networks and is called once per batch.

#include <functional>
#include <memory>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/options.h"
#include "sim/base/random.h"
#include "sim/model/gating/routing.h"
#include "sim/model/parameters.h"

namespace moelab {

/// The setting of a bank: `experts` networks R^input_dim → R^output_dim.
struct ExpertSetting {
  int input_dim = 0;
  int output_dim = 0;
  int experts = 1;
};

/// The inputs and results of a bank's backward pass. `pair_outputs`, `gates` and `inputs` are null if they
/// are not needed.
template <class Real>
struct ExpertGradients {
  const Real* outputs = nullptr;  ///< ∂L/∂f (n, padded(o)), padding zero
  /// (n, E, padded(o)): an extra ∂L/∂x̃ of the outputs before their gates, read at active pairs.
  const Real* pair_outputs = nullptr;
  /// ∂L/∂parameters, overwritten. With one scratch the array must be the same in every pass, and nobody else
  /// may write to it. The bank therefore need not write zeros again.
  Real* parameters = nullptr;
  /// Called with the gradient of each active expert when it is complete. `parameters` is then not written.
  /// Only for banks with an expert_block_size().
  const std::function<void(int expert, const Real* gradient)>* take = nullptr;
  Real* gates = nullptr;   ///< ∂L/∂gates (n, padded(E)), written at active pairs
  Real* inputs = nullptr;  ///< ∂L/∂x at fixed gates (n, padded(d)), overwritten
};

/// A bank of experts: f(x) = Σ_e gate_e(x) · expert_e(x) over the active pairs of a routing. Immutable. Its
/// scratch holds the arrays of a batch.
template <class Real>
class ExpertBank {
 public:
  virtual ~ExpertBank() = default;
  /// The free parameters of one expert, and those in addition to the E experts.
  virtual std::size_t parameters_per_expert() const = 0;
  virtual std::size_t parameters_beside() const { return 0; }
  /// Entries of the bank's parameter block, padding included; a multiple of kernels::kPadding.
  virtual std::size_t block_size() const = 0;
  /// Entries of one expert's block if experts lie one after another; an expert without active pairs then has
  /// zero gradient. 0 if experts are interleaved.
  virtual std::size_t expert_block_size() const { return 0; }
  /// Ends of the arrays (weights, biases) in the block of one expert; empty without an expert_block_size().
  virtual std::vector<std::size_t> expert_part_ends() const { return {}; }
  /// Writes starting values. The values of expert e do not depend on E.
  virtual void initialize(const Seeds& seeds, Real* parameters) const = 0;
  virtual std::unique_ptr<Scratch> make_scratch() const = 0;
  /// outputs (n, padded(o)) ← f(x), for x (n, d). `keep` keeps the arrays that backward() needs.
  virtual void forward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
                       Scratch& scratch, Real* outputs, bool keep) const = 0;
  /// Refers to the batch and routing of the last forward pass with `keep`.
  virtual void backward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
                        Scratch& scratch, const ExpertGradients<Real>& gradients) const = 0;
  /// Writes x̃ (n, E, padded(o)) of the last forward pass with `keep`: the experts' outputs before their
  /// gates, at active pairs.
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
  /// Weight matrices between x and the output of one expert; null for 1 (a constant counts as one).
  int (*depth)(const AnyOptions&) = nullptr;
};

/// The table of experts. A new kind of expert is one file and one line in experts.cpp.
struct ExpertAxis {
  using Entry = ExpertKind;
  static const std::vector<ExpertKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "expert";
};
using ExpertOptions = OneOf<ExpertAxis>;

/// The entry of a bank class `Made<Real>` whose constructor takes (Options, ExpertSetting).
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

/// Weight matrices between x and the output of one expert.
int expert_depth(const ExpertOptions& options);

// The options of the built-in experts.

/// Constant experts: expert_e(x) = u_e in R^o (Dikkala et al. 2023, section 3.1). u_e starts N(0, init_scale²
/// I).
struct ConstantExpertOptions {
  double init_scale = 1.0;
  void bind(Fields& fields);
};

/// The length of (A_e, b_e) of an expert with one output. With `unit` the expert uses (A_e, b_e) / ‖(A_e,
/// b_e)‖. Its parameters have any length, and their gradient is tangent to the sphere. They start uniformly
/// on the sphere. init_scale has no effect.
enum class ExpertLength { none, unit };

/// Linear experts: expert_e(x) = A_e x + b_e (Dikkala et al. 2023, section 3.5). Entries of A_e start N(0,
/// init_scale² / d), and b_e starts at zero.
struct LinearExpertOptions {
  double init_scale = 1.0;
  ExpertLength normalize = ExpertLength::none;
  bool bias = true;  ///< without it b_e stays 0
  void bind(Fields& fields);
};

/// MLP experts: expert_e(x) = MLP_e(x) with ReLU hidden layers and biases (Dikkala et al. 2023, section 3.1:
/// depth 3, width 96).
struct MlpExpertOptions {
  int depth = 3;  ///< weight matrices
  int width = 96;
  double init_scale = 1.0;
  void bind(Fields& fields);
};

/// Polynomial experts: expert_e(x) = (A_e x + b_e)^power, output by output (Nguyen et al., Statistical
/// Advantages of Perturbing Cosine Router, Table 1). For an even power (A_e, b_e) and (−A_e, −b_e) are the
/// same expert. Entries of A_e start N(0, init_scale² / d), and b_e starts at zero.
struct PolynomialExpertOptions {
  double init_scale = 1.0;
  int power = 2;
  ExpertLength normalize = ExpertLength::none;
  void bind(Fields& fields);
};

/// ReLU experts: expert_e(x) = (A_e x + b_e)_+, one neuron per output.
///
/// Theory with experts φ(a^T x + b) identifies slope and intercept. An "mlp" of depth 2 has one more layer,
/// and data cannot identify the scales and the order of its neurons. Entries of A_e start N(0, init_scale² /
/// d), and b_e starts at zero.
struct ReluExpertOptions {
  double init_scale = 1.0;
  ExpertLength normalize = ExpertLength::none;
  void bind(Fields& fields);
};

/// GELU experts: expert_e(x) = z Φ(z), z = A_e x + b_e, output by output (Hendrycks and Gimpel 2016), with
/// the normal distribution function Φ. Entries of A_e start N(0, init_scale² / d), and b_e starts at zero.
struct GeluExpertOptions {
  double init_scale = 1.0;
  ExpertLength normalize = ExpertLength::none;
  void bind(Fields& fields);
};

/// Sigmoid experts: expert_e(x) = σ(A_e x + b_e), output by output. Entries of A_e start N(0, init_scale² /
/// d), and b_e starts at zero.
struct SigmoidExpertOptions {
  double init_scale = 1.0;
  ExpertLength normalize = ExpertLength::none;
  void bind(Fields& fields);
};

/// Experts of neurons on the sphere: expert_e(x) = Σ_j a_j σ(w_j·x / ‖w_j‖ + b_j) (Kawata et al. 2025). Their
/// gradient in w_j is tangential, so ‖w_j‖ grows by the second order of a step only.
struct NeuronsExpertOptions {
  enum class Activation { relu, tanh };
  int width = 8;
  Activation activation = Activation::relu;
  double bias_std = 1;
  double init_scale = 1;
  void bind(Fields& fields);
};

/// Experts of filters that all patches of a sample share (Chen et al. 2022; Chowdhury et al. 2023):
///
///     f_c(x) = Σ_j a_j σ(w_cj·x + b_cj),  j = 1 … J, for every output c
///
/// The weights a_j are fixed. A model sums f over the tokens of a sample. With outputs `opposite` there is
/// one f, and the two outputs are (f/2, −f/2): their cross-entropy is log(1 + exp(−y f)) for the classes y =
/// ±1.
///
/// Arrays: "expert_weight" (E, C · J, d); with `bias` "expert_bias" (E, C · J). C is 1 with `opposite`, else
/// o.
struct FiltersExpertOptions {
  enum class Activation { linear, cubic, relu, celu, gelu, tanh };
  enum class Outputs { own, opposite };
  enum class Signs { one, by_expert, normal };
  enum class Init { normal, uniform };
  int filters = 8;  ///< J
  Activation activation = Activation::cubic;
  Outputs outputs = Outputs::own;
  Signs signs = Signs::one;
  bool bias = false;
  Init init = Init::normal;
  double init_scale = 1.0;
  void bind(Fields& fields);
};

// Banks that extend another bank.

/// A bank with `count` null experts after its own experts: f_e(x) = 0 (the zero experts of MoE++). Fewer
/// networks compute a row that selects a null expert. With renormalised gates, the null expert's gate reduces
/// the other gates. Routings have E + count experts.
template <class Real>
std::unique_ptr<ExpertBank<Real>> with_null_experts(std::unique_ptr<ExpertBank<Real>> bank,
                                                    const ExpertSetting& setting, int count);

/// A bank with `count` more experts that serve every row without a gate (DeepSeekMoE): f(x) = Σ_e gate_e(x)
/// f_e(x) + Σ_s f_s(x). They start from other streams. Arrays "shared_…".
template <class Real>
std::unique_ptr<ExpertBank<Real>> with_shared_experts(std::unique_ptr<ExpertBank<Real>> bank,
                                                      const ExpertOptions& expert,
                                                      const ExpertSetting& setting, int count);

/// Makes a bank of MLPs, for other kinds whose experts are MLPs.
template <class Real>
std::unique_ptr<ExpertBank<Real>> make_mlp_bank(const MlpExpertOptions& options,
                                                const ExpertSetting& setting);

}  // namespace moelab
