#pragma once

/// Dense layers, multi-layer perceptrons and convolutions with hand-written passes.

#include <cstddef>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/random.h"
#include "sim/data/layout.h"
#include "sim/model/parameters.h"

namespace moelab {

/// A dense layer: h = x A + b, with or without ReLU.
///
/// A (in, padded(out)) and b (padded(out)) lie in one block A b. Columns beyond `out` stay zero. The object
/// holds shapes only.
template <class Real>
class DenseLayer {
 public:
  DenseLayer(int inputs, int outputs, bool relu);

  int inputs() const { return inputs_; }
  int outputs() const { return outputs_; }
  /// The row stride padded(out) of A and h.
  int stride() const { return stride_; }
  /// Entries of the parameter block, padding included; a multiple of the kernels' padding.
  std::size_t block_size() const { return entries(inputs_ + 1, stride_); }
  /// Free parameters, padding excluded.
  std::size_t parameter_count() const { return entries(inputs_ + 1, outputs_); }
  /// The bias b in a parameter block.
  const Real* bias(const Real* parameters) const { return parameters + entries(inputs_, stride_); }

  /// Weights N(0, 2 / in) before a ReLU and N(0, 1 / in) without, times `scale`; biases zero.
  void initialize(Engine& engine, double scale, Real* parameters) const;

  /// x (n, in) → h (n, stride).
  void forward(const View<const Real>& x, const Real* parameters, Real* h) const;

  /// Writes ∂L/∂(A, b) with zero padding. `delta` = ∂L/∂(x A + b) (n, stride) has zero padding.
  void parameter_gradient(const View<const Real>& x, const Real* delta, Real* gradient) const;

  /// Writes ∂L/∂x (n, padded(in)) from `delta`. If x is the output of a ReLU, given as `relu_output` of the
  /// same shape, the result is ∂L/∂x before this ReLU.
  void input_gradient(const Real* delta, int rows, const Real* parameters, Real* gradient,
                      const Real* relu_output = nullptr) const;

 private:
  View<const Real> weight(const Real* parameters) const { return {parameters, inputs_, outputs_, stride_}; }

  int inputs_;
  int outputs_;
  bool relu_;
  int stride_;
};

// Multi-layer perceptrons: MLP and linear experts, MLP routers and dense models use them.

/// A multi-layer perceptron: h_0 = x;  h_l = relu(h_{l−1} A_l + b_l) for l < depth;  output h_{depth−1}
/// A_depth + b_depth.
///
/// Depth counts weight matrices. A_l is (in, padded(out)) and b_l (padded(out)). Columns beyond `out` stay
/// zero. Parameters lie in one block A_1 b_1 A_2 b_2 …. The object holds shapes only, so one object serves a
/// whole bank.
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
  /// Entries of activations that a forward pass of `rows` rows writes, including the output.
  std::size_t activation_size(int rows) const { return size(rows) * activation_width_; }

  /// Weights N(0, 2 / in) before a ReLU and N(0, 1 / in) at the output, times `scale`; biases zero.
  void initialize(Engine& engine, double scale, Real* parameters) const;

  /// Writes the activations of x (n, d). Returns the start of the output (n, output_stride) in them.
  const Real* forward(const View<const Real>& x, const Real* parameters, Real* activations) const;

  /// Writes ∂L/∂parameters from ∂L/∂output (n, output_stride); both have zero padding. `scratch` holds
  /// scratch_size(n) entries. Also writes ∂L/∂x to `input_gradient` (n, padded(d)) unless it is null.
  void backward(const View<const Real>& x, const Real* parameters, const Real* activations,
                const Real* output_gradient, Real* gradient, Real* scratch,
                Real* input_gradient = nullptr) const;
  std::size_t scratch_size(int rows) const;
  /// Ends of A_1, b_1, A_2, b_2, … in the block.
  std::vector<std::size_t> part_ends() const;

