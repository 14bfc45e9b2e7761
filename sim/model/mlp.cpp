#include "sim/model/mlp.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

std::size_t size(int value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

template <class Real>
Mlp<Real>::Mlp(std::vector<int> widths) : widths_(std::move(widths)) {
  for (int layer = 0; layer < depth(); ++layer) {
    const int stride = kernels::padded(layer_outputs(layer));
    offsets_.push_back(block_size_);
    block_size_ += (size(layer_inputs(layer)) + 1) * size(stride);
    activation_width_ += size(stride);
    widest_ = std::max({widest_, stride, kernels::padded(layer_inputs(layer))});
  }
}

template <class Real>
int Mlp<Real>::output_stride() const {
  return kernels::padded(widths_.back());
}

template <class Real>
std::size_t Mlp<Real>::parameter_count() const {
  std::size_t count = 0;
  for (int layer = 0; layer < depth(); ++layer) {
    count += (size(layer_inputs(layer)) + 1) * size(layer_outputs(layer));
  }
  return count;
}

template <class Real>
std::size_t Mlp<Real>::scratch_size(int rows) const {
  return 2 * size(rows) * size(widest_);
}

template <class Real>
void Mlp<Real>::initialize(Engine& engine, double scale, Real* parameters) const {
  std::fill(parameters, parameters + block_size_, Real(0));
  for (int layer = 0; layer < depth(); ++layer) {
    const int stride = kernels::padded(layer_outputs(layer));
    const double gain = layer + 1 < depth() ? 2.0 : 1.0;
    const double deviation = scale * std::sqrt(gain / layer_inputs(layer));
    Real* weight = parameters + offsets_[size(layer)];
    for (int i = 0; i < layer_inputs(layer); ++i) {
      for (int j = 0; j < layer_outputs(layer); ++j) {
        weight[size(i) * size(stride) + size(j)] = static_cast<Real>(deviation * draw_normal(engine));
      }
    }
  }
}

template <class Real>
const Real* Mlp<Real>::forward(const Real* x, std::ptrdiff_t x_stride, int rows, const Real* parameters,
                               Real* activations) const {
  const Real* input = x;
  std::ptrdiff_t input_stride = x_stride;
  Real* output = activations;
  for (int layer = 0; layer < depth(); ++layer) {
    const int stride = kernels::padded(layer_outputs(layer));
    const Real* weight = parameters + offsets_[size(layer)];
    kernels::Product<Real> product;
    product.m = rows;
    product.n = layer_outputs(layer);
    product.k = layer_inputs(layer);
    product.a = input;
    product.a_row = input_stride;
    product.b = weight;
    product.b_row = stride;
    product.c = output;
    product.c_row = stride;
    product.start = kernels::Start::bias;
    product.bias = weight + size(product.k) * size(stride);
    product.finish = layer + 1 < depth() ? kernels::Finish::relu : kernels::Finish::none;
    kernels::multiply(product);
    input = output;
    input_stride = stride;
    output += size(rows) * size(stride);
  }
  return input;
}

template <class Real>
void Mlp<Real>::backward(const Real* x, std::ptrdiff_t x_stride, int rows, const Real* parameters,
                         const Real* activations, const Real* output_gradient, Real* gradient, Real* scratch,
                         Real* input_gradient) const {
  const Real* delta = output_gradient;  // ∂L/∂(pre-activation of the current layer)
  Real* next = scratch;
  Real* other = scratch + size(rows) * size(widest_);
  const Real* layer_output = activations + activation_size(rows);
  for (int layer = depth() - 1; layer >= 0; --layer) {
    const int stride = kernels::padded(layer_outputs(layer));
    layer_output -= size(rows) * size(stride);
    const bool first = layer == 0;
    const int input_stride = first ? 0 : kernels::padded(layer_inputs(layer));
    const Real* input = first ? x : layer_output - size(rows) * size(input_stride);

    Real* weight_gradient = gradient + offsets_[size(layer)];
    kernels::Product<Real> product;
    product.m = layer_inputs(layer);
    product.n = layer_outputs(layer);
    product.k = rows;
    product.a = input;
    product.a_row = 1;
    product.a_column = first ? x_stride : input_stride;
    product.b = delta;
    product.b_row = stride;
    product.c = weight_gradient;
    product.c_row = stride;
    kernels::multiply(product);
    kernels::sum_rows(delta, rows, layer_outputs(layer), stride,
                      weight_gradient + size(layer_inputs(layer)) * size(stride));

    if (first && !input_gradient) break;
    kernels::Product<Real> back;
    back.m = rows;
    back.n = layer_inputs(layer);
    back.k = layer_outputs(layer);
    back.a = delta;
    back.a_row = stride;
    back.b = parameters + offsets_[size(layer)];
    back.b_row = stride;
    back.b_transposed = true;
    back.c = first ? input_gradient : next;
    back.c_row = kernels::padded(layer_inputs(layer));
    back.finish = first ? kernels::Finish::none : kernels::Finish::relu_mask;
    back.mask = input;
    kernels::multiply(back);
    delta = next;
    std::swap(next, other);
  }
}

template <class Real>
void Mlp<Real>::append_layer(const Real* parameters, int layer, std::vector<Real>& weights,
                             std::vector<Real>& biases) const {
  const std::size_t stride = size(kernels::padded(layer_outputs(layer)));
  const Real* weight = parameters + offsets_[size(layer)];
  for (int j = 0; j < layer_outputs(layer); ++j) {
    for (int i = 0; i < layer_inputs(layer); ++i) weights.push_back(weight[size(i) * stride + size(j)]);
    biases.push_back(weight[size(layer_inputs(layer)) * stride + size(j)]);
  }
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

}  // namespace moelab
