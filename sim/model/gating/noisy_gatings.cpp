#include <cmath>

#include "sim/base/error.h"
#include "sim/base/kernels/multiply.h"
#include "sim/model/gating/selection.h"
#include "sim/model/router/row_draws.h"

namespace moelab {
namespace {

/// The constant in s = softplus(x W_noise) + constant. It is in the public code of Shazeer et al. 2017, but
/// not in the paper.
constexpr double kLeastNoise = 1e-2;

/// The noisy top-K gating. Learned noise has the parameters W_noise^T (d, padded(E)), which start at zero.
/// Their array is "gating_noise_weight" (E, d).
template <class Real>
class NoisyTopKGating final : public LimitedGating<Real> {
 public:
  NoisyTopKGating(const NoisyTopKGatingOptions& options, const GatingSetting& setting)
      : LimitedGating<Real>(options.capacity, true),
        k_(options.k),
        learned_(options.noise == NoisyTopKGatingOptions::Noise::learned),
        per_sequence_(options.noise_per == NoisyTopKGatingOptions::NoisePer::sequence),
        raw_(options.gate == NoisyTopKGatingOptions::Gate::raw),
        measured_(options.measured),
        renormalize_(options.renormalize.value_or(options.k > 1)),
        setting_(setting),
        stride_(kernels::padded(setting.experts)) {}

  bool is_softmax() const override { return !learned_; }

