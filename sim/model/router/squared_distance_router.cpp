#include <algorithm>

#include "sim/base/kernels/multiply.h"
#include "sim/model/router/routers.h"

namespace moelab {
namespace {

template <class Real>
struct DistanceScratch final : Scratch {
  explicit DistanceScratch(int stride) : factors(size(stride)), halves(size(stride)), pull(size(stride)) {}
  AlignedVector<Real> factors;       // 1 / s_e², zero at the padding
  AlignedVector<Real> halves;        // ‖w_e‖² / 2
  AlignedVector<Real> pull;          // Σ_i D_ie / s_e²
  AlignedVector<Real> input_halves;  // ‖x_i‖² / 2
  AlignedVector<Real> values;        // γ (n, padded(E)), for ∂γ/∂s = −2 γ / s
  AlignedVector<Real> delta;         // D_ie / s_e² (n, padded(E)), D = ∂L/∂γ
};

/// The squared-distance router: γ_ie = (x_i·w_e − ‖x_i‖²/2 − ‖w_e‖²/2) / s_e² + b_e. W is stored transposed,
/// (d, padded(E)). Learned s_e are the next row, and biases the last row.
template <class Real>
class SquaredDistanceRouter final : public Router<Real> {
 public:
  SquaredDistanceRouter(const SquaredDistanceRouterOptions& options, const RouterSetting& setting)
      : law_(start_law(options.init)),
        init_scale_(options.init_scale),
        std_(options.std.value_or(1.0)),
        learns_std_(options.std.has_value()),
        has_bias_(options.bias),
        input_dim_(setting.input_dim),
        experts_(setting.experts),
        stride_(kernels::padded(setting.experts)) {}

  std::size_t parameter_count() const override { return entries(block_rows(), experts_); }
  std::size_t block_size() const override { return entries(block_rows(), stride_); }
  std::unique_ptr<Scratch> make_scratch() const override {
    return std::make_unique<DistanceScratch<Real>>(stride_);
  }

  void initialize(const Start& start, Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    start_columns(law_, start, init_scale_, centers(parameters));
    if (learns_std_) std::fill_n(stds(parameters), experts_, static_cast<Real>(std_));
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override {
    auto& own = static_cast<DistanceScratch<Real>&>(scratch);
    const View<const Real>& x = context.x;
    measure(x, parameters, own);
    kernels::multiply(x, centers(parameters), kernels::padded_rows(scores, x.rows, experts_));
    for (int i = 0; i < x.rows; ++i) {
      Real* const row = scores + entries(i, stride_);
      const Real half = own.input_halves[size(i)];
      for (int e = 0; e < stride_; ++e) row[e] = (row[e] - half - own.halves[size(e)]) * own.factors[size(e)];
    }
    if (learns_std_) {
      reserve_entries(own.values, entries(x.rows, stride_));
      std::copy_n(scores, entries(x.rows, stride_), own.values.data());
    }
    for (int i = 0; has_bias_ && i < x.rows; ++i)
      kernels::add_scaled(Real(1), bias(parameters), scores + entries(i, stride_), stride_);
    return {};
  }

  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                const RouterGradients<Real>& gradients) const override {
    auto& own = static_cast<DistanceScratch<Real>&>(scratch);
    const View<const Real>& x = context.x;
    reserve_entries(own.delta, entries(x.rows, stride_));
    std::fill(own.pull.begin(), own.pull.end(), Real(0));
    for (int i = 0; i < x.rows; ++i) {
      const Real* const upstream = gradients.scores + entries(i, stride_);
      Real* const delta = own.delta.data() + entries(i, stride_);
      for (int e = 0; e < stride_; ++e) {
        delta[e] = upstream[e] * own.factors[size(e)];
        own.pull[size(e)] += delta[e];
      }
    }
    const View<const Real> delta = kernels::padded_rows<const Real>(own.delta.data(), x.rows, experts_);
    const View<Real> of_centers = centers(gradients.parameters);
    kernels::multiply(x.transposed(), delta, of_centers);
    for (int j = 0; j < input_dim_; ++j) {
      for (int e = 0; e < experts_; ++e) of_centers(j, e) -= own.pull[size(e)] * centers(parameters)(j, e);
    }
    if (learns_std_) std_gradient(x.rows, gradients.scores, parameters, own, stds(gradients.parameters));
    if (has_bias_) kernels::sum_rows(gradients.scores, x.rows, experts_, stride_, bias(gradients.parameters));
    if (!gradients.inputs) return;
    const View<Real> of_inputs = kernels::padded_rows(gradients.inputs, x.rows, input_dim_);
    kernels::multiply(delta, centers(parameters).transposed(), of_inputs);
    for (int i = 0; i < x.rows; ++i) {
      Real sum = 0;
      for (int e = 0; e < experts_; ++e) sum += delta(i, e);
      for (int j = 0; j < input_dim_; ++j) of_inputs.row(i)[j] -= sum * x.row(i)[j];
    }
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> all = {
        {"router_centers", {experts_, input_dim_}, values_of(centers(parameters).transposed())}};
    const auto add = [&](const char* name, const Real* values) {
      all.push_back({name, {experts_}, {values, values + experts_}});
    };
    if (learns_std_) add("router_std", stds(parameters));
    if (has_bias_) add("router_bias", bias(parameters));
    return all;
  }

