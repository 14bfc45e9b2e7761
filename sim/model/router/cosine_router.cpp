#include <algorithm>
#include <cmath>

#include "sim/base/kernels/multiply.h"
#include "sim/model/router/routers.h"

namespace moelab {
namespace {

template <class Real>
Real reciprocal(Real value) {
  return value > 0 ? 1 / value : Real(0);
}

template <class Real>
struct CosineScratch final : Scratch {
  explicit CosineScratch(int stride)
      : row_norms(size(stride)), row_factors(size(stride)), pull(size(stride)), norm_pull(size(stride)) {}
  Real inverse_temperature = 1;       // 1 / t
  AlignedVector<Real> row_norms;      // ‖β1_e‖. The padding is zero.
  AlignedVector<Real> row_factors;    // a_e. The padding is zero.
  AlignedVector<Real> pull;           // Σ_i D_ie P_ie c_i
  AlignedVector<Real> norm_pull;      // (Σ_i D_ie P_ie c_i) t a_e² / ‖β1_e‖
  AlignedVector<Real> input_norms;    // ‖x_i‖
  AlignedVector<Real> input_factors;  // c_i
  AlignedVector<Real> products;       // P (n, padded(E))
  AlignedVector<Real> delta;          // ∂L/∂P (n, padded(E))
};

/// The cosine routers: γ_ie = P_ie a_e c_i + β0_e with P = X β1^T. The factors are a_e = 1 / (t (‖β1_e‖ +
/// τ1)) and c_i = 1 / (‖x_i‖ + τ2).
///
/// β1 is stored transposed (d, padded(E)). β0 follows it. So a row's scores are vectors over experts. A
/// learned t is stored as log 1/t in the first entry of one more row.
template <class Real>
class CosineRouter final : public Router<Real> {
 public:
  CosineRouter(const CosineRouterOptions& options, const RouterSetting& setting)
      : CosineRouter(options.init_scale, 0, 0, options.temperature, setting) {}
  CosineRouter(const PerturbedCosineRouterOptions& options, const RouterSetting& setting)
      : CosineRouter(options.init_scale, options.tau1, options.tau2, std::nullopt, setting) {}

  std::size_t parameter_count() const override {
    return entries(input_dim_ + 1, experts_) + (learns_temperature_ ? 1 : 0);
  }
  std::size_t block_size() const override {
    return entries(input_dim_ + (learns_temperature_ ? 2 : 1), stride_);
  }
  std::unique_ptr<Scratch> make_scratch() const override {
    return std::make_unique<CosineScratch<Real>>(stride_);
  }