  /// Appends layer l's weights (out, in) and biases (out), without padding, to `weights` and `biases`.
  void append_layer(const Real* parameters, int layer, std::vector<Real>& weights,
                    std::vector<Real>& biases) const;
  int layer_inputs(int layer) const { return layers_[size(layer)].inputs(); }
  int layer_outputs(int layer) const { return layers_[size(layer)].outputs(); }

 private:
  std::vector<DenseLayer<Real>> layers_;
  std::vector<std::size_t> offsets_;  // begin of A_l in the block
  std::size_t block_size_ = 0;
  std::size_t activation_width_ = 0;
  int widest_ = 0;
};

/// The layers of `networks` equal networks as named arrays; their blocks follow one another. Arrays:
/// `<prefix>weight_<l>` and `<prefix>bias_<l>`, l = 1 … depth. Shapes: (out, in) and (out), or (E, out, in)
/// and (E, out) for a bank.
template <class Real>
std::vector<NamedArray<Real>> layer_arrays(const Mlp<Real>& mlp, const Real* parameters,
                                           const std::string& prefix, int networks = 0);

// Convolutions.

/// Strides of a batch of images. Entry (row, channel, pixel) is at row · row stride + channel · channel
/// stride + pixel · pixel stride.
struct ImageStrides {
  std::ptrdiff_t row = 0;
  std::ptrdiff_t channel = 1;
  std::ptrdiff_t pixel = 1;
};

/// Size, stride and zero padding of the kernel. A side has ⌊(side + 2 padding − kernel) / stride⌋ + 1
/// outputs.
struct Window {
  int height = 1;
  int width = 1;
  int stride = 1;
  int padding = 0;
};

/// A convolution: h[i, p, :] = patch(x_i, p) A + b, with or without ReLU.
///
/// patch(x_i, p) (K) holds the entries of image i under the window at output pixel p. K = window.height ·
/// window.width · channels, with channels fastest. Entries outside the image are zero. A window as large as
/// the image makes a dense layer. A is (K, padded(C)) and b (padded(C)), with C output channels. Columns
/// beyond C stay zero. The object holds shapes only.
template <class Real>
class Convolution {
 public:
  Convolution(const ImageShape& input, const Window& window, int output_channels, bool relu);

  const ImageShape& input() const { return input_; }
  const ImageShape& output() const { return output_; }
  /// Output images are stored row by row and pixel by pixel, with padded(C) entries each.
  ImageStrides output_strides() const;
  int patch_size() const { return window_.height * window_.width * input_.channels; }

  /// Entries of the parameter block A b, padding included; a multiple of the kernels' padding.
  std::size_t block_size() const { return layer_.block_size(); }
  std::size_t parameter_count() const { return layer_.parameter_count(); }
  /// Entries of a batch: patches (n, P, K), outputs (n, P, padded(C)) and patch gradients (n, P, padded(K)).
  std::size_t patches_size(int rows) const;
  std::size_t outputs_size(int rows) const;
  std::size_t patch_gradients_size(int rows) const;

  /// Weights N(0, 2 / K) before a ReLU and N(0, 1 / K) without, biases zero.
  void initialize(Engine& engine, Real* parameters) const { layer_.initialize(engine, 1.0, parameters); }

  void forward(const Real* x, const ImageStrides& strides, int rows, const Real* parameters, Real* patches,
               Real* outputs) const;

  /// The backward pass, from ∂L/∂h (n, P, padded(C)) with zero padding. It reads the patches and outputs of
  /// the forward pass. `output_gradient` becomes ∂L/∂(h before the ReLU) and `gradient` becomes ∂L/∂(A, b).
  /// `patch_gradients` becomes ∂L/∂patches (n, P, padded(K)) unless it is null.
  void backward(int rows, const Real* parameters, const Real* patches, const Real* outputs,
                Real* output_gradient, Real* gradient, Real* patch_gradients) const;

  /// Adds ∂L/∂patches to ∂L/∂x; `strides` describe the layout of ∂L/∂x.
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
  DenseLayer<Real> layer_;  ///< maps patches to output pixels
};

}  // namespace moelab
