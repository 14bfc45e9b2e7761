#include "sim/model/router/mlp_router.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"
#include "sim/model/mlp.h"

namespace moelab {
namespace {

std::vector<int> layer_widths(const Json& spec, int input_dim, int experts) {
  std::vector<int> widths(static_cast<std::size_t>(spec.at("depth").get<int>()) + 1,
                          spec.at("width").get<int>());
  widths.front() = input_dim;
  widths.back() = experts;
  return widths;
}

template <class Real>
class MlpRouter final : public Router<Real> {
 public:
  MlpRouter(const Json& spec, int input_dim, int experts)
      : mlp_(layer_widths(spec, input_dim, experts)),
        init_scale_(spec.at("init_scale").get<double>()),
        experts_(experts) {}

  std::size_t parameter_count() const override { return mlp_.parameter_count(); }
  std::size_t block_size() const override { return mlp_.block_size(); }

  void initialize(const Seeds& seeds, Real* parameters) const override {
    const int last = mlp_.depth() - 1;
    const int inputs = mlp_.layer_inputs(last);
    const int stride = kernels::padded(experts_);
    // The hidden layers have the stream that no expert uses; the output layer is then drawn expert by expert.
    Engine hidden = seeds.stream(Purpose::router_init, ~std::uint64_t{0});
    mlp_.initialize(hidden, 1.0, parameters);
    Real* weight = parameters + mlp_.block_size() - static_cast<std::size_t>((inputs + 1) * stride);
    const double deviation = init_scale_ / std::sqrt(static_cast<double>(inputs));
    for (int e = 0; e < experts_; ++e) {
      Engine engine = seeds.stream(Purpose::router_init, static_cast<std::uint64_t>(e));
      for (int j = 0; j < inputs; ++j) {
        weight[static_cast<std::ptrdiff_t>(j) * stride + e] =
            static_cast<Real>(deviation * draw_normal(engine));
      }
    }
  }

  void forward(const RouterContext<Real>& context, const Real* parameters, Real* scores) override {
    reserve_entries(activations_, mlp_.activation_size(context.rows));
    const Real* output =
        mlp_.forward(context.x, context.stride, context.rows, parameters, activations_.data());
    std::copy(output, output + static_cast<std::ptrdiff_t>(context.rows) * mlp_.output_stride(), scores);
  }

  void backward(const RouterContext<Real>& context, const Real* parameters,
                const RouterGradients<Real>& gradients) override {
    reserve_entries(scratch_, mlp_.scratch_size(context.rows));
    mlp_.backward(context.x, context.stride, context.rows, parameters, activations_.data(), gradients.scores,
                  gradients.parameters, scratch_.data(), gradients.inputs);
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    return layer_arrays(mlp_, parameters, "router_");
  }

 private:
  Mlp<Real> mlp_;
  double init_scale_;
  int experts_;
  AlignedVector<Real> activations_;
  AlignedVector<Real> scratch_;
};

}  // namespace

Kind mlp_router_kind() {
  return {"mlp",
          "γ(x) = MLP(x), ReLU, biases (Dikkala et al. 2023, C.1)",
          {{"trainable", Shape::boolean(), "false freezes the router at its start", true},
           {"init_scale", Shape::real_at_least(0), "output rows start N(0, init_scale² / width)", 1.0},
           {"depth", Shape::count(1, 64), "weight matrices; 1 is an affine router", 3},
           {"width", Shape::count(1, 1e6), "hidden units per layer", 96}}};
}

template <class Real>
std::unique_ptr<Router<Real>> make_mlp_router(const Json& spec, const Layout& layout, int experts) {
  return std::make_unique<MlpRouter<Real>>(spec, layout.router_dim(), experts);
}

template std::unique_ptr<Router<float>> make_mlp_router(const Json&, const Layout&, int);
template std::unique_ptr<Router<double>> make_mlp_router(const Json&, const Layout&, int);

}  // namespace moelab
