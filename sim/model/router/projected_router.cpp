#include "sim/model/router/projected_router.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"

namespace moelab {

template <class Real>
ProjectedRouter<Real>::ProjectedRouter(std::unique_ptr<Router<Real>> inner, int input_dim, int projection_dim)
    : inner_(std::move(inner)),
      input_dim_(input_dim),
      projection_dim_(projection_dim),
      stride_(kernels::padded(projection_dim)) {}

template <class Real>
std::size_t ProjectedRouter<Real>::projection_size() const {
  return entries(input_dim_, stride_);
}

template <class Real>
std::size_t ProjectedRouter<Real>::parameter_count() const {
  return entries(input_dim_, projection_dim_) + inner_->parameter_count();
}

template <class Real>
void ProjectedRouter<Real>::initialize(const Seeds& seeds, Real* parameters) const {
  // The stream that no expert uses, as for an MLP router's hidden layers.
  Engine engine = seeds.stream(Purpose::router_init, ~std::uint64_t{0});
  const double deviation = 1 / std::sqrt(static_cast<double>(input_dim_));
  std::fill_n(parameters, projection_size(), Real(0));
  for (int j = 0; j < input_dim_; ++j) {
    Real* const row = parameters + entries(j, stride_);
    for (int m = 0; m < projection_dim_; ++m) row[m] = static_cast<Real>(deviation * draw_normal(engine));
  }
  inner_->initialize(seeds, parameters + projection_size());
}

template <class Real>
RouterContext<Real> ProjectedRouter<Real>::projected(const RouterContext<Real>& context) const {
  RouterContext<Real> rows = context;
  rows.x = rows_.data();
  rows.stride = stride_;
  return rows;
}

template <class Real>
void ProjectedRouter<Real>::forward(const RouterContext<Real>& context, const Real* parameters,
                                    Real* scores) {
  reserve_entries(rows_, entries(context.rows, stride_));
  kernels::Product<Real> product;
  product.m = context.rows;
  product.n = projection_dim_;
  product.k = input_dim_;
  product.a = context.x;
  product.a_row = context.stride;
  product.b = parameters;
  product.b_row = product.c_row = stride_;
  product.c = rows_.data();
  kernels::multiply(product);
  inner_->forward(projected(context), parameters + projection_size(), scores);
}

template <class Real>
void ProjectedRouter<Real>::backward(const RouterContext<Real>& context, const Real* parameters,
                                     const RouterGradients<Real>& gradients) {
  reserve_entries(gradient_, entries(context.rows, stride_));
  RouterGradients<Real> inner = gradients;
  inner.parameters = gradients.parameters + projection_size();
  inner.inputs = gradient_.data();
  inner_->backward(projected(context), parameters + projection_size(), inner);
  kernels::Product<Real> product;
  product.m = input_dim_;
  product.n = projection_dim_;
  product.k = context.rows;
  product.a = context.x;
  product.a_row = 1;
  product.a_column = context.stride;
  product.b = gradient_.data();
  product.b_row = product.c_row = stride_;
  product.c = gradients.parameters;
  kernels::multiply(product);
  if (!gradients.inputs) return;
  kernels::Product<Real> back;
  back.m = context.rows;
  back.n = input_dim_;
  back.k = projection_dim_;
  back.a = gradient_.data();
  back.a_row = back.b_row = stride_;
  back.b = parameters;
  back.b_transposed = true;
  back.c = gradients.inputs;
  back.c_row = kernels::padded(input_dim_);
  kernels::multiply(back);
}

template <class Real>
std::vector<NamedArray<Real>> ProjectedRouter<Real>::arrays(const Real* parameters) const {
  NamedArray<Real> projection{"router_projection", {projection_dim_, input_dim_}, {}};
  for (int m = 0; m < projection_dim_; ++m) {
    for (int j = 0; j < input_dim_; ++j) {
      projection.values.push_back(parameters[entries(j, stride_) + size(m)]);
    }
  }
  std::vector<NamedArray<Real>> all = {std::move(projection)};
  for (NamedArray<Real>& array : inner_->arrays(parameters + projection_size())) {
    all.push_back(std::move(array));
  }
  return all;
}

template class ProjectedRouter<float>;
template class ProjectedRouter<double>;

}  // namespace moelab
