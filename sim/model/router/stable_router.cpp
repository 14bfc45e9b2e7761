#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/kernels/kernels.h"
#include "sim/model/router/routers.h"

namespace moelab {
namespace {

template <class Real>
struct StableScratch final : Scratch {
  std::unique_ptr<Scratch> main, light;
  AlignedVector<Real> frozen;           // the light router's block, its padding zero
  AlignedVector<Real> unused;           // gradient of this block; unused
  AlignedVector<Real> distil_gradient;  // (n, padded(E))
};

/// The StableMoE router. Parameters [main | light] are two linear routers. The state holds the frozen copy of
/// the light router, since momentum would still move parameters.
template <class Real>
class StableRouter final : public Router<Real> {
 public:
  StableRouter(const StableRouterOptions& options, const RouterSetting& setting)
      : distil_share_(options.distil_share),
        input_dim_(setting.input_dim),
        experts_(setting.experts),
        stride_(kernels::padded(setting.experts)),
        main_(make_linear_router<Real>(linear_part(options), setting)),
        light_(make_linear_router<Real>(linear_part(options), setting)) {
    // Reading arrays of a block that holds its own places gives the places of their entries.
    const std::unique_ptr<Router<double>> numbered =
        make_linear_router<double>(linear_part(options), setting);
    std::vector<double> places(numbered->block_size());
    std::iota(places.begin(), places.end(), 0.0);
    for (const NamedArray<double>& array : numbered->arrays(places.data())) {
      light_arrays_.push_back({"frozen_" + light_name(array.name), array.shape});
      light_places_.insert(light_places_.end(), array.values.begin(), array.values.end());
    }
  }

  std::size_t parameter_count() const override {
    return main_->parameter_count() + light_->parameter_count();
  }
  std::size_t block_size() const override { return main_->block_size() + light_->block_size(); }

  void initialize(const Start& start, Real* parameters) const override {
    main_->initialize(start, parameters);
    // The light router starts at zero scores.
    std::fill_n(light_of(parameters), light_->block_size(), Real(0));
  }

  std::unique_ptr<Scratch> make_scratch() const override {
    auto scratch = std::make_unique<StableScratch<Real>>();
    scratch->main = main_->make_scratch();
    scratch->light = light_->make_scratch();
    scratch->frozen.resize(light_->block_size());
    scratch->unused.resize(light_->block_size());
    return scratch;
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override {
    auto& own = static_cast<StableScratch<Real>&>(scratch);
    if (context.progress >= distil_share_) {
      return light_->forward(first_inputs(context), frozen_light(context, parameters, own), *own.light,
                             scores);
    }
    main_->forward(context, parameters, *own.main, scores);
    if (!context.training) return {};
    return {.added_loss = distil(context, parameters, scores, own)};
  }

  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                const RouterGradients<Real>& gradients) const override {
    auto& own = static_cast<StableScratch<Real>&>(scratch);
    if (context.progress >= distil_share_) {
      std::fill_n(gradients.parameters, block_size(), Real(0));
      if (!gradients.inputs) return;
      // The frozen scores depend on the model's own inputs, so ∂L/∂x is zero after the first layer.
      if (context.x.data != context.signals.first_inputs.data) {
        std::fill_n(gradients.inputs, entries(context.x.rows, kernels::padded(input_dim_)), Real(0));
        return;
      }
      RouterGradients<Real> of_light = gradients;
      of_light.parameters = own.unused.data();
      return light_->backward(first_inputs(context), frozen_light(context, parameters, own), *own.light,
                              of_light);
    }
    main_->backward(context, parameters, *own.main, gradients);
    if (!context.training) {
      std::fill_n(light_of(gradients.parameters), light_->block_size(), Real(0));
      return;
    }
    RouterGradients<Real> of_light;
    of_light.scores = own.distil_gradient.data();
    of_light.parameters = light_of(gradients.parameters);
    light_->backward(first_inputs(context), light_of(parameters), *own.light, of_light);
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> all = main_->arrays(parameters);
    for (NamedArray<Real>& array : light_->arrays(light_of(parameters))) {
      array.name = light_name(array.name);
      all.push_back(std::move(array));
    }
    return all;
  }

