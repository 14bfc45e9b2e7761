#include <algorithm>

#include "sim/base/kernels/multiply.h"
#include "sim/model/router/router.h"

namespace moelab {
namespace {

struct DistanceRouterOptions {
  bool trainable = true;
  double init_scale = 1.0;

  void bind(Fields& fields) {
    fields.add("trainable", trainable, "false freezes the router at its start");
    fields.add("init_scale", init_scale, at_least(0), "standard deviation of the centres' entries");
  }
};

/// γ_e(x) = −‖x − w_e‖² / 2: every expert has a centre, and a row prefers the expert whose centre is nearest.
template <class Real>
class DistanceRouter final : public Router<Real> {
 public:
  DistanceRouter(const DistanceRouterOptions& options, const RouterSetting& setting)
      : init_scale_(options.init_scale), dim_(setting.input_dim), experts_(setting.experts) {}

  // Centres lie one after another, each padded for vectors. Padding stays zero.
  std::size_t parameter_count() const override { return entries(experts_, dim_); }
  std::size_t block_size() const override { return entries(experts_, kernels::padded(dim_)); }

  // One stream for each expert: its centre does not depend on how many experts there are.
  void initialize(const Start& start, Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    for (int e = 0; e < experts_; ++e) {
      Engine engine = start.seeds.stream(Purpose::router_init, static_cast<std::uint64_t>(e));
      for (int j = 0; j < dim_; ++j) {
        centres(parameters)(e, j) = static_cast<Real>(init_scale_ * draw_normal(engine));
      }
    }
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch&,
                             Real* scores) const override {
    const View<const Real> x = context.x, w = centres(parameters);
    const View<Real> of_rows = kernels::padded_rows(scores, x.rows, experts_);
    for (int i = 0; i < x.rows; ++i) {
      for (int e = 0; e < experts_; ++e) {
        Real sum = 0;
        for (int j = 0; j < dim_; ++j) sum += (x(i, j) - w(e, j)) * (x(i, j) - w(e, j));
        of_rows(i, e) = -sum / 2;
      }
    }
    return {};
  }

  // ∂γ_e/∂w_e = x − w_e and ∂γ_e/∂x = w_e − x, each times ∂L/∂γ_e.
  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch&,
                const RouterGradients<Real>& gradients) const override {
    const View<const Real> x = context.x, w = centres(parameters);
    const View<const Real> delta = kernels::padded_rows(gradients.scores, x.rows, experts_);
    const View<Real> of_centres = centres(gradients.parameters);
    const View<Real> of_x = kernels::padded_rows(gradients.inputs, x.rows, dim_);
    std::fill_n(gradients.parameters, block_size(), Real(0));
    if (gradients.inputs) std::fill_n(gradients.inputs, entries(x.rows, kernels::padded(dim_)), Real(0));
    for (int i = 0; i < x.rows; ++i) {
      for (int e = 0; e < experts_; ++e) {
        for (int j = 0; j < dim_; ++j) {
          const Real step = delta(i, e) * (x(i, j) - w(e, j));
          of_centres(e, j) += step;
          if (gradients.inputs) of_x(i, j) -= step;
        }
      }
    }
  }

  // Not "router_weight": the scores are not linear in x.
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    NamedArray<Real> named{"router_centres", {experts_, dim_}, {}};
    for (int e = 0; e < experts_; ++e) {
      for (int j = 0; j < dim_; ++j) named.values.push_back(centres(parameters)(e, j));
    }
    return {std::move(named)};
  }

 private:
  template <class Value>
  View<Value> centres(Value* block) const {
    return kernels::padded_rows(block, experts_, dim_);
  }

  double init_scale_;
  int dim_, experts_;
};

}  // namespace

RouterKind distance_router() {
  return router_kind<DistanceRouterOptions, DistanceRouter>("distance", "γ_e(x) = −‖x − w_e‖² / 2");
}

}  // namespace moelab