  std::size_t parameter_count() const override {
    return learned_ ? entries(setting_.input_dim, setting_.experts) : 0;
  }
  std::size_t block_size() const override { return learned_ ? entries(setting_.input_dim, stride_) : 0; }
  void initialize(const Start& /*start*/, Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
  }
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    if (!learned_) return {};
    return {{"gating_noise_weight",
             {setting_.experts, setting_.input_dim},
             values_of(weight(parameters).transposed())}};
  }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    shape_routing(context, scratch);
    const Real* const selected_by = context.training ? noisy_scores(context, scratch)
                                    : measured_      ? fixed_scores(context, scratch)
                                                     : context.scores;
    // Measuring has no learned noise, but the load loss needs its standard deviations.
    if (learned_ && !context.training && !context.x.empty()) {
      write_spreads(context, scratch, [](std::size_t /*at*/, Real /*u*/, Real /*decay*/) {});
      scratch.noise.noisy = context.scores;
    }
    kernels::softmax_rows(learned_ ? selected_by : context.scores, scratch.probabilities.data(), context.rows,
                          context.experts, scratch.routing.stride);
    const auto row_at = [&](std::size_t at) {
      return GatedRow<Real>{selected_by + at, scratch.probabilities.data() + at, nullptr};
    };
    GatingContext<Real> unbiased = context;
    unbiased.selection_bias = nullptr;
    this->select(std::min(k_, context.experts), unbiased, scratch, row_at, [&](const GatedRow<Real>& row) {
      if (raw_) {
        for (const int e : scratch.chosen) row.gates[e] = std::max(row.scores[e], kLeastGate);
        return;
      }
      const Real* const scores = learned_ ? row.scores : context.scores + (row.scores - selected_by);
      set_gates<Real>(renormalize_, row, scratch.chosen, scores);
    });
  }

  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real* gradient) const override {
    if (gradient) std::fill_n(gradient, block_size(), Real(0));
    if (raw_) return raw_backward(scratch, gate_gradient, score_gradient);
    selected_backward(renormalize_, scratch, gate_gradient, score_gradient);
  }

  void add_own_gradient(const GatingContext<Real>& context, GatingScratch<Real>& scratch,
                        const Real* score_gradient, Real* gradient,
                        const View<Real>& input_gradient) const override {
    if (!learned_ || !context.training) return;
    const std::size_t count = entries(context.rows, stride_);
    reserve_entries(scratch.noise_gradient, count);
    for (std::size_t i = 0; i < count; ++i) {
      scratch.noise_gradient[i] = score_gradient[i] * scratch.noise_slope[i];
    }
    hand_on(context, scratch, gradient, input_gradient);
  }

  /// The slope of s = softplus(u) + c: ∂s/∂u = σ(u) = 1 − exp(−(s − c)).
  void add_spread_gradient(const GatingContext<Real>& context, GatingScratch<Real>& scratch,
                           const Real* spread_gradient, Real* gradient,
                           const View<Real>& input_gradient) const override {
    if (!learned_ || !context.training) return;
    const std::size_t count = entries(context.rows, stride_);
    reserve_entries(scratch.noise_gradient, count);
    for (std::size_t i = 0; i < count; ++i) {
      const Real softplus = scratch.noise_spread[i] - static_cast<Real>(kLeastNoise);
      scratch.noise_gradient[i] = spread_gradient[i] * -std::expm1(-softplus);
    }
    hand_on(context, scratch, gradient, input_gradient);
  }

 private:
  /// A gate of 0 makes a pair inactive.
  static constexpr Real kLeastGate = std::numeric_limits<Real>::min();

  /// The gate is h, so ∂L/∂γ = ∂L/∂gate, except where the gate is kept above 0.
  static void raw_backward(const GatingScratch<Real>& scratch, Real* gate_gradient, Real* score_gradient) {
    const Routing<Real>& routing = scratch.routing;
    clear_inactive(routing, gate_gradient);
    const std::size_t count = entries(routing.rows, routing.stride);
    for (std::size_t i = 0; i < count; ++i)
      score_gradient[i] = routing.gates[i] > kLeastGate ? gate_gradient[i] : Real(0);
  }

  /// Computes h in measuring: the noise of a sequence is a hash of its first row, or of every row its own.
  const Real* fixed_scores(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const {
    constexpr double kUnit = 1.0 / 9007199254740992.0;  // 1 / 2^53
    const int stride = scratch.routing.stride, rows_of_noise = per_sequence_ ? context.tokens : 1;
    reserve_entries(scratch.selected_by, entries(context.rows, stride));
    for (int first = 0; first < context.rows; first += rows_of_noise) {
      const std::uint64_t hash = row_hash(context.x, first, kStepNoise);
      const int end = std::min(first + rows_of_noise, context.rows);
      for (int e = 0; e < context.experts; ++e) {
        const double draw =
            kUnit * static_cast<double>(mixed_bits(hash + static_cast<std::uint64_t>(e)) >> 11);
        for (int row = first; row < end; ++row) {
          const std::size_t at = entries(row, stride) + size(e);
          scratch.selected_by[at] = context.scores[at] + static_cast<Real>(draw);
        }
      }
    }
    return scratch.selected_by.data();
  }

  /// Computes gradients from ∂L/∂(x W_noise).
  void hand_on(const GatingContext<Real>& context, const GatingScratch<Real>& scratch, Real* gradient,
               const View<Real>& input_gradient) const {
    const View<const Real> delta =
        kernels::padded_rows<const Real>(scratch.noise_gradient.data(), context.rows, context.experts);
    if (gradient) kernels::multiply(context.x.transposed(), delta, weight(gradient), {.accumulate = true});
    if (input_gradient.empty()) return;
    kernels::multiply(delta, weight(context.parameters).transposed(), input_gradient, {.accumulate = true});
  }

  template <class Value>
  View<Value> weight(Value* block) const {
    return {block, setting_.input_dim, setting_.experts, stride_};
  }

  /// Computes u = x W_noise in noise_slope and s = softplus(u) + 0.01 in noise_spread, and calls visit(at, u,
  /// exp(−|u|)) for every entry in order.
  template <class Visit>
  void write_spreads(const GatingContext<Real>& context, GatingScratch<Real>& scratch,
                     const Visit& visit) const {
    const int stride = scratch.routing.stride;
    const std::size_t count = entries(context.rows, stride);
    reserve_entries(scratch.noise_slope, count);
    reserve_entries(scratch.noise_spread, count);
    scratch.noise = {std::min(k_, context.experts), scratch.selected_by.data(), scratch.noise_spread.data()};
    kernels::multiply(context.x, weight(context.parameters),
                      kernels::padded_rows(scratch.noise_slope.data(), context.rows, context.experts));
    for (int row = 0; row < context.rows; ++row) {
      const std::size_t begin = entries(row, stride);
      for (std::size_t at = begin; at < begin + size(context.experts); ++at) {
        const Real u = scratch.noise_slope[at], decay = std::exp(-std::abs(u));
        const Real softplus = std::max(u, Real(0)) + std::log1p(decay);
        scratch.noise_spread[at] = softplus + static_cast<Real>(kLeastNoise);
        visit(at, u, decay);
      }
    }
  }

  /// Computes h, and the factor from ∂L/∂h to ∂L/∂(x W_noise).
  const Real* noisy_scores(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const {
    const int stride = scratch.routing.stride;
    reserve_entries(scratch.selected_by, entries(context.rows, stride));
    Engine engine = step_stream::engine(context.state, kStepNoise);
    if (learned_) {
      write_spreads(context, scratch, [&](std::size_t at, Real u, Real decay) {
        const Real draw = static_cast<Real>(draw_normal(engine));
        scratch.selected_by[at] = context.scores[at] + scratch.noise_spread[at] * draw;
        scratch.noise_slope[at] = draw * (u >= 0 ? 1 : decay) / (1 + decay);
      });
      return scratch.selected_by.data();
    }
    for (int row = 0; row < context.rows; ++row) {
      const std::size_t begin = entries(row, stride);
      for (std::size_t at = begin; at < begin + size(context.experts); ++at) {
        if (per_sequence_ && row % context.tokens > 0) {
          const std::size_t before = at - size(stride);
          scratch.selected_by[at] =
              context.scores[at] + (scratch.selected_by[before] - context.scores[before]);
        } else {
          scratch.selected_by[at] = context.scores[at] + static_cast<Real>(draw_uniform(engine));
        }
      }
    }
    return scratch.selected_by.data();
  }

  int k_;
  bool learned_;
  bool per_sequence_;
  bool raw_;
  bool measured_;
  bool renormalize_;
  GatingSetting setting_;
  int stride_;
};

template <class Real>
class DenseToSparseGating final : public Gating<Real> {
 public:
  explicit DenseToSparseGating(const DenseToSparseGatingOptions& options) : options_(options) {}

  bool is_softmax() const override { return false; }
  std::vector<StateArray> state_arrays() const override {
    if (!options_.gumbel) return {};
    return {step_stream::array()};
  }
  void start_state(const Start& start, double* state) const override {
    if (options_.gumbel) step_stream::start(start, state);
  }
  void begin_step(double* state) const override {
    if (options_.gumbel) step_stream::advance(state);
  }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    shape_routing(context, scratch);
    scratch.inverse_temperature =
        1 / temperature_at(options_.tau, options_.tau_end, options_.tau_schedule, context.progress);
    write_warm_scores(context, scratch);
    kernels::softmax_rows(scratch.selected_by.data(), scratch.probabilities.data(), context.rows,
                          context.experts, scratch.routing.stride);
    gate_rows(scratch.selected_by.data(), scratch, [&](const GatedRow<Real>& row) {
      mark_above(static_cast<Real>(options_.threshold), row, context.experts, scratch);
      set_gates<Real>(options_.renormalize, row, scratch.chosen);
    });
  }

  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    selected_backward(options_.renormalize, scratch, gate_gradient, score_gradient);
    cool(scratch, score_gradient);
  }

  void backward_probabilities(const GatingScratch<Real>& scratch, Real* gradient) const override {
    Gating<Real>::backward_probabilities(scratch, gradient);
    cool(scratch, gradient);
  }

 private:
  /// Computes (γ + g) / τ, (n, padded(E)). With uniform u, g = −ln(−ln u) is a Gumbel variable.
  void write_warm_scores(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const {
    const int stride = scratch.routing.stride;
    const std::size_t count = entries(context.rows, stride);
    reserve_entries(scratch.selected_by, count);
    kernels::scale_into(static_cast<Real>(scratch.inverse_temperature), context.scores,
                        scratch.selected_by.data(), static_cast<int>(count));
    if (!options_.gumbel || !context.training) return;
    Engine engine = step_stream::engine(context.state, kStepNoise);
    for (int row = 0; row < context.rows; ++row) {
      for (int e = 0; e < context.experts; ++e) {
        const double noise = -std::log(-std::log1p(-draw_uniform(engine)));
        if (!std::isfinite(noise)) continue;  // u = 0
        scratch.selected_by[entries(row, stride) + size(e)] +=
            static_cast<Real>(noise * scratch.inverse_temperature);
      }
    }
  }
  static void cool(const GatingScratch<Real>& scratch, Real* gradient) {
    const std::size_t count = entries(scratch.routing.rows, scratch.routing.stride);
    kernels::scale_into(static_cast<Real>(scratch.inverse_temperature), gradient, gradient,
                        static_cast<int>(count));
  }

  DenseToSparseGatingOptions options_;
};

}  // namespace

