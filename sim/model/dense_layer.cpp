#include "sim/model/dense_layer.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"

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
void DenseLayer<Real>::forward(const Real* x, std::ptrdiff_t x_stride, int rows, const Real* parameters,
                               Real* h) const {
  kernels::Product<Real> product;
  product.m = rows;
  product.n = outputs_;
  product.k = inputs_;
  product.a = x;
  product.a_row = x_stride;
  product.b = parameters;
  product.b_row = stride_;
  product.c = h;
  product.c_row = stride_;
  product.start = kernels::Start::bias;
  product.bias = bias(parameters);
  product.finish = relu_ ? kernels::Finish::relu : kernels::Finish::none;
  kernels::multiply(product);
}

template <class Real>
void DenseLayer<Real>::parameter_gradient(const Real* x, std::ptrdiff_t x_stride, int rows, const Real* delta,
                                          Real* gradient) const {
  kernels::Product<Real> product;
  product.m = inputs_;
  product.n = outputs_;
  product.k = rows;
  product.a = x;
  product.a_row = 1;
  product.a_column = x_stride;
  product.b = delta;
  product.b_row = stride_;
  product.c = gradient;
  product.c_row = stride_;
  kernels::multiply(product);
  kernels::sum_rows(delta, rows, outputs_, stride_, gradient + entries(inputs_, stride_));
}

template <class Real>
void DenseLayer<Real>::input_gradient(const Real* delta, int rows, const Real* parameters, Real* gradient,
                                      const Real* relu_output) const {
  kernels::Product<Real> product;
  product.m = rows;
  product.n = inputs_;
  product.k = outputs_;
  product.a = delta;
  product.a_row = stride_;
  product.b = parameters;
  product.b_row = stride_;
  product.b_transposed = true;
  product.c = gradient;
  product.c_row = kernels::padded(inputs_);
  product.finish = relu_output ? kernels::Finish::relu_mask : kernels::Finish::none;
  product.mask = relu_output;
  kernels::multiply(product);
}

template class DenseLayer<float>;
template class DenseLayer<double>;

}  // namespace moelab
