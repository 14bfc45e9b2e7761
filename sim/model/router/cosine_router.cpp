#include "sim/model/router/cosine_router.h"

#include <algorithm>
#include <cmath>

#include "sim/base/aligned.h"
#include "sim/base/kernels/kernels.h"
#include "sim/model/router/projected_router.h"

namespace moelab {
namespace {

template <class Real>
Real reciprocal(Real value) {
  return value > 0 ? 1 / value : Real(0);
}

/// With P = X β1^T, a_e = 1 / (t (‖β1_e‖ + τ1)) and c_i = 1 / (‖x_i‖ + τ2): γ_ie = P_ie a_e c_i + β0_e. β1 is
/// kept transposed, (d, padded(E)), and β0 follows it, so that scores of a row are vectors over experts. A
/// learned t is kept as log 1/t, the first entry of one more row.
template <class Real>
class CosineRouter final : public Router<Real> {
 public:
  CosineRouter(const Json& spec, int input_dim, int experts)
      : init_scale_(spec.at("init_scale").get<double>()),
        tau1_(static_cast<Real>(spec.value("tau1", 0.0))),
        tau2_(static_cast<Real>(spec.value("tau2", 0.0))),
        temperature_(spec.value("temperature", 1.0)),
        learns_temperature_(spec.contains("temperature")),
        input_dim_(input_dim),
        experts_(experts),
        stride_(kernels::padded(experts)),
        row_norms_(size(stride_)),
        row_factors_(size(stride_)),
        pull_(size(stride_)) {}

  std::size_t parameter_count() const override {
    return size(input_dim_ + 1) * size(experts_) + (learns_temperature_ ? 1 : 0);
  }
  std::size_t block_size() const override {
    return size(input_dim_ + (learns_temperature_ ? 2 : 1)) * size(stride_);
  }

  void initialize(const Seeds& seeds, Real* parameters) const override {
    std::fill(parameters, parameters + block_size(), Real(0));
    const double deviation = init_scale_ / std::sqrt(static_cast<double>(input_dim_));
    for (int e = 0; e < experts_; ++e) {
      Engine engine = seeds.stream(Purpose::router_init, static_cast<std::uint64_t>(e));
      for (int j = 0; j < input_dim_; ++j) {
        parameters[place(j, e)] = static_cast<Real>(deviation * draw_normal(engine));
      }
    }
    if (learns_temperature_) parameters[scale_place()] = static_cast<Real>(-std::log(temperature_));
  }

  void forward(const RouterContext<Real>& context, const Real* parameters, Real* scores) override {
    measure_norms(context, parameters);
    reserve_entries(products_, size(context.rows) * size(stride_));
    kernels::Product<Real> product;
    product.m = context.rows;
    product.n = experts_;
    product.k = input_dim_;
    product.a = context.x;
    product.a_row = context.stride;
    product.b = parameters;
    product.b_row = stride_;
    product.c = products_.data();
    product.c_row = stride_;
    kernels::multiply(product);
    const Real* const bias = parameters + place(input_dim_, 0);
    for (int i = 0; i < context.rows; ++i) {
      const Real* const products = products_.data() + size(i) * size(stride_);
      Real* const row = scores + size(i) * size(stride_);
      const Real factor = input_factors_[size(i)];
      for (int e = 0; e < stride_; ++e) row[e] = products[e] * row_factors_[size(e)] * factor + bias[e];
    }
  }

