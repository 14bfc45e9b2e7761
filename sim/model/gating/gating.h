#pragma once

/// The axis of gatings: they turn scores γ (n, E) into probabilities r and gates, and gradients back.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/kernels/kernels.h"
#include "sim/base/options.h"
#include "sim/model/gating/routing.h"
#include "sim/model/parameters.h"

namespace moelab {

/// How loss-free balancing moves the bias of an expert with load A, L the mean load: by rate · sign(L − A),
/// or by rate · (L − A) / L.
enum class BalanceRule { sign, error };

/// The shape of a gating in a model.
struct GatingSetting {
  int input_dim = 0;  ///< d, columns of the rows that the router reads
  int experts = 0;    ///< E
};

/// The batch that a gating reads.
template <class Real>
struct GatingContext {
  const Real* scores = nullptr;  ///< γ (n, padded(E))
  int rows = 0;
  int experts = 0;
  /// Biases (E) of loss-free balancing, added to r when experts are selected; null if there are none.
  const double* selection_bias = nullptr;
  const Real* parameters = nullptr;  ///< the gating's own block
  View<const Real> x = {};           ///< (n, d), what the router reads
  bool training = false;             ///< in a training step; only training steps have noise
  double progress = 0;               ///< State::progress
  int group_rows = 0;                ///< consecutive rows that are routed together; 0: all rows
  int tokens = 1;                    ///< s, consecutive rows of a sequence
  const double* state = nullptr;     ///< the gating's part of State::values; set in training only
};

// The options of the built-in gatings.

/// The soft gating: gate_e = r_e = softmax(γ)_e. Pairs with r_e < skip_below are skipped: zero output, zero
/// gradient.
struct SoftGatingOptions {
  /// Unset: a harmless value for the training rule; see default_skip_below().
  std::optional<double> skip_below = std::nullopt;
  void bind(Fields& fields);
};
/// A limit on the rows of an expert. With S selected pairs in a group of rows, each expert keeps at most C =
/// ⌈capacity_factor · S / E⌉ pairs. A dropped pair has gate 0. The row's other gates do not change.
struct CapacityOptions {
  /// Which pairs an expert keeps. `order`: first choices before second choices, then in the order of rows
  /// (GShard, Switch). `probability`: the largest r_e. `random`: random pairs. `next`: rows choose in turn
  /// among the experts with room.
  enum class Drop { order, probability, random, next };
  std::optional<double> capacity_factor = std::nullopt;  ///< unset: no limit
  Drop drop = Drop::order;
  void bind(Fields& fields);
};
/// The top-1 gating: gate 1 for the largest score (r + bias with biases). No gradient reaches the router
/// unless `straight_through` is set. Then the router's gradient is the gradient of the gate r_e.
struct Top1GatingOptions {
  bool straight_through = false;
  CapacityOptions capacity = {};
  void bind(Fields& fields);
};
/// The top-K gating: it selects the K largest scores. gate_e = r_e / Σ_selected r when renormalised, else
/// r_e. The backward pass holds the selection fixed.
struct TopKGatingOptions {
  int k = 1;
  std::optional<bool> renormalize = std::nullopt;  ///< unset: for K > 1
  CapacityOptions capacity = {};
  void bind(Fields& fields);
};
/// The top-p gating: it selects every expert with r_e > p, or the argmax expert if there is none (Nielsen et
/// al. 2025).
///
/// p is a threshold; this is not nucleus selection. Gates are the same as for topk. A training step has no
/// gradient in p. A `learnable` threshold therefore has the gates (r_e − p)⁺, divided by their sum when
/// renormalised. It selects the same experts, and gradients in r and p are exact. The paper does not say how
/// it learns its threshold.
struct TopPGatingOptions {
  double p = 0.05;
  bool learnable = false;
  bool renormalize = true;
  void bind(Fields& fields);
};
/// The sigmoid gating: gate_e = σ(γ_e) for every expert, or for the K largest scores. With biases it selects
/// by σ(γ_e) + bias (DeepSeek-V3). Gates are divided by their sum when renormalised. r_e = σ(γ_e) / Σ_j
/// σ(γ_j).
struct SigmoidGatingOptions {
  std::optional<int> k = std::nullopt;             ///< unset: every expert
  std::optional<bool> renormalize = std::nullopt;  ///< unset: for K > 1
  CapacityOptions capacity = {};
  void bind(Fields& fields);
};
/// The noisy top-K gating: it selects the K largest noisy scores h.
///
/// `learned` (Shazeer et al. 2017): h = γ + s ∘ ε, s = softplus(x W_noise) + 0.01, ε ~ N(0, 1), gates and r
/// from softmax(h). `uniform` (Chen et al. 2022): h = γ + u, u ~ U[0, 1), gates and r from softmax(γ). Each
/// training step draws new noise. Measuring has no noise.
///
/// Three fields serve uniform noise. `noise_per` sequence: all tokens of a sequence have the same noise.
/// `gate` raw: the gate is h itself, kept above 0 (the code of Chen et al. 2022). `measured`: measuring has
/// noise as well, a fixed function of the row (of its sequence's first row).
struct NoisyTopKGatingOptions {
  enum class Noise { learned, uniform };
  enum class NoisePer { row, sequence };
  enum class Gate { softmax, raw };
  int k = 2;
  Noise noise = Noise::learned;
  NoisePer noise_per = NoisePer::row;
  Gate gate = Gate::softmax;
  bool measured = false;
  std::optional<bool> renormalize = std::nullopt;  ///< unset: for K > 1
  CapacityOptions capacity = {};
  void bind(Fields& fields);
};
/// The expert-choice gating: each expert takes the C = ⌈capacity_factor · n / E⌉ rows with the largest r_e in
/// a group of n rows (Zhou et al. 2022). The gate is r_e. A row can have any number of experts from none to
/// all.
struct ExpertChoiceGatingOptions {
  double capacity_factor = 2;
  void bind(Fields& fields);
};
/// The patch-choice gating: each expert takes the `patches` tokens of each sequence with the largest scores
/// (Chowdhury et al. 2023). Ties go to the earlier token. r = softmax(γ) over experts.
///
/// `gate` one: the gate is 1, and no gradient reaches the scores. `chosen`: the softmax of the expert's
/// scores over its chosen tokens. `all`: the softmax over all tokens of the sequence, not renormalised. Gates
/// are divided by the number of chosen tokens l, by the tokens n of the sequence, or by nothing.
struct PatchChoiceGatingOptions {
  enum class Gate { one, chosen, all };
  enum class Average { chosen, tokens, none };
  int patches = 1;  ///< l
  Gate gate = Gate::chosen;
  Average average = Average::chosen;
  void bind(Fields& fields);
};
/// The ReLU gating: gate_e = max(γ_e, 0) (ReMoE). r_e = gate_e / Σ_j gate_j, uniform if all gates are zero.
///
/// With `k` the loss has the term λ E Σ_e f_e mean(gate_e), with f_e = #{gate_e > 0} / (n k) held fixed.
/// After each step λ is multiplied by the factor if more than a share k / E of the gates is positive; else λ
/// is divided by it.
struct ReluGatingOptions {
  std::optional<int> k = std::nullopt;
  double l1_start = 1e-8;
  double l1_factor = 1.2;
  void bind(Fields& fields);
};
/// The Sinkhorn gating: it selects the K largest entries of each row of a transport plan (S-BASE).
///
/// The plan is diag(a) exp(γ) diag(b) over a group, with equal row sums and equal column sums. The gate is
/// r_e, or σ(γ_e) for K = 1. The selection is held fixed.
struct SinkhornGatingOptions {
  int k = 1;
  double tolerance = 1e-4;  ///< stops below this mean change of b between two rounds; b starts at 1
  int rounds = 100;         ///< at most
  void bind(Fields& fields);
};
/// The balanced-assignment gating: one expert for each row, balanced over a group of n rows (BASE; exact).
/// Among all assignments with at most ⌈n / E⌉ rows per expert, it takes the one with the largest Σ γ. The
/// gate is σ(γ_e). The selection is held fixed.
struct BalancedAssignmentGatingOptions {
  void bind(Fields& /*fields*/) {}
};
/// The dense-to-sparse gating (EvoMoE): r = softmax((γ + g) / τ), with g ~ Gumbel in training steps.
///
/// Gates are r_e for the experts with r_e > threshold, or for the argmax expert if there is none. τ moves to
/// `tau_end` over the training steps, so gates are dense at first and sparse later. At test time τ is the
/// value of the last step. The selection is held fixed.
struct DenseToSparseGatingOptions {
  double tau = 2;
  double tau_end = 0.3;
  TauSchedule tau_schedule = TauSchedule::linear;
  double threshold = 1e-3;
  bool gumbel = true;
  bool renormalize = false;
  void bind(Fields& fields);
};
/// Soft MoE: slot j of expert e has the logit γ_e + x·v_ej, v_e0 = 0.
///
/// A slot is a weighted mean of the rows of a group. The weights are the softmax of its logits over the rows.
/// The experts read slots. A row gets the weighted sum of all slots' outputs. The weights are the softmax of
/// its logits over the slots, and r_e is expert e's part of them. With a linear router the logits use free
/// vectors w_e + v_ej.
struct SoftSlotsGatingOptions {
  int slots = 1;            ///< slots of each expert
  double init_scale = 1.0;  ///< v_ej starts N(0, init_scale² I / d), j > 0
  void bind(Fields& fields);
};

/// Freezes a router: an expert is settled once its noisy score is within `gap` of the chosen expert's score.
struct TerminationOptions {
  double gap = 0;
  std::int64_t after = 0;         ///< sequences before flags are set
  std::int64_t least_rounds = 0;  ///< sequences before the router is frozen
  void bind(Fields& fields);
};
/// The sequence gating (Li et al. 2025): all rows of a sequence go to the expert of the largest h_e = Σ_rows
/// γ_e + u_e, u ~ U[0, noise) in training steps, with gate 1. r = softmax(Σ_rows γ) is the same in each row.
struct SequenceTop1GatingOptions {
  double noise = 0;
  bool noisy_probabilities = false;  ///< r of the noisy scores
  std::optional<TerminationOptions> termination = std::nullopt;
  void bind(Fields& fields);
};

/// A rule that turns scores into gates; immutable. Each layer has a block for its parameters in the model's
/// buffer, if it has parameters. Gatings of one kind (`train` and `eval` of one model) share the block.
template <class Real>
class Gating {
 public:
  virtual ~Gating() = default;
  /// The number of free parameters, and the entries of their block: a multiple of kernels::kPadding, or 0.
  virtual std::size_t parameter_count() const { return 0; }
  virtual std::size_t block_size() const { return 0; }
  virtual void initialize(const Start& /*start*/, Real* /*parameters*/) const {}
  virtual std::vector<NamedArray<Real>> arrays(const Real* /*parameters*/) const { return {}; }
  /// State that training changes in addition to the parameters; only the training gating has it. See Router.
  virtual std::vector<StateArray> state_arrays() const { return {}; }
  virtual void start_state(const Start& /*start*/, double* /*state*/) const {}
  virtual void begin_step(double* /*state*/) const {}
  virtual void end_step(const GatingScratch<Real>& /*of the step's pass*/, double* /*state*/) const {}

