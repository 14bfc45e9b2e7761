#include "sim/model/router/projected_router.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/multiply.h"
#include "sim/model/layers.h"
#include "sim/model/router/routers.h"

namespace moelab {
namespace {

template <class Real>
struct ProjectedScratch final : Scratch {
  std::unique_ptr<Scratch> inner;
  AlignedVector<Real> rows, gradient;  // x A and ∂L/∂(x A) (n, padded(m))
};

/// The context of the inner router.
template <class Real>
RouterContext<Real> with_rows(RouterContext<Real> context, const View<const Real>& rows) {
  context.x = rows;
  return context;
}

}  // namespace

template <class Real>
ProjectedRouter<Real>::ProjectedRouter(std::unique_ptr<Router<Real>> inner, int input_dim, int projection_dim)
    : inner_(std::move(inner)),
      input_dim_(input_dim),
      projection_dim_(projection_dim),
      stride_(kernels::padded(projection_dim)) {
  MOELAB_EXPECT(inner_->state_arrays().empty());
}

template <class Real>
std::size_t ProjectedRouter<Real>::projection_size() const {
  return entries(input_dim_, stride_);
}

template <class Real>
std::size_t ProjectedRouter<Real>::parameter_count() const {
  return entries(input_dim_, projection_dim_) + inner_->parameter_count();
}

template <class Real>
void ProjectedRouter<Real>::initialize(const Start& start, Real* parameters) const {
  // Use the stream that no expert uses, as for an MLP router's hidden layers.
  Engine engine = start.seeds.stream(Purpose::router_init, ~std::uint64_t{0});
  const double deviation = 1 / std::sqrt(static_cast<double>(input_dim_));
  std::fill_n(parameters, projection_size(), Real(0));
  for (int j = 0; j < input_dim_; ++j) {
    for (int m = 0; m < projection_dim_; ++m) {
      projection(parameters)(j, m) = static_cast<Real>(deviation * draw_normal(engine));
    }
  }
  inner_->initialize(start, parameters + projection_size());
}

template <class Real>
std::unique_ptr<Scratch> ProjectedRouter<Real>::make_scratch() const {
  auto scratch = std::make_unique<ProjectedScratch<Real>>();
  scratch->inner = inner_->make_scratch();
  return scratch;
}

template <class Real>
RouterOutput<Real> ProjectedRouter<Real>::forward(const RouterContext<Real>& context, const Real* parameters,
                                                  Scratch& scratch, Real* scores) const {
  auto& own = static_cast<ProjectedScratch<Real>&>(scratch);
  reserve_entries(own.rows, entries(context.x.rows, stride_));
  const View<Real> rows = kernels::padded_rows(own.rows.data(), context.x.rows, projection_dim_);
  kernels::multiply(context.x, projection(parameters), rows);
  return inner_->forward(with_rows<Real>(context, rows), parameters + projection_size(), *own.inner, scores);
}

template <class Real>
void ProjectedRouter<Real>::backward(const RouterContext<Real>& context, const Real* parameters,
                                     Scratch& scratch, const RouterGradients<Real>& gradients) const {
  auto& own = static_cast<ProjectedScratch<Real>&>(scratch);
  const int rows = context.x.rows;
  reserve_entries(own.gradient, entries(rows, stride_));
  RouterGradients<Real> of_inner = gradients;
  of_inner.parameters = gradients.parameters + projection_size();
  of_inner.inputs = own.gradient.data();
  const View<const Real> projected = kernels::padded_rows(own.rows.data(), rows, projection_dim_);
  inner_->backward(with_rows(context, projected), parameters + projection_size(), *own.inner, of_inner);
  const View<const Real> delta = kernels::padded_rows(own.gradient.data(), rows, projection_dim_);
  kernels::multiply(context.x.transposed(), delta, projection(gradients.parameters));
  if (!gradients.inputs) return;
  kernels::multiply(delta, projection(parameters).transposed(),
                    kernels::padded_rows(gradients.inputs, rows, input_dim_));
}

template <class Real>
std::vector<NamedArray<Real>> ProjectedRouter<Real>::arrays(const Real* parameters) const {
  NamedArray<Real> columns{"router_projection", {projection_dim_, input_dim_}, {}};
  for (int m = 0; m < projection_dim_; ++m) {
    for (int j = 0; j < input_dim_; ++j) columns.values.push_back(projection(parameters)(j, m));
  }
  std::vector<NamedArray<Real>> all = {std::move(columns)};
  for (NamedArray<Real>& array : inner_->arrays(parameters + projection_size())) {
    all.push_back(std::move(array));
  }
  return all;
}

template class ProjectedRouter<float>;
template class ProjectedRouter<double>;

namespace {

std::vector<int> layer_widths(const MlpRouterOptions& options, const RouterSetting& setting) {
  std::vector<int> widths(size(options.depth) + 1, options.width);
  widths.front() = setting.input_dim;
  widths.back() = setting.experts;
  return widths;
}

template <class Real>
struct MlpRouterScratch final : Scratch {
  AlignedVector<Real> activations, deltas;
};

template <class Real>
class MlpRouter final : public Router<Real> {
 public:
  MlpRouter(const MlpRouterOptions& options, const RouterSetting& setting)
      : mlp_(layer_widths(options, setting)), init_scale_(options.init_scale), experts_(setting.experts) {}

