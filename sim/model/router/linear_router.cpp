#include "sim/model/router/linear_router.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

/// W is kept transposed, (d, padded(E)), so that scores of a row are vectors over experts; biases follow it.
template <class Real>
class LinearRouter final : public Router<Real> {
 public:
  LinearRouter(double init_scale, bool has_bias, int input_dim, int experts)
      : init_scale_(init_scale),
        has_bias_(has_bias),
        input_dim_(input_dim),
        experts_(experts),
        stride_(kernels::padded(experts)) {}

  std::size_t parameter_count() const override {
    return static_cast<std::size_t>(block_rows()) * static_cast<std::size_t>(experts_);
  }
  std::size_t block_size() const override {
    return static_cast<std::size_t>(block_rows()) * static_cast<std::size_t>(stride_);
  }

  void initialize(const Seeds& seeds, Real* parameters) const override {
    std::fill(parameters, parameters + block_size(), Real(0));
    const double deviation = init_scale_ / std::sqrt(static_cast<double>(input_dim_));
    for (int e = 0; e < experts_; ++e) {
      Engine engine = seeds.stream(Purpose::router_init, static_cast<std::uint64_t>(e));
      for (int j = 0; j < input_dim_; ++j) {
        parameters[static_cast<std::ptrdiff_t>(j) * stride_ + e] =
            static_cast<Real>(deviation * draw_normal(engine));
      }
    }
  }

  void start_at(const Matrix& rows, Real* parameters) const override {
    for (int e = 0; e < experts_; ++e) {
      for (int j = 0; j < input_dim_; ++j) {
        parameters[static_cast<std::ptrdiff_t>(j) * stride_ + e] =
            static_cast<Real>(init_scale_ * rows(e, j));
      }
    }
  }

  void forward(const RouterContext<Real>& context, const Real* parameters, Real* scores) override {
    kernels::Product<Real> product;
    product.m = context.rows;
    product.n = experts_;
    product.k = input_dim_;
    product.a = context.x;
    product.a_row = context.stride;
    product.b = parameters;
    product.b_row = stride_;
    product.c = scores;
    product.c_row = stride_;
    if (has_bias_) {
      product.start = kernels::Start::bias;
      product.bias = parameters + bias_place();
    }
    kernels::multiply(product);
  }

  void backward(const RouterContext<Real>& context, const Real* parameters,
                const RouterGradients<Real>& gradients) override {
    kernels::Product<Real> product;
    product.m = input_dim_;
    product.n = experts_;
    product.k = context.rows;
    product.a = context.x;
    product.a_row = 1;
    product.a_column = context.stride;
    product.b = gradients.scores;
    product.b_row = stride_;
    product.c = gradients.parameters;
    product.c_row = stride_;
    kernels::multiply(product);
    if (has_bias_) {
      kernels::sum_rows(gradients.scores, context.rows, experts_, stride_,
                        gradients.parameters + bias_place());
    }
    if (!gradients.inputs) return;
    kernels::Product<Real> back;
    back.m = context.rows;
    back.n = input_dim_;
    back.k = experts_;
    back.a = gradients.scores;
    back.a_row = stride_;
    back.b = parameters;
    back.b_row = stride_;
    back.b_transposed = true;
    back.c = gradients.inputs;
    back.c_row = kernels::padded(input_dim_);
    kernels::multiply(back);
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    NamedArray<Real> weight{"router_weight", {experts_, input_dim_}, {}};
    weight.values.reserve(parameter_count());
    for (int e = 0; e < experts_; ++e) {
      for (int j = 0; j < input_dim_; ++j) {
        weight.values.push_back(parameters[static_cast<std::ptrdiff_t>(j) * stride_ + e]);
      }
    }
    if (!has_bias_) return {std::move(weight)};
    const Real* const bias = parameters + bias_place();
    return {std::move(weight), {"router_bias", {experts_}, {bias, bias + experts_}}};
  }

 private:
  int block_rows() const { return input_dim_ + (has_bias_ ? 1 : 0); }
  std::ptrdiff_t bias_place() const { return static_cast<std::ptrdiff_t>(input_dim_) * stride_; }

  double init_scale_;
  bool has_bias_;
  int input_dim_;
  int experts_;
  int stride_;
};

}  // namespace

Kind linear_router_kind() {
  return {
      "linear",
      "γ_e(x) = w_e^T x (Dikkala et al. 2023)",
      {{"trainable", Shape::boolean(), "false freezes the router at its start", true},
       {"init", Shape::choice({"normal", "train_samples"}),
        "rows start N(0, init_scale² I / d), or at init_scale times the first E training samples", "normal"},
       {"init_scale", Shape::real_at_least(0), "scale of the start", 1.0},
       {"bias", Shape::boolean(), "adds b_e, started at zero (default false)", kOptional}}};
}

template <class Real>
std::unique_ptr<Router<Real>> make_linear_router(const Json& spec, const Layout& layout, int experts) {
  return std::make_unique<LinearRouter<Real>>(spec.at("init_scale").get<double>(), spec.value("bias", false),
                                              layout.router_dim(), experts);
}

template std::unique_ptr<Router<float>> make_linear_router(const Json&, const Layout&, int);
template std::unique_ptr<Router<double>> make_linear_router(const Json&, const Layout&, int);

}  // namespace moelab
