#pragma once

/// The residual connection around a block.

#include <string>

#include "sim/base/arrays.h"
#include "sim/model/blocks/block.h"
#include "sim/model/blocks/dense.h"

namespace moelab {

template <class Real>
struct ResidualScratch final : Scratch {
  std::unique_ptr<Scratch> inner;  ///< of the block inside
  AlignedVector<Real> branch;      ///< f(x) (n, padded(d)) of the last forward pass
  /// D and D ∘ ∂L/∂outputs (n, padded(d)) with dropout, padding zero.
  AlignedVector<Real> kept, branch_gradient;

  Scratch& innermost() override { return inner->innermost(); }
};

/// x + f(x) of a block f: R^d → R^d; in training steps with dropout x + D ∘ f(x), the entries of D
/// independently 0 with probability p and else 1 / (1 − p) (Srivastava et al. 2014, scaled in training).
/// Parameters, signals and added losses are those of f, the state [that of f | where dropout is above 0 its
/// step, Dropout::name (3)].
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
  /// `input_gradient` is not the array of `output_gradient`.
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
  std::size_t dropout_state_ = 0;  ///< begin of its part of the state
};

// Normalization of rows, before other blocks.

enum class Normalization { layer, rms };

/// y = g ∘ x̂ + b with x̂ = (x − mean x) / √(var x + 1e-5) (`layer`, Ba et al. 2016), or y = g ∘ x / √(mean x²
/// + 1e-5) (`rms`, Zhang, Sennrich 2019), of each row x (d). g starts at 1, b at 0. Arrays: <prefix>norm_gain
/// and, of `layer`, <prefix>norm_bias (d).
template <class Real>
std::unique_ptr<Block<Real>> make_normalization(Normalization kind, int dim, const std::string& prefix);

/// f(norm(x)) of a block f. Parameters [those of f | those of norm], so that values of the chain are values
/// of f; state and signals are those of f, and <prefix> leads the names of its arrays, too.
template <class Real>
std::unique_ptr<Block<Real>> make_normalized(Normalization kind, int dim, const std::string& prefix,
                                             std::unique_ptr<Block<Real>> block);

}  // namespace moelab
