#include "sim/model/expert/ridge_bank.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"
#include "sim/model/dense_layer.h"

namespace moelab {
namespace {

template <class Real>
Real power(Real base, int exponent) {
  Real result = 1;
  for (int i = 0; i < exponent; ++i) result *= base;
  return result;
}

/// All experts as one product: columns [j · padded(E), j · padded(E) + E) of W (d, o · padded(E)) hold output
/// j of every expert, so that output j of the mixture is the dot product of a row of gates and a row of
/// φ(X W + b). Inactive pairs have gate zero.
template <class Real>
class RidgeBank final : public ExpertBank<Real> {
 public:
  RidgeBank(const Activation& activation, double init_scale, int input_dim, int output_dim, int experts)
      : activation_(activation),
        init_scale_(init_scale),
        input_dim_(input_dim),
        output_dim_(output_dim),
        experts_(experts),
        slab_(kernels::padded(experts)),
        columns_(slab_ * output_dim),
        layer_(input_dim, columns_, false) {}

  std::size_t parameters_per_expert() const override { return size(input_dim_ + 1) * size(output_dim_); }
  std::size_t block_size() const override { return layer_.block_size(); }

  void initialize(const Seeds& seeds, Real* parameters) const override {
    std::fill(parameters, parameters + block_size(), Real(0));
    const double deviation = init_scale_ / std::sqrt(static_cast<double>(input_dim_));
    for (int e = 0; e < experts_; ++e) {
      Engine engine = seeds.stream(Purpose::expert_init, static_cast<std::uint64_t>(e));
      for (int i = 0; i < input_dim_; ++i) {
        for (int j = 0; j < output_dim_; ++j) {
          parameters[place(i, j, e)] = static_cast<Real>(deviation * draw_normal(engine));
        }
      }
    }
  }

  void forward(const Real* x, const Routing<Real>& routing, const Real* parameters, Real* outputs,
               bool /*keep*/) override {
    reserve_entries(values_, size(routing.rows) * size(columns_));
    layer_.forward(x, input_dim_, routing.rows, parameters, values_.data());
    activate(routing.rows);
    const int stride = kernels::padded(output_dim_);
    std::fill_n(outputs, size(routing.rows) * size(stride), Real(0));
    for (int j = 0; j < output_dim_; ++j) {
      kernels::dot_rows({routing.gates, slab_}, {value(0, j), columns_}, routing.rows, slab_,
                        {outputs + j, stride});
    }
  }

  void backward(const Real* x, const Routing<Real>& routing, const Real* parameters,
                const Real* output_gradient, Real* gradient, Real* gate_gradient, Real* input_gradient,
                const Real* pair_gradient) override {
    reserve_entries(delta_, size(routing.rows) * size(columns_));
    const int stride = kernels::padded(output_dim_);
    for (int j = 0; j < output_dim_; ++j) {
      const kernels::RowsOf<const Real> upstream = {output_gradient + j, stride};
      kernels::scale_rows(upstream, {routing.gates, slab_}, routing.rows, slab_,
                          {delta_.data() + size(j) * size(slab_), columns_});
      if (j == 0)
        kernels::scale_rows(upstream, {value(0, 0), columns_}, routing.rows, slab_, {gate_gradient, slab_});
    }
    for (int row = 0; row < routing.rows && output_dim_ > 1; ++row) {
      for (int j = 1; j < output_dim_; ++j) {
        kernels::add_scaled(output_gradient[size(row) * size(stride) + size(j)], value(row, j),
                            gate_gradient + size(row) * size(slab_), slab_);
      }
    }
    if (pair_gradient) {
      for_each_pair(routing, [&](std::ptrdiff_t row, std::ptrdiff_t e) {
        for (int j = 0; j < output_dim_; ++j) {
          delta_[size(row * columns_ + j * slab_ + e)] += pair_gradient[(row * experts_ + e) * stride + j];
        }
      });
    }
    scale_by_slopes(routing.rows);
    layer_.parameter_gradient(x, input_dim_, routing.rows, delta_.data(), gradient);
    if (input_gradient) layer_.input_gradient(delta_.data(), routing.rows, parameters, input_gradient);
  }

  void pair_outputs(const Routing<Real>& routing, const Real* /*parameters*/, Real* outputs) const override {
    const int stride = kernels::padded(output_dim_);
    for_each_pair(routing, [&](std::ptrdiff_t row, std::ptrdiff_t e) {
      Real* const place = outputs + (row * experts_ + e) * stride;
      std::fill_n(place, stride, Real(0));
      for (int j = 0; j < output_dim_; ++j) place[j] = values_[size(row * columns_ + j * slab_ + e)];
    });
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    NamedArray<Real> weight{"expert_weight_1", {experts_, output_dim_, input_dim_}, {}};
    NamedArray<Real> bias{"expert_bias_1", {experts_, output_dim_}, {}};
    for (int e = 0; e < experts_; ++e) {
      for (int j = 0; j < output_dim_; ++j) {
        for (int i = 0; i < input_dim_; ++i) weight.values.push_back(parameters[place(i, j, e)]);
        bias.values.push_back(parameters[place(input_dim_, j, e)]);
      }
    }
    return {std::move(weight), std::move(bias)};
  }

 private:
  /// The entry of W (row i of A_e^T, output j, expert e); i = d is the bias.
  std::size_t place(int i, int j, int e) const {
    return size(i) * size(columns_) + size(j) * size(slab_) + size(e);
  }
  const Real* value(int row, int j) const {
    return values_.data() + size(row) * size(columns_) + size(j) * size(slab_);
  }

  /// values_ ← φ(values_), and slopes_ ← φ′ at the former values.
  void activate(int rows) {
    if (activation_.kind == Activation::Kind::identity) return;
    const std::size_t count = size(rows) * size(columns_);
    reserve_entries(slopes_, count);
    for (std::size_t i = 0; i < count; ++i) {
      const Real z = values_[i];
      if (activation_.kind == Activation::Kind::relu) {
        slopes_[i] = z > 0 ? Real(1) : Real(0);
        values_[i] = z > 0 ? z : Real(0);
      } else {
        const Real below = power(z, activation_.power - 1);
        slopes_[i] = static_cast<Real>(activation_.power) * below;
        values_[i] = below * z;
      }
    }
  }

  /// delta_ ← ∂L/∂(X W + b).
  void scale_by_slopes(int rows) {
    if (activation_.kind == Activation::Kind::identity) return;
    for (std::size_t i = 0; i < size(rows) * size(columns_); ++i) delta_[i] *= slopes_[i];
  }

  Activation activation_;
  double init_scale_;
  int input_dim_;
  int output_dim_;
  int experts_;
  int slab_;                    // padded(E)
  int columns_;                 // o · padded(E)
  DenseLayer<Real> layer_;      // of all experts
  AlignedVector<Real> values_;  // φ(X W + b)
  AlignedVector<Real> slopes_;  // φ′(X W + b); unused where φ is the identity
  AlignedVector<Real> delta_;
};

}  // namespace

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_ridge_bank(const Activation& activation, double init_scale,
                                                  int input_dim, int output_dim, int experts) {
  return std::make_unique<RidgeBank<Real>>(activation, init_scale, input_dim, output_dim, experts);
}

template std::unique_ptr<ExpertBank<float>> make_ridge_bank(const Activation&, double, int, int, int);
template std::unique_ptr<ExpertBank<double>> make_ridge_bank(const Activation&, double, int, int, int);

}  // namespace moelab
