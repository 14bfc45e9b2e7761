#pragma once

/// A multi-layer perceptron with hand-written passes: the body of MLP and linear experts, of MLP routers and
/// of dense models.

#include <vector>

#include "sim/model/dense_layer.h"
#include "sim/model/named_array.h"

namespace moelab {

/// h_0 = x;  h_l = relu(h_{l−1} A_l + b_l) for l < depth;  output h_{depth−1} A_depth + b_depth.
/// Depth counts weight matrices. A_l is (in, padded(out)), b_l (padded(out)): columns beyond `out` stay zero.
/// Parameters lie in one block A_1 b_1 A_2 b_2 …; the object holds shapes only, so one serves a whole bank.
template <class Real>
class Mlp {
 public:
  /// widths = {d, w_1, …, o}.
  explicit Mlp(const std::vector<int>& widths);

  int depth() const { return static_cast<int>(layers_.size()); }
  int output_stride() const { return layers_.back().stride(); }
  /// Entries of the parameter block, padding included; a multiple of the kernels' padding.
  std::size_t block_size() const { return block_size_; }
  /// Free parameters, padding excluded: Σ_l (in_l + 1) out_l.
  std::size_t parameter_count() const;
  /// Entries of activations that a forward pass of `rows` rows writes (the output included).
  std::size_t activation_size(int rows) const { return size(rows) * activation_width_; }

  /// Weights N(0, 2 / in) before a ReLU and N(0, 1 / in) at the output, times `scale`; biases zero.
  void initialize(Engine& engine, double scale, Real* parameters) const;

  /// x (n, d) → activations; returns where the output (n, output_stride) begins in them.
  const Real* forward(const View<const Real>& x, const Real* parameters, Real* activations) const;

  /// From ∂L/∂output (n, output_stride), padding zero, writes ∂L/∂parameters (overwritten, padding zero).
  /// `scratch` holds scratch_size(n) entries. With `input_gradient` (n, padded(d)) also ∂L/∂x.
  void backward(const View<const Real>& x, const Real* parameters, const Real* activations,
                const Real* output_gradient, Real* gradient, Real* scratch,
                Real* input_gradient = nullptr) const;
  std::size_t scratch_size(int rows) const;

  /// Layer l's weights (out, in) and biases (out), padding removed, appended to `weights` and `biases`.
  void append_layer(const Real* parameters, int layer, std::vector<Real>& weights,
                    std::vector<Real>& biases) const;
  int layer_inputs(int layer) const { return layers_[size(layer)].inputs(); }
  int layer_outputs(int layer) const { return layers_[size(layer)].outputs(); }

 private:
  std::vector<DenseLayer<Real>> layers_;
  std::vector<std::size_t> offsets_;  // of A_l within the block
  std::size_t block_size_ = 0;
  std::size_t activation_width_ = 0;
  int widest_ = 0;
};

/// The layers of `networks` equal networks (blocks one after another) as arrays <prefix>weight_<l> and
/// <prefix>bias_<l>, l = 1 … depth: (out, in) and (out), or (E, out, in) and (E, out) for a bank.
template <class Real>
std::vector<NamedArray<Real>> layer_arrays(const Mlp<Real>& mlp, const Real* parameters,
                                           const std::string& prefix, int networks = 0);

}  // namespace moelab