  /// Whether the gates of a row depend on the other rows of its group.
  virtual bool couples_rows() const { return false; }
  /// Whether every expert is active on every row. Load then counts rows by their serving expert.
  virtual bool activates_all() const { return false; }
  /// Whether the gating selects experts by r + bias, so that selection biases have an effect.
  virtual bool selects() const { return false; }
  /// Slots of each expert; 0 if experts read rows. A gating with slots mixes the rows of a group into slots,
  /// which the experts read. It fills GatingScratch::slots.
  virtual int slots() const { return 0; }
  /// Writes the probabilities, gates and pairs of the batch.
  virtual void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const = 0;
  /// ∂L/∂gates → ∂L/∂scores, both (n, padded(E)); in place is allowed. It reads `gate_gradient` at active
  /// pairs only and may overwrite it. `gradient` becomes the gradient of the gating's own parameters; null if
  /// there are none.
  virtual void backward(const GatingContext<Real>& context, GatingScratch<Real>& scratch, Real* gate_gradient,
                        Real* score_gradient, Real* gradient) const = 0;
  /// Adds the gradient of the gating's own parameters (noise, extra slots) from ∂L/∂scores (n, padded(E)).
  /// Also adds their part of ∂L/∂x (n, d) unless it is empty. Called twice: after backward() for the gradient
  /// through the gates, and once for the gradient through the probabilities.
  virtual void add_own_gradient(const GatingContext<Real>& /*context*/, GatingScratch<Real>& /*scratch*/,
                                const Real* /*score_gradient*/, Real* /*gradient*/,
                                const View<Real>& /*input_gradient*/) const {}
  /// Like add_own_gradient(), from ∂L/∂(standard deviations of the noise) (n, padded(E)), for losses that
  /// read them.
  virtual void add_spread_gradient(const GatingContext<Real>& /*context*/, GatingScratch<Real>& /*scratch*/,
                                   const Real* /*spread_gradient*/, Real* /*gradient*/,
                                   const View<Real>& /*input_gradient*/) const {}
  /// The gating's own loss term in a training step; backward() includes its gradient.
  virtual double added_loss(const GatingContext<Real>& /*context*/,
                            const GatingScratch<Real>& /*scratch*/) const {
    return 0;
  }
  /// Whether r = softmax(γ).
  virtual bool is_softmax() const { return true; }
  /// ∂L/∂r → ∂L/∂scores (n, padded(E)), in place, for losses on the probabilities. The default is for
  /// softmax(γ).
  virtual void backward_probabilities(const GatingScratch<Real>& scratch, Real* gradient) const {
    const Routing<Real>& routing = scratch.routing;
    kernels::softmax_backward_rows(scratch.probabilities.data(), gradient, gradient, routing.rows,
                                   routing.experts, routing.stride);
  }
};

template <class Real>
using MakeGating = std::unique_ptr<Gating<Real>>(const AnyOptions&, const GatingSetting&);

/// An entry of the table of gatings.
struct GatingKind : KindEntry {
  PerPrecision<MakeGating> make = {};
  bool selects = false;  ///< see Gating::selects()
  /// Whether a gradient in the gates reaches the scores of E experts, for resolved options; null: always.
  bool (*reaches_scores)(const AnyOptions&, int experts) = nullptr;
  /// Whether a row may have no expert even without a capacity; null: never.
  bool (*may_leave_rows)(const AnyOptions&, int experts) = nullptr;
  /// Mean number of experts that a row costs, in a group of `group_rows` rows, for resolved options; null:
  /// `most_experts`.
  double (*experts_per_row)(const AnyOptions&, int experts, double group_rows) = nullptr;
  /// Describes where a row's gates depend on later rows of its group; empty if nowhere. The text ends in " in
  /// training" if measuring has no such dependence. Null: nowhere for all options.
  std::string (*looks_ahead)(const AnyOptions&) = nullptr;
  /// Most experts that a row is sent or steered to, for resolved options; 0 if there is no such number.
  int (*most_experts)(const AnyOptions&) = nullptr;
  /// Checks the options beyond single fields. Throws InvalidOption below `path`. Null: nothing to check.
  void (*check)(const AnyOptions&, const std::string& path) = nullptr;
};

/// The table of gatings. A new gating is one file and one line in gating.cpp.
struct GatingAxis {
  using Entry = GatingKind;
  static const std::vector<GatingKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "gating";
};
using GatingRule = OneOf<GatingAxis>;

/// Most experts that a row is sent or steered to; 0 if the gating has no such number.
int most_experts(const GatingRule& rule);

/// Mean number of experts that a row costs, in a group of `group_rows` rows; all experts if the kind has no
/// number.
double experts_per_row(const GatingRule& rule, int experts, double group_rows);

/// Whether a gradient in the gates reaches the scores. If not, the task does not teach a router.
inline bool reaches_scores(const GatingRule& rule, int experts) {
  const auto reaches = rule.entry().reaches_scores;
  return !reaches || reaches(rule.options(), experts);
}

/// Makes a Made<Real> from its options, and from the setting if its constructor takes one.
template <class Real, class Options, class Made>
std::unique_ptr<Gating<Real>> make_gating_from(const AnyOptions& options, const GatingSetting& setting) {
  if constexpr (std::is_constructible_v<Made, const Options&, const GatingSetting&>) {
    return std::make_unique<Made>(options.get<Options>(), setting);
  } else {
    return std::make_unique<Made>(options.get<Options>());
  }
}

template <class Options, template <class> class Made>
GatingKind gating_kind(std::string name, std::string help, Options example = {}) {
  return {{std::move(name), std::move(help), Options{}, std::move(example)},
          {make_gating_from<float, Options, Made<float>>, make_gating_from<double, Options, Made<double>>}};
}

template <class Real>
std::unique_ptr<Gating<Real>> make_gating(const GatingRule& rule, const GatingSetting& setting = {}) {
  return rule.entry().make.of<Real>()(rule.options(), setting);
}

// Selection of a row's experts, and their gates.

/// A row for gatings that select: γ and r (E), and gates to be set, which start at zero.
template <class Real>
struct GatedRow {
  const Real* scores;
  const Real* probabilities;
  Real* gates;
};

/// Marks the k experts with the largest values by gate 1.
///
/// Values are r_e + bias_e, or the scores without biases, since probabilities can tie where scores do not.
/// Ties go to the lower index. With `room` (E), only experts with room are candidates, and their room
/// decreases. `scratch.chosen` ← the experts, ascending.
template <class Real>
void mark_largest(int k, const GatedRow<Real>& row, const double* bias, int experts,
                  GatingScratch<Real>& scratch, int* room = nullptr) {
  const Real* values = row.scores;
  if (bias || room) {
    reserve_entries(scratch.values, size(kernels::padded(experts)));
    for (int e = 0; e < experts; ++e) {
      const Real value = bias ? row.probabilities[e] + static_cast<Real>(bias[e]) : row.scores[e];
      scratch.values[size(e)] = room && room[e] == 0 ? -std::numeric_limits<Real>::infinity() : value;
    }
    values = scratch.values.data();
  }
  scratch.chosen.resize(size(k));
  kernels::find_largest(values, experts, k, scratch.chosen.data());
  if (room) std::erase_if(scratch.chosen, [&](int e) { return room[e] == 0; });
  std::sort(scratch.chosen.begin(), scratch.chosen.end());
  for (const int e : scratch.chosen) {
    row.gates[e] = 1;
    if (room) --room[e];
  }
}

/// Softmax of `scores` (E) over the chosen experts alone.
template <class Real>
void set_softmax_of_chosen(const Real* scores, std::span<const int> chosen, Real* gates) {
  Real largest = scores[chosen.front()], total = 0;
  for (const int e : chosen) largest = std::max(largest, scores[e]);
  for (const int e : chosen) total += std::exp(scores[e] - largest);
  for (const int e : chosen) gates[e] = std::exp(scores[e] - largest) / total;
}

/// Sets the gates of the chosen experts to r_e, divided by their sum when renormalised.
///
/// All chosen r_e can round to 0 if other experts are much more likely. Then the gates are the softmax of
/// `scores` (E) over the chosen experts: r increases with the scores and behaves like their exp where r is
/// small. `scores` is null if the argmax expert is always chosen.
template <class Real>
void set_gates(bool renormalize, const GatedRow<Real>& row, std::span<const int> chosen,
               const Real* scores = nullptr) {
  Real total = 0;
  for (const int e : chosen) total += row.probabilities[e];
  if (renormalize && total == 0 && scores && !chosen.empty())
    return set_softmax_of_chosen(scores, chosen, row.gates);
  for (const int e : chosen) row.gates[e] = renormalize ? row.probabilities[e] / total : row.probabilities[e];
}

/// Marks the experts with r_e above a threshold by gate 1; if there is none, the expert with the largest
/// score. `scratch.chosen` ← the experts, ascending.
template <class Real>
void mark_above(Real threshold, const GatedRow<Real>& row, int experts, GatingScratch<Real>& scratch) {
  scratch.chosen.clear();
  for (int e = 0; e < experts; ++e) {
    if (row.probabilities[e] > threshold) scratch.chosen.push_back(e);
  }
  if (scratch.chosen.empty()) return mark_largest(1, row, nullptr, experts, scratch);
  for (const int e : scratch.chosen) row.gates[e] = 1;
}

// Evaluations of a mixture in addition to `gating.eval`: every expert weighted by r, or the argmax expert
// alone.

/// A gating with gate_e = r_e for every expert, r the probabilities of `gating`, which must outlive it.
template <class Real>
std::unique_ptr<Gating<Real>> make_soft_gating(const Gating<Real>& gating);

/// A gating with gate 1 for the largest r_e + bias_e, without capacities. Ties go to the largest score.
template <class Real>
std::unique_ptr<Gating<Real>> make_top1_gating(const Gating<Real>& gating);

}  // namespace moelab