  std::size_t parameter_count() const override { return mlp_.parameter_count(); }
  std::size_t block_size() const override { return mlp_.block_size(); }
  std::unique_ptr<Scratch> make_scratch() const override {
    return std::make_unique<MlpRouterScratch<Real>>();
  }

  void initialize(const Start& start, Real* parameters) const override {
    const int inputs = mlp_.layer_inputs(mlp_.depth() - 1);
    const int stride = mlp_.output_stride();
    // The hidden layers use the stream that no expert uses. The output layer then uses one stream per expert.
    Engine hidden = start.seeds.stream(Purpose::router_init, ~std::uint64_t{0});
    mlp_.initialize(hidden, 1.0, parameters);
    const View<Real> weight{parameters + mlp_.block_size() - entries(inputs + 1, stride), inputs, experts_,
                            stride};
    const double deviation = init_scale_ / std::sqrt(static_cast<double>(inputs));
    for (int e = 0; e < experts_; ++e) {
      Engine engine = start.seeds.stream(Purpose::router_init, static_cast<std::uint64_t>(e));
      for (int j = 0; j < inputs; ++j) weight(j, e) = static_cast<Real>(deviation * draw_normal(engine));
    }
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override {
    AlignedVector<Real>& activations = static_cast<MlpRouterScratch<Real>&>(scratch).activations;
    reserve_entries(activations, mlp_.activation_size(context.x.rows));
    const Real* const output = mlp_.forward(context.x, parameters, activations.data());
    std::copy_n(output, entries(context.x.rows, mlp_.output_stride()), scores);
    return {};
  }

  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                const RouterGradients<Real>& gradients) const override {
    auto& own = static_cast<MlpRouterScratch<Real>&>(scratch);
    reserve_entries(own.deltas, mlp_.scratch_size(context.x.rows));
    mlp_.backward(context.x, parameters, own.activations.data(), gradients.scores, gradients.parameters,
                  own.deltas.data(), gradients.inputs);
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    return layer_arrays(mlp_, parameters, "router_");
  }

 private:
  Mlp<Real> mlp_;
  double init_scale_;
  int experts_;
};

}  // namespace

void MlpRouterOptions::bind(Fields& fields) {
  fields.add("trainable", trainable, "false freezes the router at its start");
  fields.add("init_scale", init_scale, at_least(0), "output rows start N(0, init_scale² / width)");
  fields.add("depth", depth, between(1, 64), "weight matrices; 1 is an affine router");
  fields.add("width", width, between(1, 1e6), "hidden units per layer");
}

RouterKind mlp_router() {
  RouterKind kind = router_kind<MlpRouterOptions, MlpRouter>(
      "mlp", "γ(x) = MLP(x), ReLU, biases (Dikkala et al. 2023, C.1)", {.width = 6});
  kind.starts_at_rows = true;
  return kind;
}

}  // namespace moelab