  void initialize(const Start& start, Real* parameters) const override {
    std::fill(parameters, parameters + block_size(), Real(0));
    draw_columns(start, init_scale_ / std::sqrt(static_cast<double>(input_dim_)), rows(parameters));
    if (learns_temperature_) parameters[scale_place()] = static_cast<Real>(-std::log(temperature_));
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override {
    auto& own = static_cast<CosineScratch<Real>&>(scratch);
    measure_norms(context.x, parameters, own);
    reserve_entries(own.products, entries(context.x.rows, stride_));
    kernels::multiply(context.x, rows(parameters),
                      kernels::padded_rows(own.products.data(), context.x.rows, experts_));
    const Real* const bias = parameters + bias_place();
    for (int i = 0; i < context.x.rows; ++i) {
      const Real* const products = own.products.data() + entries(i, stride_);
      Real* const row = scores + entries(i, stride_);
      const Real factor = own.input_factors[size(i)];
      for (int e = 0; e < stride_; ++e) row[e] = products[e] * own.row_factors[size(e)] * factor + bias[e];
    }
    return {};
  }

  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                const RouterGradients<Real>& gradients) const override {
    auto& own = static_cast<CosineScratch<Real>&>(scratch);
    const int count = context.x.rows;
    // ∂L/∂P and the part of the norms. Let D = ∂L/∂γ. Then ∂L/∂β1_e includes −(Σ_i D_ie P_ie c_i) t a_e² β1_e
    // / ‖β1_e‖.
    reserve_entries(own.delta, entries(count, stride_));
    std::fill(own.pull.begin(), own.pull.end(), Real(0));
    for (int i = 0; i < count; ++i) {
      const std::size_t first = entries(i, stride_);
      const Real factor = own.input_factors[size(i)];
      for (int e = 0; e < stride_; ++e) {
        const Real scaled = gradients.scores[first + size(e)] * factor;
        own.delta[first + size(e)] = scaled * own.row_factors[size(e)];
        own.pull[size(e)] += scaled * own.products[first + size(e)];
      }
    }
    const View<Real> row_gradient = rows(gradients.parameters);
    kernels::multiply(context.x.transposed(),
                      kernels::padded_rows<const Real>(own.delta.data(), count, experts_), row_gradient);
    for (int e = 0; e < experts_; ++e) {
      own.norm_pull[size(e)] = own.pull[size(e)] * own.row_factors[size(e)] * own.row_factors[size(e)] *
                               reciprocal(own.row_norms[size(e)]) / own.inverse_temperature;
    }
    for (int j = 0; j < input_dim_; ++j) {
      Real* const of_feature = row_gradient.row(j);
      const Real* const feature = rows(parameters).row(j);
      for (int e = 0; e < experts_; ++e) of_feature[e] -= own.norm_pull[size(e)] * feature[e];
    }
    kernels::sum_rows(gradients.scores, count, experts_, stride_, gradients.parameters + bias_place());
    if (learns_temperature_) {
      std::fill_n(gradients.parameters + scale_place(), stride_, Real(0));
      gradients.parameters[scale_place()] = kernels::dot(own.pull.data(), own.row_factors.data(), stride_);
    }
    if (gradients.inputs) input_gradients(context.x, parameters, own, gradients.inputs);
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    const Real* const bias = parameters + bias_place();
    std::vector<NamedArray<Real>> all = {
        {"router_direction", {experts_, input_dim_}, values_of(rows(parameters).transposed())},
        {"router_bias", {experts_}, {bias, bias + experts_}}};
    if (learns_temperature_) all.push_back({"router_log_scale", {1}, {parameters[scale_place()]}});
    return all;
  }

 private:
  CosineRouter(double init_scale, double tau1, double tau2, const std::optional<Temperature>& temperature,
               const RouterSetting& setting)
      : init_scale_(init_scale),
        tau1_(static_cast<Real>(tau1)),
        tau2_(static_cast<Real>(tau2)),
        temperature_(temperature.value_or(Temperature{}).start),
        learns_temperature_(temperature && temperature->is_learned),
        input_dim_(setting.input_dim),
        experts_(setting.experts),
        stride_(kernels::padded(setting.experts)) {}

  /// β1^T (d, E) in a parameter block.
  template <class Value>
  View<Value> rows(Value* block) const {
    return {block, input_dim_, experts_, stride_};
  }
  std::size_t bias_place() const { return entries(input_dim_, stride_); }
  std::size_t scale_place() const { return entries(input_dim_ + 1, stride_); }

  /// Computes a_e and c_i of the batch.
  void measure_norms(const View<const Real>& x, const Real* parameters, CosineScratch<Real>& own) const {
    own.inverse_temperature =
        learns_temperature_ ? std::exp(parameters[scale_place()]) : static_cast<Real>(1 / temperature_);
    std::fill(own.row_norms.begin(), own.row_norms.end(), Real(0));
    for (int j = 0; j < input_dim_; ++j) {
      const Real* const feature = rows(parameters).row(j);
      for (int e = 0; e < experts_; ++e) own.row_norms[size(e)] += feature[e] * feature[e];
    }
    for (int e = 0; e < experts_; ++e) {
      own.row_norms[size(e)] = std::sqrt(own.row_norms[size(e)]);
      own.row_factors[size(e)] = own.inverse_temperature * reciprocal(own.row_norms[size(e)] + tau1_);
    }
    reserve_entries(own.input_norms, size(x.rows));
    reserve_entries(own.input_factors, size(x.rows));
    for (int i = 0; i < x.rows; ++i) {
      const Real* const row = x.row(i);
      Real square = 0;
      for (int j = 0; j < input_dim_; ++j) square += row[j] * row[j];
      own.input_norms[size(i)] = std::sqrt(square);
      own.input_factors[size(i)] = reciprocal(own.input_norms[size(i)] + tau2_);
    }
  }

