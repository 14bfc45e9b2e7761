#include <algorithm>
#include <cmath>

#include "sim/base/kernels/multiply.h"
#include "sim/model/router/routers.h"

namespace moelab {
namespace {

/// The linear router. W is stored transposed, (d, padded(E)), so a row's scores are vectors over experts.
/// Biases follow W, and then log 1/t.
template <class Real>
class LinearRouter final : public Router<Real> {
 public:
  LinearRouter(const LinearRouterOptions& options, const RouterSetting& setting)
      : law_(start_law(options.init)),
        init_scale_(options.init_scale),
        has_bias_(options.bias.value_or(false)),
        temperature_(options.temperature),
        input_dim_(setting.input_dim),
        experts_(setting.experts),
        stride_(kernels::padded(setting.experts)) {}
  LinearRouter(const LinearBaseOptions& options, const RouterSetting& setting)
      : LinearRouter(LinearRouterOptions{.init_scale = options.init_scale, .bias = options.bias}, setting) {}

  std::size_t parameter_count() const override {
    return entries(block_rows(), experts_) + (learns_temperature() ? 1 : 0);
  }
  std::size_t block_size() const override {
    return entries(block_rows() + (learns_temperature() ? 1 : 0), stride_);
  }

  void initialize(const Start& start, Real* parameters) const override {
    std::fill(parameters, parameters + block_size(), Real(0));
    start_columns(law_, start, init_scale_, weight(parameters));
    if (learns_temperature()) parameters[scale_place()] = static_cast<Real>(-std::log(temperature_->start));
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& /*scratch*/,
                             Real* scores) const override {
    kernels::multiply(context.x, weight(parameters), kernels::padded_rows(scores, context.x.rows, experts_),
                      {.bias = has_bias_ ? bias(parameters) : nullptr});
    if (temperature_) scale(parameters, scores, entries(context.x.rows, stride_));
    return {};
  }

  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& /*scratch*/,
                const RouterGradients<Real>& gradients) const override {
    const int rows = context.x.rows;
    const View<const Real> delta = kernels::padded_rows(gradients.scores, rows, experts_);
    kernels::multiply(context.x.transposed(), delta, weight(gradients.parameters));
    if (has_bias_) {
      kernels::sum_rows(gradients.scores, rows, experts_, stride_, bias(gradients.parameters));
    }
    if (temperature_) scale_gradient(parameters, gradients.parameters);
    if (!gradients.inputs) return;
    kernels::multiply(delta, weight(parameters).transposed(),
                      kernels::padded_rows(gradients.inputs, rows, input_dim_));
    if (temperature_) scale(parameters, gradients.inputs, entries(rows, kernels::padded(input_dim_)));
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> all = {
        {"router_weight", {experts_, input_dim_}, values_of(weight(parameters).transposed())}};
    const Real* const biases = bias(parameters);
    if (has_bias_) all.push_back({"router_bias", {experts_}, {biases, biases + experts_}});
    if (learns_temperature()) all.push_back({"router_log_scale", {1}, {parameters[scale_place()]}});
    return all;
  }

 private:
  int block_rows() const { return input_dim_ + (has_bias_ ? 1 : 0); }
  /// W^T (d, E) and b in a parameter block.
  template <class Value>
  View<Value> weight(Value* block) const {
    return {block, input_dim_, experts_, stride_};
  }
  template <class Value>
  Value* bias(Value* block) const {
    return block + entries(input_dim_, stride_);
  }

  bool learns_temperature() const { return temperature_ && temperature_->is_learned; }
  std::size_t scale_place() const { return entries(block_rows(), stride_); }

  /// values ← values / t.
  void scale(const Real* parameters, Real* values, std::size_t count) const {
    const Real factor = learns_temperature() ? std::exp(parameters[scale_place()])
                                             : static_cast<Real>(1 / temperature_->start);
    kernels::scale_into(factor, values, values, static_cast<int>(count));
  }
  /// Converts ∂L/∂(W, b) at t = 1 to the gradient at t. Scores are homogeneous of degree one in (W, b) and in
  /// 1/t, so ∂L/∂log(1/t) = Σ W ∂L/∂W + Σ b ∂L/∂b.
  void scale_gradient(const Real* parameters, Real* gradient) const {
    const std::size_t place = scale_place();
    scale(parameters, gradient, place);
    if (!learns_temperature()) return;
    std::fill_n(gradient + place, stride_, Real(0));
    gradient[place] = kernels::dot(parameters, gradient, static_cast<int>(place));
  }

  StartLaw law_;
  double init_scale_;
  bool has_bias_;
  std::optional<Temperature> temperature_;
  int input_dim_;
  int experts_;
  int stride_;
};

constexpr const char* kHelp = "γ_e(x) = w_e^T x (Dikkala et al. 2023)";

}  // namespace

void bind_linear_fields(Fields& fields, bool& trainable, std::string& init, double& init_scale,
                        std::optional<bool>& bias) {
  fields.add("trainable", trainable, "false freezes the router at its start");
  fields.add_name("init", init, start_law_names(),
                  "rows start N(0, init_scale² I / d), or at init_scale times the first E training samples");
  fields.add("init_scale", init_scale, at_least(0), "scale of the start");
  fields.add("bias", bias, "adds b_e, started at zero (default false)");
}

namespace {

/// A temperature that is not a plain number.
struct StartedTemperature {
  double start = 1;
  bool learned = true;
  void bind(Fields& fields) {
    fields.required().add("start", start, positive(), "t at the start");
    fields.add("learned", learned, "the router learns t; false keeps it");
  }
};

}  // namespace

std::vector<Binding> Temperature::alternatives() {
  return {alternative(
              is_learned ? std::nullopt : std::optional(start),
              [](Fields& fields, auto& own) { fields.add("", own, positive(), ""); },
              [this](double own) {
                *this = {own, false};
              }),
          alternative(is_learned ? std::optional(StartedTemperature{start}) : std::nullopt,
                      [this](const StartedTemperature& own) {
                        *this = {own.start, own.learned};
                      })};
}

void LinearRouterOptions::bind(Fields& fields) {
  bind_linear_fields(fields, trainable, init, init_scale, bias);
  fields.add(
      "temperature", temperature,
      "t > 0, which divides the scores: a number stays; {\"start\": 3, \"learned\": true} is learned from "
      "3 (default: t = 1)");
}

void LinearBaseOptions::bind(Fields& fields) {
  fields.add("trainable", trainable, "false freezes the router at its start");
  fields.add("init_scale", init_scale, at_least(0), "scale of the start");
  fields.add("bias", bias, "adds b_e, started at zero (default false)");
}

RouterKind linear_router() {
  RouterKind kind = router_kind<LinearRouterOptions, LinearRouter>("linear", kHelp);
  kind.starts_at_rows = true;
  kind.needs_train_rows = starts_at_train_rows<LinearRouterOptions>;
  return kind;
}

RouterKind linear_base() {
  return router_kind<LinearBaseOptions, LinearRouter>("linear", kHelp);
}

template <class Real>
std::unique_ptr<Router<Real>> make_linear_router(const LinearRouterOptions& options,
                                                 const RouterSetting& setting) {
  return std::make_unique<LinearRouter<Real>>(options, setting);
}

template std::unique_ptr<Router<float>> make_linear_router(const LinearRouterOptions&, const RouterSetting&);
template std::unique_ptr<Router<double>> make_linear_router(const LinearRouterOptions&, const RouterSetting&);

}  // namespace moelab