  void backward(const RouterContext<Real>& context, const Real* parameters,
                const RouterGradients<Real>& gradients) override {
    // ∂L/∂P, and what pulls the norms: ∂L/∂β1_e holds −(Σ_i D_ie P_ie c_i) t a_e² β1_e / ‖β1_e‖, D = ∂L/∂γ.
    reserve_entries(delta_, size(context.rows) * size(stride_));
    std::fill(pull_.begin(), pull_.end(), Real(0));
    for (int i = 0; i < context.rows; ++i) {
      const std::size_t first = size(i) * size(stride_);
      const Real factor = input_factors_[size(i)];
      for (int e = 0; e < stride_; ++e) {
        const Real scaled = gradients.scores[first + size(e)] * factor;
        delta_[first + size(e)] = scaled * row_factors_[size(e)];
        pull_[size(e)] += scaled * products_[first + size(e)];
      }
    }
    kernels::Product<Real> product;
    product.m = input_dim_;
    product.n = experts_;
    product.k = context.rows;
    product.a = context.x;
    product.a_row = 1;
    product.a_column = context.stride;
    product.b = delta_.data();
    product.b_row = stride_;
    product.c = gradients.parameters;
    product.c_row = stride_;
    kernels::multiply(product);
    for (int e = 0; e < experts_; ++e) {
      const Real factor = pull_[size(e)] * row_factors_[size(e)] * row_factors_[size(e)] *
                          reciprocal(row_norms_[size(e)]) / inverse_temperature_;
      for (int j = 0; j < input_dim_; ++j)
        gradients.parameters[place(j, e)] -= factor * parameters[place(j, e)];
    }
    kernels::sum_rows(gradients.scores, context.rows, experts_, stride_,
                      gradients.parameters + place(input_dim_, 0));
    if (learns_temperature_) {
      std::fill_n(gradients.parameters + scale_place(), stride_, Real(0));
      gradients.parameters[scale_place()] = kernels::dot(pull_.data(), row_factors_.data(), stride_);
    }
    if (gradients.inputs) input_gradients(context, parameters, gradients.inputs);
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    NamedArray<Real> direction{"router_direction", {experts_, input_dim_}, {}};
    for (int e = 0; e < experts_; ++e) {
      for (int j = 0; j < input_dim_; ++j) direction.values.push_back(parameters[place(j, e)]);
    }
    const Real* const bias = parameters + place(input_dim_, 0);
    NamedArray<Real> biases{"router_bias", {experts_}, {bias, bias + experts_}};
    if (!learns_temperature_) return {std::move(direction), std::move(biases)};
    return {std::move(direction), std::move(biases), {"router_log_scale", {1}, {parameters[scale_place()]}}};
  }

 private:
  static std::size_t size(int value) { return static_cast<std::size_t>(value); }
  /// The entry of row j of β1^T at expert e; row d holds β0.
  std::size_t place(int j, int e) const { return size(j) * size(stride_) + size(e); }
  std::size_t scale_place() const { return place(input_dim_ + 1, 0); }

  /// a_e, and c_i of the batch.
  void measure_norms(const RouterContext<Real>& context, const Real* parameters) {
    inverse_temperature_ = learns_temperature_ ? std::exp(parameters[scale_place()]) : Real(1);
    for (int e = 0; e < experts_; ++e) {
      Real square = 0;
      for (int j = 0; j < input_dim_; ++j) square += parameters[place(j, e)] * parameters[place(j, e)];
      row_norms_[size(e)] = std::sqrt(square);
      row_factors_[size(e)] = inverse_temperature_ * reciprocal(row_norms_[size(e)] + tau1_);
    }
    reserve_entries(input_norms_, size(context.rows));
    reserve_entries(input_factors_, size(context.rows));
    for (int i = 0; i < context.rows; ++i) {
      const Real* const x = context.x + i * context.stride;
      Real square = 0;
      for (int j = 0; j < input_dim_; ++j) square += x[j] * x[j];
      input_norms_[size(i)] = std::sqrt(square);
      input_factors_[size(i)] = reciprocal(input_norms_[size(i)] + tau2_);
    }
  }