void NoisyTopKGatingOptions::bind(Fields& fields) {
  fields.required().add("k", k, between(1, 65536), "experts per row K");
  fields.add("noise", noise, {"learned", "uniform"},
             "h = γ + noise in training steps: N(0, s²) with learned s = softplus(x W_noise) + 0.01, or U[0, "
             "1) with γ's gates");
  fields.add("noise_per", noise_per, {"row", "sequence"},
             "uniform noise: every row has its own, or all tokens of a sequence have the same");
  fields.add("gate", gate, {"softmax", "raw"},
             "uniform noise: gates of the softmax over γ, or γ + noise itself, kept above 0");
  fields.add("measured", measured,
             "uniform noise: measuring has noise as well, a fixed function of the row or of the sequence's "
             "first row");
  fields.add("renormalize", renormalize, "divide the K gates by their sum (default: true for K > 1)");
  capacity.bind(fields);
}

/// The fields of uniform noise have no meaning for learned noise.
static void check_noisy_topk(const AnyOptions& options, const std::string& path) {
  const NoisyTopKGatingOptions& own = options.get<NoisyTopKGatingOptions>();
  check_capacity(own.capacity, path);
  const bool is_raw = own.gate == NoisyTopKGatingOptions::Gate::raw;
  if (is_raw && own.renormalize)
    throw InvalidOption(path + ".renormalize", "given, but gate is \"raw\"; raw gates have no sum of 1");
  if (own.noise == NoisyTopKGatingOptions::Noise::uniform) return;
  const std::string needs = "needs noise \"uniform\"";
  if (own.noise_per == NoisyTopKGatingOptions::NoisePer::sequence)
    throw InvalidOption(path + ".noise_per", "got \"sequence\", " + needs);
  if (is_raw) throw InvalidOption(path + ".gate", "got \"raw\", " + needs);
  if (own.measured) throw InvalidOption(path + ".measured", "got true, " + needs);
}

