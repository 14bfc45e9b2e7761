#pragma once

/// One dense layer with hand-written passes: what MLPs, convolutions and stacked linear experts are made of.

#include <cstddef>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/random.h"
#include "sim/data/layout.h"
#include "sim/model/parameters.h"

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

// A multi-layer perceptron with hand-written passes: the body of MLP and linear experts, of MLP routers and
// of dense models.

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

// One layer of a convolutional network with hand-written passes.

/// Where entry (row, channel, pixel) of a batch of images lies: row · row + channel · channel + pixel ·
/// pixel.
struct ImageStrides {
  std::ptrdiff_t row = 0;
  std::ptrdiff_t channel = 1;
  std::ptrdiff_t pixel = 1;
};

/// Size, step and zero padding of the kernel: ⌊(side + 2 padding − kernel) / stride⌋ + 1 outputs a side.
struct Window {
  int height = 1;
  int width = 1;
  int stride = 1;
  int padding = 0;
};

/// h[i, p, :] = patch(x_i, p) A + b, with or without ReLU: patch(x_i, p) (K) holds the entries of image i
/// under the window at output pixel p, zero outside the image, K = window.height · window.width · channels,
/// channels fastest. A window as large as the image makes a dense layer. A is (K, padded(C)), b (padded(C));
/// columns beyond C, the number of output channels, stay zero. The object holds shapes only.
template <class Real>
class Convolution {
 public:
  Convolution(const ImageShape& input, const Window& window, int output_channels, bool relu);

  const ImageShape& input() const { return input_; }
  const ImageShape& output() const { return output_; }
  /// Output images lie row by row, pixel by pixel, padded(C) entries each.
  ImageStrides output_strides() const;
  int patch_size() const { return window_.height * window_.width * input_.channels; }

  /// Entries of the parameter block A b, padding included; a multiple of the kernels' padding.
  std::size_t block_size() const { return layer_.block_size(); }
  std::size_t parameter_count() const { return layer_.parameter_count(); }
  /// Entries that a batch needs: of patches (n, P, K), of outputs (n, P, padded(C)), of patch gradients (n,
  /// P, padded(K)).
  std::size_t patches_size(int rows) const;
  std::size_t outputs_size(int rows) const;
  std::size_t patch_gradients_size(int rows) const;

  /// Weights N(0, 2 / K) before a ReLU and N(0, 1 / K) without, biases zero.
  void initialize(Engine& engine, Real* parameters) const { layer_.initialize(engine, 1.0, parameters); }

  void forward(const Real* x, const ImageStrides& strides, int rows, const Real* parameters, Real* patches,
               Real* outputs) const;

  /// From ∂L/∂h (n, P, padded(C)), padding zero, and the patches and outputs of the forward pass:
  /// `output_gradient` becomes ∂L/∂(h before the ReLU), `gradient` ∂L/∂(A, b), and, unless null,
  /// `patch_gradients` ∂L/∂patches (n, P, padded(K)).
  void backward(int rows, const Real* parameters, const Real* patches, const Real* outputs,
                Real* output_gradient, Real* gradient, Real* patch_gradients) const;

  /// Adds ∂L/∂patches to ∂L/∂x, which lies by `strides`.
  void add_patch_gradients(const Real* patch_gradients, int rows, const ImageStrides& strides,
                           Real* input_gradient) const;

  /// A as (C, channels, height, width) and b as (C), padding removed.
  std::vector<Real> weights(const Real* parameters) const;
  std::vector<Real> biases(const Real* parameters) const;

 private:
  int positions() const { return output_.height * output_.width; }
  /// Patches (n·P, K).
  View<const Real> all_patches(const Real* patches, int rows) const {
    return rows_of(patches, rows * positions(), patch_size());
  }

  ImageShape input_;
  Window window_;
  ImageShape output_;
  bool relu_;
  DenseLayer<Real> layer_;  ///< from patches to output pixels
};

}  // namespace moelab
