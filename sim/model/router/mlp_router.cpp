#include <algorithm>
#include <cmath>

#include "sim/model/layers.h"
#include "sim/model/router/routers.h"

namespace moelab {
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
    draw_columns(start, init_scale_ / std::sqrt(static_cast<double>(inputs)), weight);
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
