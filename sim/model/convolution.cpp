#include "sim/model/convolution.h"

#include <algorithm>

#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

int outputs_per_side(int side, int kernel, const Window& window) {
  return (side + 2 * window.padding - kernel) / window.stride + 1;
}

/// Calls visit(patch entry, pixel) for every tap of every window that lies inside the image: the first of its
/// `channels` entries within the patches of one image whose patches are `patch_stride` apart.
template <class Visit>
void for_each_tap(const ImageShape& input, const Window& window, const ImageShape& output,
                  std::ptrdiff_t patch_stride, const Visit& visit) {
  std::ptrdiff_t patch = 0;
  for (int row = 0; row < output.height; ++row) {
    for (int column = 0; column < output.width; ++column, patch += patch_stride) {
      const int top = row * window.stride - window.padding, left = column * window.stride - window.padding;
      for (int i = std::max(0, -top); i < std::min(window.height, input.height - top); ++i) {
        for (int j = std::max(0, -left); j < std::min(window.width, input.width - left); ++j) {
          visit(patch + static_cast<std::ptrdiff_t>(i * window.width + j) * input.channels,
                static_cast<std::ptrdiff_t>(top + i) * input.width + left + j);
        }
      }
    }
  }
}

}  // namespace

template <class Real>
Convolution<Real>::Convolution(const ImageShape& input, const Window& window, int output_channels, bool relu)
    : input_(input),
      window_(window),
      output_{output_channels, outputs_per_side(input.height, window.height, window),
              outputs_per_side(input.width, window.width, window)},
      relu_(relu),
      layer_(patch_size(), output_channels, relu) {}

template <class Real>
ImageStrides Convolution<Real>::output_strides() const {
  const std::ptrdiff_t stride = layer_.stride();
  return {positions() * stride, 1, stride};
}

template <class Real>
std::size_t Convolution<Real>::patches_size(int rows) const {
  return entries(rows * positions(), patch_size());
}

template <class Real>
std::size_t Convolution<Real>::outputs_size(int rows) const {
  return entries(rows * positions(), layer_.stride());
}

template <class Real>
std::size_t Convolution<Real>::patch_gradients_size(int rows) const {
  return entries(rows * positions(), kernels::padded(patch_size()));
}

template <class Real>
void Convolution<Real>::forward(const Real* x, const ImageStrides& strides, int rows, const Real* parameters,
                                Real* patches, Real* outputs) const {
  const int channels = input_.channels;
  for (int row = 0; row < rows; ++row) {
    const Real* const image = x + row * strides.row;
    Real* const own = patches + patches_size(row);
    if (window_.padding > 0) std::fill_n(own, patches_size(1), Real(0));
    for_each_tap(input_, window_, output_, patch_size(), [&](std::ptrdiff_t place, std::ptrdiff_t pixel) {
      const Real* const source = image + pixel * strides.pixel;
      for (int c = 0; c < channels; ++c) own[place + c] = source[c * strides.channel];
    });
  }
  layer_.forward(all_patches(patches, rows), parameters, outputs);
}

template <class Real>
void Convolution<Real>::backward(int rows, const Real* parameters, const Real* patches, const Real* outputs,
                                 Real* output_gradient, Real* gradient, Real* patch_gradients) const {
  const std::size_t count = outputs_size(rows);
  for (std::size_t i = 0; i < count && relu_; ++i) {
    if (!(outputs[i] > 0)) output_gradient[i] = 0;
  }
  layer_.parameter_gradient(all_patches(patches, rows), output_gradient, gradient);
  if (patch_gradients) {
    layer_.input_gradient(output_gradient, rows * positions(), parameters, patch_gradients);
  }
}

template <class Real>
void Convolution<Real>::add_patch_gradients(const Real* patch_gradients, int rows,
                                            const ImageStrides& strides, Real* input_gradient) const {
  const int channels = input_.channels;
  for (int row = 0; row < rows; ++row) {
    Real* const image = input_gradient + row * strides.row;
    const Real* const own = patch_gradients + patch_gradients_size(row);
    for_each_tap(input_, window_, output_, kernels::padded(patch_size()),
                 [&](std::ptrdiff_t place, std::ptrdiff_t pixel) {
                   Real* const target = image + pixel * strides.pixel;
                   for (int c = 0; c < channels; ++c) target[c * strides.channel] += own[place + c];
                 });
  }
}

template <class Real>
std::vector<Real> Convolution<Real>::weights(const Real* parameters) const {
  std::vector<Real> values;
  values.reserve(entries(patch_size(), output_.channels));
  const int taps = window_.height * window_.width;
  for (int out = 0; out < output_.channels; ++out) {
    for (int in = 0; in < input_.channels; ++in) {
      for (int tap = 0; tap < taps; ++tap) {
        values.push_back(parameters[entries(tap * input_.channels + in, layer_.stride()) + size(out)]);
      }
    }
  }
  return values;
}

template <class Real>
std::vector<Real> Convolution<Real>::biases(const Real* parameters) const {
  const Real* const bias = layer_.bias(parameters);
  return {bias, bias + output_.channels};
}

template class Convolution<float>;
template class Convolution<double>;

}  // namespace moelab