  /// ∂L/∂x_i = Σ_e (∂L/∂P_ie) β1_e − (Σ_e (∂L/∂P_ie) P_ie) c_i x_i / ‖x_i‖.
  void input_gradients(const RouterContext<Real>& context, const Real* parameters, Real* inputs) {
    kernels::Product<Real> back;
    back.m = context.rows;
    back.n = input_dim_;
    back.k = experts_;
    back.a = delta_.data();
    back.a_row = stride_;
    back.b = parameters;
    back.b_row = stride_;
    back.b_transposed = true;
    back.c = inputs;
    back.c_row = kernels::padded(input_dim_);
    kernels::multiply(back);
    for (int i = 0; i < context.rows; ++i) {
      const std::size_t first = size(i) * size(stride_);
      const Real pull = kernels::dot(delta_.data() + first, products_.data() + first, stride_);
      const Real factor = pull * input_factors_[size(i)] * reciprocal(input_norms_[size(i)]);
      Real* const row = inputs + size(i) * size(kernels::padded(input_dim_));
      for (int j = 0; j < input_dim_; ++j) row[j] -= factor * context.x[i * context.stride + j];
    }
  }

  double init_scale_;
  Real tau1_;
  Real tau2_;
  double temperature_;  // where t starts
  bool learns_temperature_;
  Real inverse_temperature_ = 1;  // 1 / t
  int input_dim_;
  int experts_;
  int stride_;
  AlignedVector<Real> row_norms_;      // ‖β1_e‖, zero at the padding
  AlignedVector<Real> row_factors_;    // a_e, zero at the padding
  AlignedVector<Real> pull_;           // Σ_i D_ie P_ie c_i
  AlignedVector<Real> input_norms_;    // ‖x_i‖
  AlignedVector<Real> input_factors_;  // c_i
  AlignedVector<Real> products_;       // P (n, padded(E))
  AlignedVector<Real> delta_;          // ∂L/∂P (n, padded(E))
};

std::vector<Field> fields() {
  return {
      {"trainable", Shape::boolean(), "false freezes the router at its start", true},
      {"init_scale", Shape::real_at_least(0), "rows β1_e start N(0, init_scale² I / d), biases zero", 1.0}};
}

}  // namespace

Kind cosine_router_kind() {
  Kind kind = {"cosine", "γ_e(x) = β1_e^T x / (‖β1_e‖ ‖x‖) + β0_e (Chi et al. 2022, Nguyen et al.)",
               fields()};
  kind.fields.push_back({"projection_dim", Shape::count(1, 65536),
                         "m: the router reads x A, A (d, m) learned (X-MoE; default: x itself)", kOptional});
  kind.fields.push_back({"temperature", Shape::positive_real(),
                         "start of a learned t that divides the cosine (X-MoE; default: t = 1)", kOptional});
  return kind;
}

Kind perturbed_cosine_router_kind() {
  Kind kind = {"perturbed_cosine", "γ_e(x) = β1_e^T x / ((‖β1_e‖ + τ1) (‖x‖ + τ2)) + β0_e (Nguyen et al.)",
               fields()};
  kind.fields.push_back({"tau1", Shape::positive_real(), "τ1, added to the norm of a row", 0.1});
  kind.fields.push_back({"tau2", Shape::positive_real(), "τ2, added to the norm of an input", 0.1});
  return kind;
}

template <class Real>
std::unique_ptr<Router<Real>> make_cosine_router(const Json& spec, const Layout& layout, int experts) {
  const int input_dim = layout.router_dim();
  if (!spec.contains("projection_dim")) return std::make_unique<CosineRouter<Real>>(spec, input_dim, experts);
  const int projection_dim = spec.at("projection_dim");
  return std::make_unique<ProjectedRouter<Real>>(
      std::make_unique<CosineRouter<Real>>(spec, projection_dim, experts), input_dim, projection_dim);
}

template std::unique_ptr<Router<float>> make_cosine_router(const Json&, const Layout&, int);
template std::unique_ptr<Router<double>> make_cosine_router(const Json&, const Layout&, int);

}  // namespace moelab
