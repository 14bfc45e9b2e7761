#pragma once

/// Residual connections and normalisation around a block.

#include <string>

#include "sim/base/arrays.h"
#include "sim/model/blocks/block.h"
#include "sim/model/blocks/dense.h"

namespace moelab {

template <class Real>
struct ResidualScratch final : Scratch {
  std::unique_ptr<Scratch> inner;  ///< scratch of the inner block
  AlignedVector<Real> branch;      ///< f(x) (n, padded(d)) of the last forward pass
  /// With dropout: D and D ∘ ∂L/∂outputs (n, padded(d)), with zero padding.
  AlignedVector<Real> kept, branch_gradient;

  Scratch& innermost() override { return inner->innermost(); }
};

/// A residual connection around a block f: R^d → R^d: x + f(x), or x + D ∘ f(x) with dropout in training
/// steps.
///
/// The entries of D are independent: 0 with probability p, else 1 / (1 − p) (Srivastava et al. 2014, scaled
/// in training). Parameters, signals and added losses are f's. The state is [state of f | step of the
/// dropout, Dropout::name (3)]; the second part exists if dropout is above 0.
template <class Real>
class Residual final : public Block<Real> {
 public:
  explicit Residual(std::unique_ptr<Block<Real>> block, Dropout dropout = {});

  const Block<Real>& inner() const { return *inner_; }

  int output_dim() const override { return inner_->output_dim(); }
  std::size_t parameter_count() const override { return inner_->parameter_count(); }
  std::size_t block_size() const override { return inner_->block_size(); }
  std::vector<ParameterGroup> groups() const override { return inner_->groups(); }
  void initialize(const Start& start, Real* parameters) const override {
    inner_->initialize(start, parameters);
  }
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    return inner_->arrays(parameters);
  }

  std::vector<StateArray> state_arrays() const override;
  void start_state(const Start& start, double* state) const override;
  void begin_step(double progress, const Real* parameters, double* state) const override;
  void end_step(const Scratch& scratch, double* state) const override;

  std::unique_ptr<Scratch> make_scratch() const override;
  void forward(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& values,
               LayerSignals<Real>& signals, Scratch& scratch, const View<Real>& outputs) const override;
  /// `input_gradient` must not be the array of `output_gradient`.
  void backward(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& values,
                const LayerSignals<Real>& signals, Scratch& scratch, const View<const Real>& outputs,
                const Real* output_gradient, Real* gradient, Real* input_gradient) const override;
  View<const Real> mixture_inputs(const Pass<Real>& pass, const View<const Real>& inputs,
                                  const BlockValues<Real>& values, Scratch& scratch) const override {
    return inner_->mixture_inputs(pass, inputs, values, *static_cast<ResidualScratch<Real>&>(scratch).inner);
  }
  double added_loss(const Pass<Real>& pass, const BlockValues<Real>& values, Scratch& scratch) const override;

 private:
  View<Real> branch(ResidualScratch<Real>& scratch, int rows) const;
  bool drops(const Pass<Real>& pass) const { return pass.training && dropout_.probability > 0; }
  void draw_kept(const BlockValues<Real>& values, int rows, ResidualScratch<Real>& scratch) const;

  std::unique_ptr<Block<Real>> inner_;
  Dropout dropout_;
  std::size_t dropout_state_ = 0;  ///< begin of the dropout's part of the state
};

// Normalisation of rows before other blocks.

enum class Normalization { layer, rms };

/// Normalises each row x (d). `layer` (Ba et al. 2016): y = g ∘ x̂ + b with x̂ = (x − mean x) / √(var x +
/// 1e-5). `rms` (Zhang, Sennrich 2019): y = g ∘ x / √(mean x² + 1e-5). g starts at 1 and b at 0. Arrays:
/// `<prefix>norm_gain` and, for `layer`, `<prefix>norm_bias` (d).
template <class Real>
std::unique_ptr<Block<Real>> make_normalization(Normalization kind, int dim, const std::string& prefix);

/// A block f after a normalisation: f(norm(x)). Parameters [f's | norm's], so the values of the chain are
/// also values of f. State and signals are f's. The names of f's arrays also begin with `prefix`.
template <class Real>
std::unique_ptr<Block<Real>> make_normalized(Normalization kind, int dim, const std::string& prefix,
                                             std::unique_ptr<Block<Real>> block);

}  // namespace moelab
