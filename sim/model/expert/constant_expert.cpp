#include "sim/model/expert/constant_expert.h"

#include <algorithm>

#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

/// U is (E, padded(o)), and the whole bank is one product: f = gates · U. Gates of inactive pairs are zero,
/// so the list of active pairs is not needed; a product over all E is cheaper than gathering rows of width o.
template <class Real>
class ConstantBank final : public ExpertBank<Real> {
 public:
  ConstantBank(double init_scale, int input_dim, int output_dim, int experts)
      : init_scale_(init_scale),
        input_dim_(input_dim),
        output_dim_(output_dim),
        experts_(experts),
        stride_(kernels::padded(output_dim)) {}

  std::size_t parameters_per_expert() const override { return size(output_dim_); }
  std::size_t block_size() const override { return entries(experts_, stride_); }

  void initialize(const Seeds& seeds, Real* parameters) const override {
    std::fill(parameters, parameters + block_size(), Real(0));
    for (int e = 0; e < experts_; ++e) {
      Engine engine = seeds.stream(Purpose::expert_init, static_cast<std::uint64_t>(e));
      for (int j = 0; j < output_dim_; ++j) {
        parameters[entries(e, stride_) + size(j)] = static_cast<Real>(init_scale_ * draw_normal(engine));
      }
    }
  }

  void forward(const Real* /*x*/, const Routing<Real>& routing, const Real* parameters, Real* outputs,
               bool /*keep*/) override {
    kernels::Product<Real> product;
    product.m = routing.rows;
    product.n = output_dim_;
    product.k = experts_;
    product.a = routing.gates;
    product.a_row = routing.stride;
    product.b = parameters;
    product.b_row = stride_;
    product.c = outputs;
    product.c_row = stride_;
    kernels::multiply(product);
  }

  void backward(const Real* /*x*/, const Routing<Real>& routing, const Real* parameters,
                const Real* output_gradient, Real* gradient, Real* gate_gradient, Real* input_gradient,
                const Real* pair_gradient) override {
    kernels::Product<Real> weights;
    weights.m = experts_;
    weights.n = output_dim_;
    weights.k = routing.rows;
    weights.a = routing.gates;
    weights.a_row = 1;
    weights.a_column = routing.stride;
    weights.b = output_gradient;
    weights.b_row = stride_;
    weights.c = gradient;
    weights.c_row = stride_;
    kernels::multiply(weights);
    if (pair_gradient) {
      for_each_pair(routing, [&](std::ptrdiff_t row, std::ptrdiff_t e) {
        kernels::add_scaled(Real(1), pair_gradient + (row * experts_ + e) * stride_, gradient + e * stride_,
                            stride_);
      });
    }

    kernels::Product<Real> gates;
    gates.m = routing.rows;
    gates.n = experts_;
    gates.k = output_dim_;
    gates.a = output_gradient;
    gates.a_row = stride_;
    gates.b = parameters;
    gates.b_row = stride_;
    gates.b_transposed = true;
    gates.c = gate_gradient;
    gates.c_row = routing.stride;
    kernels::multiply(gates);
    if (input_gradient) {
      std::fill_n(input_gradient, static_cast<std::ptrdiff_t>(routing.rows) * kernels::padded(input_dim_),
                  Real(0));
    }
  }

  void pair_outputs(const Routing<Real>& routing, const Real* parameters, Real* outputs) const override {
    for_each_pair(routing, [&](std::ptrdiff_t row, std::ptrdiff_t e) {
      std::copy_n(parameters + e * stride_, stride_, outputs + (row * experts_ + e) * stride_);
    });
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    NamedArray<Real> values{"expert_output", {experts_, output_dim_}, {}};
    for (int e = 0; e < experts_; ++e) {
      const Real* row = parameters + entries(e, stride_);
      values.values.insert(values.values.end(), row, row + output_dim_);
    }
    return {std::move(values)};
  }

 private:
  double init_scale_;
  int input_dim_;
  int output_dim_;
  int experts_;
  int stride_;
};

}  // namespace

Kind constant_expert_kind() {
  return {"constant",
          "expert_e(x) = u_e (Dikkala et al. 2023, 3.1)",
          {{"init_scale", Shape::real_at_least(0), "u_e starts N(0, init_scale² I)", 1.0}}};
}

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_constant_bank(const Json& spec, int input_dim, int output_dim,
                                                     int experts) {
  return std::make_unique<ConstantBank<Real>>(spec.at("init_scale").get<double>(), input_dim, output_dim,
                                              experts);
}

template std::unique_ptr<ExpertBank<float>> make_constant_bank(const Json&, int, int, int);
template std::unique_ptr<ExpertBank<double>> make_constant_bank(const Json&, int, int, int);

}  // namespace moelab
