#include "sim/model/dense_layer.h"

#include <algorithm>
#include <cmath>

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

}  // namespace moelab