  /// ∂L/∂x_i = Σ_e (∂L/∂P_ie) β1_e − (Σ_e (∂L/∂P_ie) P_ie) c_i x_i / ‖x_i‖.
  void input_gradients(const View<const Real>& x, const Real* parameters, const CosineScratch<Real>& own,
                       Real* inputs) const {
    const View<Real> gradient = kernels::padded_rows(inputs, x.rows, input_dim_);
    kernels::multiply(kernels::padded_rows(own.delta.data(), x.rows, experts_), rows(parameters).transposed(),
                      gradient);
    for (int i = 0; i < x.rows; ++i) {
      const std::size_t first = entries(i, stride_);
      const Real pull = kernels::dot(own.delta.data() + first, own.products.data() + first, stride_);
      const Real factor = pull * own.input_factors[size(i)] * reciprocal(own.input_norms[size(i)]);
      for (int j = 0; j < input_dim_; ++j) gradient.row(i)[j] -= factor * x.row(i)[j];
    }
  }

  double init_scale_;
  Real tau1_;
  Real tau2_;
  double temperature_;  // t, or its start
  bool learns_temperature_;
  int input_dim_;
  int experts_;
  int stride_;
};

template <class Real>
struct ProjectedScratch final : Scratch {
  std::unique_ptr<Scratch> inner;
  AlignedVector<Real> rows, gradient;  // x A and ∂L/∂(x A) (n, padded(m))
};

/// A router on a low-dimensional projection of its inputs (Chi et al. 2022): γ(x) = inner(x A), A (d, m)
/// learned from N(0, 1 / d). Array "router_projection" (m, d), A^T, before the arrays of the inner router.
template <class Real>
class ProjectedRouter final : public Router<Real> {
 public:
  /// `inner` reads rows of m columns and has no state.
  ProjectedRouter(std::unique_ptr<Router<Real>> inner, int input_dim, int projection_dim)
      : inner_(std::move(inner)),
        input_dim_(input_dim),
        projection_dim_(projection_dim),
        stride_(kernels::padded(projection_dim)) {
    MOELAB_EXPECT(inner_->state_arrays().empty());
  }

  std::size_t parameter_count() const override {
    return entries(input_dim_, projection_dim_) + inner_->parameter_count();
  }
  /// [A (d, padded(m)) | inner].
  std::size_t block_size() const override { return projection_size() + inner_->block_size(); }

  void initialize(const Start& start, Real* parameters) const override {
    // Use the stream that no expert uses, as for an MLP router's hidden layers.
    Engine engine = start.seeds.stream(Purpose::router_init, ~std::uint64_t{0});
    std::fill_n(parameters, projection_size(), Real(0));
    draw_matrix(engine, 1 / std::sqrt(static_cast<double>(input_dim_)), projection(parameters));
    inner_->initialize(start, parameters + projection_size());
  }

