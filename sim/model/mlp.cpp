#include "sim/model/mlp.h"

#include <algorithm>

#include "sim/base/kernels/multiply.h"

namespace moelab {

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
    layers_[l].parameter_gradient(kernels::padded_rows(input, x.rows, layers_[l].inputs()), delta,
                                  gradient + offsets_[l]);
    layers_[l].input_gradient(delta, x.rows, parameters + offsets_[l], next, input);
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

}  // namespace moelab
