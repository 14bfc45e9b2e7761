#include "sim/model/router/projected_router.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/multiply.h"

namespace moelab {
namespace {

template <class Real>
struct ProjectedScratch final : Scratch {
  std::unique_ptr<Scratch> inner;
  AlignedVector<Real> rows, gradient;  // x A and ∂L/∂(x A) (n, padded(m))
};

/// What the inner router sees.
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
  // The stream that no expert uses, as for an MLP router's hidden layers.
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

}  // namespace moelab
