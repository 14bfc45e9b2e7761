#pragma once

/// The residual connection around a block.

#include "sim/base/aligned.h"
#include "sim/model/blocks/block.h"

namespace moelab {

template <class Real>
struct ResidualScratch final : Scratch {
  std::unique_ptr<Scratch> inner;  ///< of the block inside
  AlignedVector<Real> branch;      ///< f(x) (n, padded(d)) of the last forward pass

  Scratch& innermost() override { return inner->innermost(); }
};

/// x + f(x) of a block f: R^d → R^d. Parameters, state, signals and added losses are those of f.
template <class Real>
class Residual final : public Block<Real> {
 public:
  explicit Residual(std::unique_ptr<Block<Real>> block) : inner_(std::move(block)) {}

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

  std::vector<StateArray> state_arrays() const override { return inner_->state_arrays(); }
  void start_state(const Start& start, double* state) const override { inner_->start_state(start, state); }
  void begin_step(double progress, const Real* parameters, double* state) const override {
    inner_->begin_step(progress, parameters, state);
  }
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

  std::unique_ptr<Block<Real>> inner_;
};

}  // namespace moelab
