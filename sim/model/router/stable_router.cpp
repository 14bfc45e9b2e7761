#include "sim/model/router/stable_router.h"

#include <algorithm>
#include <cmath>

#include "sim/base/aligned.h"
#include "sim/base/kernels/kernels.h"
#include "sim/model/router/linear_router.h"

namespace moelab {
namespace {

/// Parameters [main | light], two linear routers.
template <class Real>
class StableRouter final : public Router<Real> {
 public:
  StableRouter(const Json& spec, const Layout& layout, int experts)
      : distil_share_(spec.at("distil_share")),
        experts_(experts),
        stride_(kernels::padded(experts)),
        main_(make_linear_router<Real>(spec, layout, experts)),
        light_(make_linear_router<Real>(spec, layout, experts)) {}

  std::size_t parameter_count() const override {
    return main_->parameter_count() + light_->parameter_count();
  }
  std::size_t block_size() const override { return main_->block_size() + light_->block_size(); }

  void initialize(const Seeds& seeds, Real* parameters) const override {
    main_->initialize(seeds, parameters);
    // The light router starts undecided.
    std::fill_n(light_of(parameters), light_->block_size(), Real(0));
    frozen_.clear();
  }

  void start_at(const Matrix& rows, Real* parameters) const override { main_->start_at(rows, parameters); }

  void forward(const RouterContext<Real>& context, const Real* parameters, Real* scores) override {
    loss_ = 0;
    if (context.progress >= distil_share_) {
      // A copy: momentum would move the parameters on.
      if (frozen_.empty()) frozen_.assign(light_of(parameters), light_of(parameters) + light_->block_size());
      return light_->forward(inputs(context), frozen_.data(), scores);
    }
    main_->forward(context, parameters, scores);
    if (context.training) distil(context, parameters, scores);
  }

  void backward(const RouterContext<Real>& context, const Real* parameters,
                const RouterGradients<Real>& gradients) override {
    if (context.progress >= distil_share_) {
      std::fill_n(gradients.parameters, block_size(), Real(0));
      if (!gradients.inputs) return;
      // Of the model's inputs, which are no layer's but the first's.
      const std::size_t entries =
          static_cast<std::size_t>(context.rows * kernels::padded(static_cast<int>(context.stride)));
      if (context.x != context.first_x) {
        std::fill_n(gradients.inputs, entries, Real(0));
        return;
      }
      unused_.resize(light_->block_size());
      RouterGradients<Real> of_light = gradients;
      of_light.parameters = unused_.data();
      return light_->backward(inputs(context), frozen_.data(), of_light);
    }
    main_->backward(context, parameters, gradients);
    if (!context.training) {
      std::fill_n(light_of(gradients.parameters), light_->block_size(), Real(0));
      return;
    }
    light_->backward(inputs(context), light_of(parameters),
                     {distil_gradient_.data(), nullptr, light_of(gradients.parameters), nullptr});
  }

  double added_loss() const override { return loss_; }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> all = main_->arrays(parameters);
    for (NamedArray<Real>& array : light_->arrays(frozen_.empty() ? light_of(parameters) : frozen_.data())) {
      array.name.replace(0, std::string("router").size(), "light_router");
      all.push_back(std::move(array));
    }
    return all;
  }

 private:
  template <class Value>
  Value* light_of(Value* parameters) const {
    return parameters + main_->block_size();
  }

  static RouterContext<Real> inputs(const RouterContext<Real>& context) {
    RouterContext<Real> rows = context;
    rows.x = context.first_x;
    return rows;
  }

  /// loss_ and its gradient in the light router's scores, from the main router's `scores`.
  void distil(const RouterContext<Real>& context, const Real* parameters, const Real* scores) {
    const std::size_t size = static_cast<std::size_t>(context.rows) * static_cast<std::size_t>(stride_);
    reserve_entries(distil_gradient_, size);
    light_->forward(inputs(context), light_of(parameters), distil_gradient_.data());
    for (int row = 0; row < context.rows; ++row) {
      const Real* const main = scores + static_cast<std::ptrdiff_t>(row) * stride_;
      Real* const light = distil_gradient_.data() + static_cast<std::ptrdiff_t>(row) * stride_;
      const std::ptrdiff_t assigned = std::max_element(main, main + experts_) - main;
      const Real largest = *std::max_element(light, light + experts_);
      double sum = 0;
      for (int e = 0; e < experts_; ++e) sum += std::exp(static_cast<double>(light[e] - largest));
      const double log_sum = static_cast<double>(largest) + std::log(sum);
      loss_ += (log_sum - static_cast<double>(light[assigned])) / context.rows;
      for (int e = 0; e < experts_; ++e) {
        const double r = std::exp(static_cast<double>(light[e]) - log_sum);
        light[e] = static_cast<Real>((r - (e == assigned ? 1 : 0)) / context.rows);
      }
    }
  }

  double distil_share_;
  int experts_;
  int stride_;
  std::unique_ptr<Router<Real>> main_;
  std::unique_ptr<Router<Real>> light_;
  mutable std::vector<Real> frozen_;  // the light router's parameters, empty while it learns
  std::vector<Real> unused_;
  AlignedVector<Real> distil_gradient_;  // (n, padded(E))
  double loss_ = 0;
};

}  // namespace

Kind stable_router_kind() {
  Kind kind = linear_router_kind();
  kind.name = "stable";
  kind.help =
      "γ_e(h) = w_e^T h, from distil_share of training on a frozen u_e^T x of the model's inputs that has "
      "learned its assignment (StableMoE, Dai et al. 2022)";
  kind.fields.push_back(
      {"distil_share", Shape::fraction(), "share of training before the routing is frozen", 0.1});
  return kind;
}

template <class Real>
std::unique_ptr<Router<Real>> make_stable_router(const Json& spec, const Layout& layout, int experts) {
  return std::make_unique<StableRouter<Real>>(spec, layout, experts);
}

template std::unique_ptr<Router<float>> make_stable_router(const Json&, const Layout&, int);
template std::unique_ptr<Router<double>> make_stable_router(const Json&, const Layout&, int);

}  // namespace moelab
