#include "sim/model/layers.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"
#include "sim/base/kernels/multiply.h"

namespace moelab {

template <class Real>
DenseLayer<Real>::DenseLayer(int inputs, int outputs, bool relu)
    : inputs_(inputs), outputs_(outputs), relu_(relu), stride_(kernels::padded(outputs)) {}

template <class Real>
void DenseLayer<Real>::initialize(Engine& engine, double scale, Real* parameters) const {
  std::fill_n(parameters, block_size(), Real(0));
  const double deviation = scale * std::sqrt((relu_ ? 2.0 : 1.0) / inputs_);
  for (int i = 0; i < inputs_; ++i) {
    for (int j = 0; j < outputs_; ++j) {
      parameters[entries(i, stride_) + size(j)] = static_cast<Real>(deviation * draw_normal(engine));
    }
  }
}

template <class Real>
void DenseLayer<Real>::forward(const View<const Real>& x, const Real* parameters, Real* h) const {
  kernels::multiply(x, weight(parameters), View<Real>(h, x.rows, outputs_, stride_),
                    {.bias = bias(parameters), .relu = relu_});
}

template <class Real>
void DenseLayer<Real>::parameter_gradient(const View<const Real>& x, const Real* delta,
                                          Real* gradient) const {
  kernels::multiply(x.transposed(), View<const Real>(delta, x.rows, outputs_, stride_),
                    View<Real>(gradient, inputs_, outputs_, stride_));
  kernels::sum_rows(delta, x.rows, outputs_, stride_, gradient + entries(inputs_, stride_));
}

template <class Real>
void DenseLayer<Real>::input_gradient(const Real* delta, int rows, const Real* parameters, Real* gradient,
                                      const Real* relu_output) const {
  kernels::multiply(View<const Real>(delta, rows, outputs_, stride_), weight(parameters).transposed(),
                    kernels::padded_rows(gradient, rows, inputs_), {.relu_mask = relu_output});
}

template class DenseLayer<float>;
template class DenseLayer<double>;

template <class Real>
Mlp<Real>::Mlp(const std::vector<int>& widths) {
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const DenseLayer<Real>& layer = layers_.emplace_back(widths[l], widths[l + 1], l + 2 < widths.size());
    offsets_.push_back(block_size_);
    block_size_ += layer.block_size();
    activation_width_ += size(layer.stride());
    widest_ = std::max({widest_, layer.stride(), kernels::padded(layer.inputs())});
  }
}

template <class Real>
std::size_t Mlp<Real>::parameter_count() const {
  std::size_t count = 0;
  for (const DenseLayer<Real>& layer : layers_) count += layer.parameter_count();
  return count;
}

template <class Real>
std::size_t Mlp<Real>::scratch_size(int rows) const {
  return 2 * entries(rows, widest_);
}

template <class Real>
std::vector<std::size_t> Mlp<Real>::part_ends() const {
  std::vector<std::size_t> ends;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    ends.push_back(offsets_[l] + entries(layers_[l].inputs(), layers_[l].stride()));
    ends.push_back(offsets_[l] + layers_[l].block_size());
  }
  return ends;
}

template <class Real>
void Mlp<Real>::initialize(Engine& engine, double scale, Real* parameters) const {
  for (std::size_t l = 0; l < layers_.size(); ++l)
    layers_[l].initialize(engine, scale, parameters + offsets_[l]);
}

template <class Real>
const Real* Mlp<Real>::forward(const View<const Real>& x, const Real* parameters, Real* activations) const {
  View<const Real> input = x;
  Real* output = activations;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    layers_[l].forward(input, parameters + offsets_[l], output);
    input = kernels::padded_rows<const Real>(output, x.rows, layers_[l].outputs());
    output += entries(x.rows, layers_[l].stride());
  }
  return input.data;
}

template <class Real>
void Mlp<Real>::backward(const View<const Real>& x, const Real* parameters, const Real* activations,
                         const Real* output_gradient, Real* gradient, Real* scratch,
                         Real* input_gradient) const {
  const Real* delta = output_gradient;  // ∂L/∂(pre-activation of the current layer)
  Real* next = scratch;
  Real* other = scratch + entries(x.rows, widest_);
  const Real* input = activations + activation_size(x.rows) - entries(x.rows, output_stride());
  for (std::size_t l = layers_.size() - 1; l > 0; --l) {
    input -= entries(x.rows, layers_[l - 1].stride());
    // First, because it reads the activations in their order, from a far cache; then they are in a near one.
    layers_[l].input_gradient(delta, x.rows, parameters + offsets_[l], next, input);
    layers_[l].parameter_gradient(kernels::padded_rows(input, x.rows, layers_[l].inputs()), delta,
                                  gradient + offsets_[l]);
    delta = next;
    std::swap(next, other);
  }
  layers_.front().parameter_gradient(x, delta, gradient);
  if (input_gradient) layers_.front().input_gradient(delta, x.rows, parameters, input_gradient);
}

template <class Real>
void Mlp<Real>::append_layer(const Real* parameters, int layer, std::vector<Real>& weights,
                             std::vector<Real>& biases) const {
  const DenseLayer<Real>& wanted = layers_[size(layer)];
  const Real* const weight = parameters + offsets_[size(layer)];
  for (int j = 0; j < wanted.outputs(); ++j) {
    for (int i = 0; i < wanted.inputs(); ++i)
      weights.push_back(weight[entries(i, wanted.stride()) + size(j)]);
  }
  biases.insert(biases.end(), wanted.bias(weight), wanted.bias(weight) + wanted.outputs());
}

template <class Real>
std::vector<NamedArray<Real>> layer_arrays(const Mlp<Real>& mlp, const Real* parameters,
                                           const std::string& prefix, int networks) {
  std::vector<NamedArray<Real>> arrays;
  for (int layer = 0; layer < mlp.depth(); ++layer) {
    const std::string number = std::to_string(layer + 1);
    NamedArray<Real> weight{
        prefix + "weight_" + number, {mlp.layer_outputs(layer), mlp.layer_inputs(layer)}, {}};
    NamedArray<Real> bias{prefix + "bias_" + number, {mlp.layer_outputs(layer)}, {}};
    for (int network = 0; network < std::max(networks, 1); ++network) {
      mlp.append_layer(parameters + size(network) * mlp.block_size(), layer, weight.values, bias.values);
    }
    if (networks > 0) {
      weight.shape.insert(weight.shape.begin(), networks);
      bias.shape.insert(bias.shape.begin(), networks);
    }
    arrays.push_back(std::move(weight));
    arrays.push_back(std::move(bias));
  }
  return arrays;
}

template class Mlp<float>;
template class Mlp<double>;
template std::vector<NamedArray<float>> layer_arrays(const Mlp<float>&, const float*, const std::string&,
                                                     int);
template std::vector<NamedArray<double>> layer_arrays(const Mlp<double>&, const double*, const std::string&,
                                                      int);

namespace {

int outputs_per_side(int side, int kernel, const Window& window) {
  return (side + 2 * window.padding - kernel) / window.stride + 1;
}

/// Calls visit(patch entry, pixel) for every tap of every window that lies inside the image. The patch entry
/// is the first of the tap's `channels` entries in the patches of one image. Consecutive patches are
/// `patch_stride` entries apart.
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
