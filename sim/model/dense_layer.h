#pragma once

/// One dense layer with hand-written passes: what MLPs, convolutions and stacked linear experts are made of.

#include <cstddef>

#include "sim/base/aligned.h"
#include "sim/base/random.h"
#include "sim/base/view.h"

namespace moelab {

/// h = x A + b, with or without ReLU. A (in, padded(out)) and b (padded(out)) lie in one block A b: columns
/// beyond `out` stay zero. The object holds shapes only.
template <class Real>
class DenseLayer {
 public:
  DenseLayer(int inputs, int outputs, bool relu);

  int inputs() const { return inputs_; }
  int outputs() const { return outputs_; }
  /// padded(out), of A and of h.
  int stride() const { return stride_; }
  /// Entries of the parameter block, padding included; a multiple of the kernels' padding.
  std::size_t block_size() const { return entries(inputs_ + 1, stride_); }
  /// Free parameters, padding excluded.
  std::size_t parameter_count() const { return entries(inputs_ + 1, outputs_); }
  /// b of a block.
  const Real* bias(const Real* parameters) const { return parameters + entries(inputs_, stride_); }

  /// Weights N(0, 2 / in) before a ReLU and N(0, 1 / in) without, times `scale`; biases zero.
  void initialize(Engine& engine, double scale, Real* parameters) const;

  /// x (n, in) → h (n, stride).
  void forward(const View<const Real>& x, const Real* parameters, Real* h) const;

  /// ∂L/∂(A, b), overwritten, padding zero, from `delta` = ∂L/∂(x A + b) (n, stride), padding zero.
  void parameter_gradient(const View<const Real>& x, const Real* delta, Real* gradient) const;

  /// ∂L/∂x (n, padded(in)) from the same. Where x is a ReLU's output of that shape, given as
  /// `relu_output`, ∂L/∂x before the ReLU.
  void input_gradient(const Real* delta, int rows, const Real* parameters, Real* gradient,
                      const Real* relu_output = nullptr) const;

 private:
  View<const Real> weight(const Real* parameters) const { return {parameters, inputs_, outputs_, stride_}; }

  int inputs_;
  int outputs_;
  bool relu_;
  int stride_;
};

}  // namespace moelab
