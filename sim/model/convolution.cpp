#include "sim/model/convolution.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

std::size_t size(std::ptrdiff_t value) {
  return static_cast<std::size_t>(value);
}

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
      stride_(kernels::padded(output_channels)) {}

template <class Real>
ImageStrides Convolution<Real>::output_strides() const {
  return {static_cast<std::ptrdiff_t>(positions()) * stride_, 1, stride_};
}

template <class Real>
std::size_t Convolution<Real>::block_size() const {
  return size(patch_size() + 1) * size(stride_);
}

template <class Real>
std::size_t Convolution<Real>::parameter_count() const {
  return size(patch_size() + 1) * size(output_.channels);
}

template <class Real>
std::size_t Convolution<Real>::patches_size(int rows) const {
  return size(rows) * size(positions()) * size(patch_size());
}

template <class Real>
std::size_t Convolution<Real>::outputs_size(int rows) const {
  return size(rows) * size(positions()) * size(stride_);
}

template <class Real>
std::size_t Convolution<Real>::patch_gradients_size(int rows) const {
  return size(rows) * size(positions()) * size(kernels::padded(patch_size()));
}

template <class Real>
void Convolution<Real>::initialize(Engine& engine, Real* parameters) const {
  std::fill_n(parameters, block_size(), Real(0));
  const double deviation = std::sqrt((relu_ ? 2.0 : 1.0) / patch_size());
  for (int p = 0; p < patch_size(); ++p) {
    for (int c = 0; c < output_.channels; ++c) {
      parameters[size(p) * size(stride_) + size(c)] = static_cast<Real>(deviation * draw_normal(engine));
    }
  }
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
  kernels::Product<Real> product;
  product.m = rows * positions();
  product.n = output_.channels;
  product.k = patch_size();
  product.a = patches;
  product.a_row = patch_size();
  product.b = parameters;
  product.b_row = stride_;
  product.c = outputs;
  product.c_row = stride_;
  product.start = kernels::Start::bias;
  product.bias = parameters + size(patch_size()) * size(stride_);
  product.finish = relu_ ? kernels::Finish::relu : kernels::Finish::none;
  kernels::multiply(product);
}

template <class Real>
void Convolution<Real>::backward(int rows, const Real* parameters, const Real* patches, const Real* outputs,
                                 Real* output_gradient, Real* gradient, Real* patch_gradients) const {
  const std::size_t count = outputs_size(rows);
  for (std::size_t i = 0; i < count && relu_; ++i) {
    if (!(outputs[i] > 0)) output_gradient[i] = 0;
  }
  kernels::Product<Real> product;
  product.m = patch_size();
  product.n = output_.channels;
  product.k = rows * positions();
  product.a = patches;
  product.a_row = 1;
  product.a_column = patch_size();
  product.b = output_gradient;
  product.b_row = stride_;
  product.c = gradient;
  product.c_row = stride_;
  kernels::multiply(product);
  kernels::sum_rows(output_gradient, rows * positions(), output_.channels, stride_,
                    gradient + size(patch_size()) * size(stride_));
  if (!patch_gradients) return;
  kernels::Product<Real> back;
  back.m = rows * positions();
  back.n = patch_size();
  back.k = output_.channels;
  back.a = output_gradient;
  back.a_row = stride_;
  back.b = parameters;
  back.b_row = stride_;
  back.b_transposed = true;
  back.c = patch_gradients;
  back.c_row = kernels::padded(patch_size());
  kernels::multiply(back);
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
  values.reserve(size(patch_size()) * size(output_.channels));
  const int taps = window_.height * window_.width;
  for (int out = 0; out < output_.channels; ++out) {
    for (int in = 0; in < input_.channels; ++in) {
      for (int tap = 0; tap < taps; ++tap) {
        values.push_back(parameters[size(tap * input_.channels + in) * size(stride_) + size(out)]);
      }
    }
  }
  return values;
}

template <class Real>
std::vector<Real> Convolution<Real>::biases(const Real* parameters) const {
  const Real* const bias = parameters + size(patch_size()) * size(stride_);
  return {bias, bias + output_.channels};
}

template class Convolution<float>;
template class Convolution<double>;

}  // namespace moelab