  std::vector<StateArray> state_arrays() const override {
    std::vector<StateArray> arrays = light_arrays_;
    arrays.push_back({"light_router_frozen", {1}});
    return arrays;
  }
  void start_state(const Start& /*start*/, double* state) const override {
    std::fill_n(state, light_places_.size() + 1, 0.0);
  }
  void begin_step(double progress, const Real* parameters, double* state) const override {
    if (progress < distil_share_ || is_frozen(state)) return;
    for (std::size_t i = 0; i < light_places_.size(); ++i) {
      state[i] = static_cast<double>(light_of(parameters)[light_places_[i]]);
    }
    state[light_places_.size()] = 1;
  }

 private:
  static std::string light_name(std::string name) {
    return name.replace(0, std::string("router").size(), "light_router");
  }
  template <class Value>
  Value* light_of(Value* parameters) const {
    return parameters + main_->block_size();
  }
  bool is_frozen(const double* state) const { return state[light_places_.size()] != 0; }

  RouterContext<Real> first_inputs(const RouterContext<Real>& context) const {
    RouterContext<Real> first = context;
    first.x = context.signals.first_inputs.middle_columns(0, input_dim_);
    return first;
  }

  /// The block of the frozen copy, or the light router's own block before there is a copy.
  const Real* frozen_light(const RouterContext<Real>& context, const Real* parameters,
                           StableScratch<Real>& own) const {
    MOELAB_EXPECT(context.state);
    if (!is_frozen(context.state)) return light_of(parameters);
    for (std::size_t i = 0; i < light_places_.size(); ++i) {
      own.frozen[light_places_[i]] = static_cast<Real>(context.state[i]);
    }
    return own.frozen.data();
  }

  /// The distillation loss from the main router's `scores`, and its gradient in the light router's scores.
  double distil(const RouterContext<Real>& context, const Real* parameters, const Real* scores,
                StableScratch<Real>& own) const {
    const int rows = context.x.rows;
    reserve_entries(own.distil_gradient, entries(rows, stride_));
    light_->forward(first_inputs(context), light_of(parameters), *own.light, own.distil_gradient.data());
    double loss = 0;
    for (int row = 0; row < rows; ++row) {
      const Real* const main = scores + entries(row, stride_);
      Real* const light = own.distil_gradient.data() + entries(row, stride_);
      const std::ptrdiff_t assigned = std::max_element(main, main + experts_) - main;
      const Real largest = *std::max_element(light, light + experts_);
      double sum = 0;
      for (int e = 0; e < experts_; ++e) sum += std::exp(static_cast<double>(light[e] - largest));
      const double log_sum = static_cast<double>(largest) + std::log(sum);
      loss += (log_sum - static_cast<double>(light[assigned])) / rows;
      for (int e = 0; e < experts_; ++e) {
        const double r = std::exp(static_cast<double>(light[e]) - log_sum);
        light[e] = static_cast<Real>((r - (e == assigned ? 1 : 0)) / rows);
      }
    }
    return loss;
  }

  double distil_share_;
  int input_dim_;
  int experts_;
  int stride_;
  std::unique_ptr<Router<Real>> main_;
  std::unique_ptr<Router<Real>> light_;
  std::vector<StateArray> light_arrays_;   // arrays of the frozen copy
  std::vector<std::size_t> light_places_;  // places of their entries in the light router's block
};

}  // namespace

void StableRouterOptions::bind(Fields& fields) {
  bind_linear_fields(fields, trainable, init, init_scale, bias);
  fields.add("distil_share", distil_share, fraction(), "share of training before the routing is frozen");
}

RouterKind stable_router() {
  RouterKind kind = router_kind<StableRouterOptions, StableRouter>(
      "stable",
      "γ_e(h) = w_e^T h until distil_share of training. Later a frozen u_e^T x of the model's inputs, which "
      "has learned the assignment (StableMoE, Dai et al. 2022)");
  kind.starts_at_rows = true;
  kind.reads_first_inputs = true;
  kind.needs_train_rows = starts_at_train_rows<StableRouterOptions>;
  return kind;
}

}  // namespace moelab