GatingKind noisy_topk_gating() {
  GatingKind kind = gating_kind<NoisyTopKGatingOptions, NoisyTopKGating>(
      "noisy_topk",
      "the K largest of scores with noise in training steps; gates of the softmax over the noisy scores "
      "(Shazeer et al. 2017), or over γ with uniform noise (Chen et al. 2022)",
      {.k = 2});
  kind.check = check_noisy_topk;
  kind.looks_ahead = [](const AnyOptions& options) {
    const NoisyTopKGatingOptions& own = options.get<NoisyTopKGatingOptions>();
    return capacity_looks_ahead(own.capacity, own.k);
  };
  kind.most_experts = [](const AnyOptions& options) { return options.get<NoisyTopKGatingOptions>().k; };
  kind.reaches_scores = [](const AnyOptions& options, int experts) {
    const NoisyTopKGatingOptions& own = options.get<NoisyTopKGatingOptions>();
    return experts > 1 && (own.k > 1 || !own.renormalize.value_or(false));
  };
  return kind;
}

void DenseToSparseGatingOptions::bind(Fields& fields) {
  fields.add("tau", tau, positive(), "temperature τ of the first step");
  fields.add("tau_end", tau_end, positive(),
             "τ at the schedule's end; step t of N has the value at t / N, measuring the last step's");
  fields.add("tau_schedule", tau_schedule, {"linear", "cosine", "geometric"}, "how τ moves over the steps");
  fields.add("threshold", threshold, fraction(), "experts with r_e above it are active");
  fields.add("gumbel", gumbel, "Gumbel noise is added to the scores in training steps");
  fields.add("renormalize", renormalize, "divide the gates by their sum");
}

GatingKind dense_to_sparse_gating() {
  return gating_kind<DenseToSparseGatingOptions, DenseToSparseGating>(
      "dense_to_sparse",
      "gates r_e above a threshold of r = softmax((γ + Gumbel noise) / τ). τ goes from tau to tau_end over "
      "the steps, so gates are dense at first and sparse later (EvoMoE). The usual evaluation is by top1",
      {.threshold = 0.15});
}

}  // namespace moelab
