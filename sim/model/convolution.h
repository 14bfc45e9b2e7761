#pragma once

/// One layer of a convolutional network with hand-written passes.

#include <cstddef>
#include <vector>

#include "sim/data/layout.h"
#include "sim/model/dense_layer.h"

namespace moelab {

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
