#include <algorithm>

#include "sim/base/kernels/kernels.h"
#include "sim/model/router/router.h"

namespace moelab {
namespace {

/// γ_e(x) = −‖x − w_e‖² / 2: every expert has a centre, and a row prefers the expert whose centre is nearest.
template <class Real>
class DistanceRouter final : public Router<Real> {
 public:
  DistanceRouter(double init_scale, int input_dim, int experts)
      : init_scale_(init_scale),
        input_dim_(input_dim),
        experts_(experts),
        row_(kernels::padded(input_dim)),
        score_row_(kernels::padded(experts)) {}

  // Centres lie one after another, each padded to row_ entries. Padding stays zero.
  std::size_t parameter_count() const override { return static_cast<std::size_t>(experts_ * input_dim_); }
  std::size_t block_size() const override { return static_cast<std::size_t>(experts_ * row_); }

  // One stream for each expert: its centre does not depend on how many experts there are.
  void initialize(const Seeds& seeds, Real* parameters) const override {
    std::fill(parameters, parameters + block_size(), Real(0));
    for (int e = 0; e < experts_; ++e) {
      Engine engine = seeds.stream(Purpose::router_init, static_cast<std::uint64_t>(e));
      for (int j = 0; j < input_dim_; ++j)
        parameters[e * row_ + j] = static_cast<Real>(init_scale_ * draw_normal(engine));
    }
  }

  void forward(const RouterContext<Real>& context, const Real* parameters, Real* scores) override {
    for (int i = 0; i < context.rows; ++i) {
      const Real* const x = context.x + i * context.stride;
      for (int e = 0; e < experts_; ++e) {
        Real sum = 0;
        for (int j = 0; j < input_dim_; ++j) {
          const Real difference = x[j] - parameters[e * row_ + j];
          sum += difference * difference;
        }
        scores[i * score_row_ + e] = -sum / 2;
      }
    }
  }

  // ∂γ_e/∂w_e = x − w_e and ∂γ_e/∂x = w_e − x, each times ∂L/∂γ_e.
  void backward(const RouterContext<Real>& context, const Real* parameters,
                const RouterGradients<Real>& gradients) override {
    std::fill(gradients.parameters, gradients.parameters + block_size(), Real(0));
    if (gradients.inputs) std::fill(gradients.inputs, gradients.inputs + context.rows * row_, Real(0));
    for (int i = 0; i < context.rows; ++i) {
      const Real* const x = context.x + i * context.stride;
      for (int e = 0; e < experts_; ++e) {
        const Real gradient = gradients.scores[i * score_row_ + e];
        for (int j = 0; j < input_dim_; ++j) {
          const Real difference = x[j] - parameters[e * row_ + j];
          gradients.parameters[e * row_ + j] += gradient * difference;
          if (gradients.inputs) gradients.inputs[i * row_ + j] -= gradient * difference;
        }
      }
    }
  }

  // Not "router_weight": the scores are not linear in x.
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    NamedArray<Real> centres{"router_centres", {experts_, input_dim_}, {}};
    for (int e = 0; e < experts_; ++e) {
      const Real* const centre = parameters + e * row_;
      centres.values.insert(centres.values.end(), centre, centre + input_dim_);
    }
    return {std::move(centres)};
  }

 private:
  double init_scale_;
  int input_dim_, experts_;
  int row_, score_row_;  // entries from a centre, or a row of scores, to the next
};

}  // namespace

Kind distance_router_kind() {
  return {"distance",
          "γ_e(x) = −‖x − w_e‖² / 2",
          {{"trainable", Shape::boolean(), "false freezes the router at its start", true},
           {"init_scale", Shape::real_at_least(0), "standard deviation of the centres' entries", 1.0}}};
}

template <class Real>
std::unique_ptr<Router<Real>> make_distance_router(const Json& spec, const Layout& layout, int experts) {
  return std::make_unique<DistanceRouter<Real>>(spec.at("init_scale").get<double>(), layout.router_dim(),
                                                experts);
}

template std::unique_ptr<Router<float>> make_distance_router(const Json&, const Layout&, int);
template std::unique_ptr<Router<double>> make_distance_router(const Json&, const Layout&, int);

}  // namespace moelab
