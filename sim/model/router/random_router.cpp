#include "sim/model/router/random_router.h"

#include "sim/model/router/row_draws.h"

namespace moelab {
namespace {

/// Parts of the number of the step, each exact in float.
constexpr double kDrawsPart = 16777216;  // 2^24
/// The stream of the key; gatings have those before it.
constexpr std::uint64_t kDrawsStream = 2;

template <class Real>
class RandomRouter final : public Router<Real> {
 public:
  RandomRouter(const RandomRouterOptions& options, const RouterSetting& setting)
      : redrawn_(options.draws == RandomRouterOptions::Draws::redrawn),
        scale_(options.scale),
        experts_(setting.experts),
        stride_(kernels::padded(setting.experts)) {}

  std::size_t parameter_count() const override { return 0; }
  std::size_t block_size() const override { return 0; }
  void initialize(const Start& /*start*/, Real* /*parameters*/) const override {}
  std::vector<NamedArray<Real>> arrays(const Real* /*parameters*/) const override { return {}; }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* /*parameters*/,
                             Scratch& /*scratch*/, Real* scores) const override {
    MOELAB_EXPECT(context.state);
    const View<const Real> rows = identity_rows(context);
    const auto part = [&](int i) { return static_cast<std::uint64_t>(context.state[i]); };
    const std::uint64_t key = part(0) << 48 ^ part(2) << 24 ^ part(1);
    constexpr double kUnit = 1.0 / 9007199254740992.0;  // 2^-53
    for (int i = 0; i < rows.rows; ++i) {
      const std::uint64_t hash = row_hash(rows, i, key);
      Real* const row = scores + entries(i, stride_);
      for (int e = 0; e < experts_; ++e) {
        const std::uint64_t bits = mixed_bits(hash + static_cast<std::uint64_t>(e));
        row[e] = static_cast<Real>(scale_ * static_cast<double>(bits >> 11) * kUnit);
      }
      std::fill(row + experts_, row + stride_, Real(0));
    }
    return {};
  }

  void backward(const RouterContext<Real>& context, const Real* /*parameters*/, Scratch& /*scratch*/,
                const RouterGradients<Real>& gradients) const override {
    clear_input_gradient(context, gradients);
  }

  std::vector<StateArray> state_arrays() const override { return {{"router_draws", {3}}}; }
  void start_state(const Start& start, double* state) const override {
    state[0] = static_cast<double>(start.seeds.stream(Purpose::router_noise, kDrawsStream)() >> 40);
    state[1] = state[2] = 0;
  }
  void begin_step(double /*progress*/, const Real* /*parameters*/, double* state) const override {
    if (!redrawn_ || ++state[1] < kDrawsPart) return;
    state[1] = 0;
    ++state[2];
  }

 private:
  bool redrawn_;
  double scale_;
  int experts_;
  int stride_;
};

}  // namespace

void RandomRouterOptions::bind(Fields& fields) {
  fields.add("draws", draws, {"fixed", "redrawn"}, "a token keeps its draws, or has new ones at every step");
  fields.add("scale", scale, at_least(0), "of the scores");
}

RouterKind random_router() {
  RouterKind kind = router_kind<RandomRouterOptions, RandomRouter>(
      "random",
      "γ_e(x) = scale · u_e, u_e ~ U[0, 1) drawn for each token and expert, once or at every step; nothing "
      "is "
      "learned (a random function that is smooth in x is a linear router with trainable false)");
  return kind;
}

}  // namespace moelab