  std::unique_ptr<Scratch> make_scratch() const override {
    auto scratch = std::make_unique<ProjectedScratch<Real>>();
    scratch->inner = inner_->make_scratch();
    return scratch;
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override {
    auto& own = static_cast<ProjectedScratch<Real>&>(scratch);
    reserve_entries(own.rows, entries(context.x.rows, stride_));
    kernels::multiply(context.x, projection(parameters),
                      kernels::padded_rows(own.rows.data(), context.x.rows, projection_dim_));
    return inner_->forward(of_projected(context, own), parameters + projection_size(), *own.inner, scores);
  }

  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                const RouterGradients<Real>& gradients) const override {
    auto& own = static_cast<ProjectedScratch<Real>&>(scratch);
    const int rows = context.x.rows;
    reserve_entries(own.gradient, entries(rows, stride_));
    RouterGradients<Real> of_inner = gradients;
    of_inner.parameters = gradients.parameters + projection_size();
    of_inner.inputs = own.gradient.data();
    inner_->backward(of_projected(context, own), parameters + projection_size(), *own.inner, of_inner);
    const View<const Real> delta =
        kernels::padded_rows<const Real>(own.gradient.data(), rows, projection_dim_);
    kernels::multiply(context.x.transposed(), delta, projection(gradients.parameters));
    if (!gradients.inputs) return;
    kernels::multiply(delta, projection(parameters).transposed(),
                      kernels::padded_rows(gradients.inputs, rows, input_dim_));
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> all = inner_->arrays(parameters + projection_size());
    all.insert(
        all.begin(),
        {"router_projection", {projection_dim_, input_dim_}, values_of(projection(parameters).transposed())});
    return all;
  }

 private:
  std::size_t projection_size() const { return entries(input_dim_, stride_); }
  /// The projection A (d, m) in a parameter block.
  template <class Value>
  View<Value> projection(Value* block) const {
    return {block, input_dim_, projection_dim_, stride_};
  }
  /// The context of the inner router, which reads x A.
  RouterContext<Real> of_projected(RouterContext<Real> context, const ProjectedScratch<Real>& own) const {
    context.x = kernels::padded_rows(own.rows.data(), context.x.rows, projection_dim_);
    return context;
  }

  std::unique_ptr<Router<Real>> inner_;
  int input_dim_;
  int projection_dim_;
  int stride_;
};

template <class Real>
std::unique_ptr<Router<Real>> make_cosine_router(const AnyOptions& any, const RouterSetting& setting) {
  const auto& options = any.get<CosineRouterOptions>();
  if (!options.projection_dim) return std::make_unique<CosineRouter<Real>>(options, setting);
  RouterSetting projected = setting;
  projected.input_dim = *options.projection_dim;
  return std::make_unique<ProjectedRouter<Real>>(std::make_unique<CosineRouter<Real>>(options, projected),
                                                 setting.input_dim, *options.projection_dim);
}

constexpr const char* kScaleHelp = "rows β1_e start N(0, init_scale² I / d), biases zero";

}  // namespace

void CosineRouterOptions::bind(Fields& fields) {
  fields.add("trainable", trainable, "false freezes the router at its start");
  fields.add("init_scale", init_scale, at_least(0), kScaleHelp);
  fields.add("projection_dim", projection_dim, between(1, 65536),
             "m: the router reads x A, A (d, m) learned (X-MoE; default: x itself)");
  fields.add(
      "temperature", temperature,
      "t > 0, which divides the cosine: a number stays; {\"start\": 0.07, \"learned\": true} is learned from "
      ".07, as in X-MoE (default: t = 1)");
}

void PerturbedCosineRouterOptions::bind(Fields& fields) {
  fields.add("trainable", trainable, "false freezes the router at its start");
  fields.add("init_scale", init_scale, at_least(0), kScaleHelp);
  fields.add("tau1", tau1, positive(), "τ1, added to the norm of a row");
  fields.add("tau2", tau2, positive(), "τ2, added to the norm of an input");
}

RouterKind cosine_router() {
  RouterKind kind = router_kind<CosineRouterOptions, CosineRouter>(
      "cosine", "γ_e(x) = β1_e^T x / (‖β1_e‖ ‖x‖) + β0_e (Chi et al. 2022, Nguyen et al.)");
  kind.make = {make_cosine_router<float>, make_cosine_router<double>};
  kind.starts_at_rows = true;
  return kind;
}

RouterKind perturbed_cosine_router() {
  RouterKind kind = router_kind<PerturbedCosineRouterOptions, CosineRouter>(
      "perturbed_cosine", "γ_e(x) = β1_e^T x / ((‖β1_e‖ + τ1) (‖x‖ + τ2)) + β0_e (Nguyen et al.)");
  kind.starts_at_rows = true;
  return kind;
}

}  // namespace moelab