 private:
  int block_rows() const { return input_dim_ + (learns_std_ ? 1 : 0) + (has_bias_ ? 1 : 0); }
  /// W^T (d, E), s and b in a parameter block.
  template <class Value>
  View<Value> centers(Value* block) const {
    return {block, input_dim_, experts_, stride_};
  }
  template <class Value>
  Value* stds(Value* block) const {
    return block + entries(input_dim_, stride_);
  }
  template <class Value>
  Value* bias(Value* block) const {
    return block + entries(block_rows() - 1, stride_);
  }
  Real std_of(const Real* parameters, int e) const {
    return std::max(stds(parameters)[e], static_cast<Real>(kLeastRouterStd));
  }

  void measure(const View<const Real>& x, const Real* parameters, DistanceScratch<Real>& own) const {
    std::fill(own.halves.begin(), own.halves.end(), Real(0));
    for (int j = 0; j < input_dim_; ++j) {
      const Real* const row = centers(parameters).row(j);
      for (int e = 0; e < stride_; ++e) own.halves[size(e)] += row[e] * row[e] / 2;
    }
    for (int e = 0; e < experts_; ++e) {
      const Real s = learns_std_ ? std_of(parameters, e) : Real(1);
      own.factors[size(e)] = 1 / (s * s);
    }
    reserve_entries(own.input_halves, size(x.rows));
    for (int i = 0; i < x.rows; ++i) {
      Real square = 0;
      for (int j = 0; j < input_dim_; ++j) square += x.row(i)[j] * x.row(i)[j];
      own.input_halves[size(i)] = square / 2;
    }
  }

  void std_gradient(int rows, const Real* upstream, const Real* parameters, const DistanceScratch<Real>& own,
                    Real* gradient) const {
    std::fill_n(gradient, stride_, Real(0));
    for (int i = 0; i < rows; ++i) {
      const std::size_t at = entries(i, stride_);
      for (int e = 0; e < stride_; ++e) gradient[e] += upstream[at + size(e)] * own.values[at + size(e)];
    }
    for (int e = 0; e < experts_; ++e) {
      gradient[e] *= -2 / std_of(parameters, e);
      const bool is_least = stds(parameters)[e] < static_cast<Real>(kLeastRouterStd);
      if (is_least && gradient[e] > 0) gradient[e] = 0;
    }
  }

  StartLaw law_;
  double init_scale_;
  double std_;  // start of s
  bool learns_std_;
  bool has_bias_;
  int input_dim_;
  int experts_;
  int stride_;
};

}  // namespace

void SquaredDistanceRouterOptions::bind(Fields& fields) {
  fields.add("trainable", trainable, "false freezes the router at its start");
  fields.add_name("init", init, start_law_names(),
                  "rows start N(0, init_scale² I / d), or at init_scale times the first E training samples");
  fields.add("init_scale", init_scale, at_least(0), "scale of the start");
  fields.add("std", std, at_least(kLeastRouterStd),
             "start of a learned s_e, of at least 0.01 (default: s_e = 1)");
  fields.add("bias", bias, "adds b_e, started at zero");
}

RouterKind squared_distance_router() {
  RouterKind kind = router_kind<SquaredDistanceRouterOptions, SquaredDistanceRouter>(
      "squared_distance", "γ_e(x) = −‖x − w_e‖² / (2 s_e²), the Gaussian gate");
  kind.starts_at_rows = true;
  kind.needs_train_rows = starts_at_train_rows<SquaredDistanceRouterOptions>;
  return kind;
}

}  // namespace moelab
