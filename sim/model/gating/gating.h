#pragma once

/// The axis of gating: from scores γ (n, E) to probabilities r and gates, and back.

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

// What gatings are made for and what they see.

/// Where a gating stands.
struct GatingSetting {
  int input_dim = 0;  ///< d, columns of the rows that the router reads
  int experts = 0;    ///< E
};

/// A batch as a gating sees it.
template <class Real>
struct GatingContext {
  const Real* scores = nullptr;  ///< γ (n, padded(E))
  int rows = 0;
  int experts = 0;
  /// (E), added to r when experts are selected (loss-free balancing); null where there are none.
  const double* selection_bias = nullptr;
  const Real* parameters = nullptr;  ///< the gating's own block
  View<const Real> x = {};           ///< (n, d), what the router reads
  bool training = false;             ///< a step's pass: noise is drawn in no other
  double progress = 0;               ///< State::progress
  int group_rows = 0;                ///< rows that are routed together, one after another; 0 for all
  const double* state = nullptr;     ///< the gating's own part of State::values, in training alone
};

// The options of the gatings that come with the program.

/// gate_e = r_e = softmax(γ)_e; pairs with r_e < skip_below are left out: zero output, zero gradient.
struct SoftGatingOptions {
  /// Unset: what the training rule makes harmless, see default_skip_below().
  std::optional<double> skip_below = std::nullopt;
  void bind(Fields& fields);
};
/// A limit on the rows of an expert: of the S pairs that are selected in a group of rows each expert keeps at
/// most C = ⌈capacity_factor · S / E⌉, and a dropped pair has gate 0; the other gates of its row stay.
struct CapacityOptions {
  /// Who is kept: first choices before second ones, then in the order of rows (GShard, Switch); the largest
  /// r_e; at random. `next`: rows one after another, and each chooses among the experts with room.
  enum class Drop { order, probability, random, next };
  std::optional<double> capacity_factor = std::nullopt;  ///< unset: no limit
  Drop drop = Drop::order;
  void bind(Fields& fields);
};
/// Gate 1 for the largest score (r + bias with biases); no gradient reaches the router, unless it goes
/// straight through: as though the gate were r_e.
struct Top1GatingOptions {
  bool straight_through = false;
  CapacityOptions capacity = {};
  void bind(Fields& fields);
};
/// The K largest scores; gate_e = r_e / Σ_selected r when renormalised, else r_e. The selection is held fixed
/// in the backward pass.
struct TopKGatingOptions {
  int k = 1;
  std::optional<bool> renormalize = std::nullopt;  ///< unset: for K > 1
  CapacityOptions capacity = {};
  void bind(Fields& fields);
};
/// gate_e = σ(γ_e) of the K largest scores (of σ(γ_e) + bias with biases; DeepSeek-V3), or of every expert;
/// over their sum when renormalised. r_e = σ(γ_e) / Σ_j σ(γ_j).
struct SigmoidGatingOptions {
  std::optional<int> k = std::nullopt;             ///< unset: every expert
  std::optional<bool> renormalize = std::nullopt;  ///< unset: for K > 1
  CapacityOptions capacity = {};
  void bind(Fields& fields);
};
/// The K largest of noisy scores h. `learned` (Shazeer et al. 2017): h = γ + s ∘ ε, s = softplus(x W_noise) +
/// 0.01, ε ~ N(0, 1), gates and r of softmax(h). `uniform` (Chen et al. 2022): h = γ + u, u ~ U[0, 1), gates
/// and r of softmax(γ). Without noise but in training steps, where it is drawn anew in each.
struct NoisyTopKGatingOptions {
  enum class Noise { learned, uniform };
  int k = 2;
  Noise noise = Noise::learned;
  std::optional<bool> renormalize = std::nullopt;  ///< unset: for K > 1
  CapacityOptions capacity = {};
  void bind(Fields& fields);
};
/// Each expert takes the C = ⌈capacity_factor · n / E⌉ rows of a group of n with the largest r_e (Zhou et al.
/// 2022); gate r_e. A row has from none to all of the experts.
struct ExpertChoiceGatingOptions {
  double capacity_factor = 2;
  void bind(Fields& fields);
};
/// gate_e = max(γ_e, 0) (ReMoE); r_e = gate_e over their sum, uniform where all are zero. With `k` the loss
/// has λ E Σ_e f_e mean(gate_e), f_e = #{gate_e > 0} / (n k) held fixed; after each step λ grows by the
/// factor where more than a share k / E of the gates is positive, else it shrinks by it.
struct ReluGatingOptions {
  std::optional<int> k = std::nullopt;
  double l1_start = 1e-8;
  double l1_factor = 1.2;
  void bind(Fields& fields);
};
/// The K largest entries of each row of the transport plan diag(a) exp(γ) diag(b) with equal sums of rows and
/// of columns over a group (S-BASE); gate r_e, for K = 1 σ(γ_e). The selection is held fixed.
struct SinkhornGatingOptions {
  int k = 1;
  double tolerance = 1e-4;  ///< mean change of b between two rounds, in units of which b starts at 1
  int rounds = 100;         ///< at most
  void bind(Fields& fields);
};
/// One expert for each row of a group, none with more than ⌈n / E⌉ of the n rows, so that Σ γ over the chosen
/// pairs is largest (BASE; an exact assignment); gate σ(γ_e). The selection is held fixed.
struct BalancedAssignmentGatingOptions {
  void bind(Fields& /*fields*/) {}
};
/// r = softmax((γ + g) / τ), g ~ Gumbel in training steps; gates r_e of the experts with r_e > threshold, of
/// the likeliest where there is none (EvoMoE). τ moves to `tau_end` over the training steps: dense at first,
/// then sparse; at test time it is that of the last step. The selection is held fixed.
struct DenseToSparseGatingOptions {
  double tau = 2;
  double tau_end = 0.3;
  TauSchedule tau_schedule = TauSchedule::linear;
  double threshold = 1e-3;
  bool gumbel = true;
  bool renormalize = false;
  void bind(Fields& fields);
};
/// Soft MoE: logits γ_e + x·v_ej for slot j of expert e, v_e0 = 0. A slot of a group of rows is their mean
/// weighted by the softmax of its logits over the rows; the experts read slots, and a row gets the outputs of
/// all slots, weighted by the softmax of its logits over the slots; r_e is what of it falls to expert e. With
/// a linear router logits are those of free vectors w_e + v_ej.
struct SoftSlotsGatingOptions {
  int slots = 1;            ///< of each expert
  double init_scale = 1.0;  ///< v_ej starts N(0, init_scale² I / d), j > 0
  void bind(Fields& fields);
};
/// Every expert with r_e > p (a threshold, no nucleus; Nielsen et al. 2025), the likeliest where there is
/// none; gates as for topk. A step has no gradient in p, so the gates of a `learnable` threshold are
/// (r_e − p)⁺ (over their sum when renormalised): the same experts, and exact gradients in r and p. How the
/// paper learns its threshold it does not say.
struct TopPGatingOptions {
  double p = 0.05;
  bool learnable = false;
  bool renormalize = true;
  void bind(Fields& fields);
};

/// A rule that turns scores into gates. Immutable; its parameters, if it has any, lie in a block of the
/// model's buffer for each layer, which gatings of one kind share (`train` and `eval` of one model).
template <class Real>
class Gating {
 public:
  virtual ~Gating() = default;
  /// Free parameters, and the entries of their block: a multiple of kernels::kPadding, or 0.
  virtual std::size_t parameter_count() const { return 0; }
  virtual std::size_t block_size() const { return 0; }
  virtual void initialize(const Start& /*start*/, Real* /*parameters*/) const {}
  virtual std::vector<NamedArray<Real>> arrays(const Real* /*parameters*/) const { return {}; }
  /// What training changes beside the parameters: of the training gating alone; see Router.
  virtual std::vector<StateArray> state_arrays() const { return {}; }
  virtual void start_state(const Start& /*start*/, double* /*state*/) const {}
  virtual void begin_step(double* /*state*/) const {}
  /// `routing` is that of the step's pass.
  virtual void end_step(const Routing<Real>& /*routing*/, double* /*state*/) const {}

  /// Whether the gates of a row depend on the other rows of its group.
  virtual bool couples_rows() const { return false; }
  /// Whether every expert is active on every row: load is then counted by the serving expert.
  virtual bool activates_all() const { return false; }
  /// Whether experts are selected by r + bias, so that biases of the selection have an effect.
  virtual bool selects() const { return false; }
  /// Slots of each expert, for gatings that mix the rows of a group into slots, which the experts then read
  /// in their place, and fill GatingScratch::slots; 0 where experts read rows.
  virtual int slots() const { return 0; }
  /// probabilities, gates and pairs of the batch.
  virtual void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const = 0;
  /// ∂L/∂gates → ∂L/∂scores, both (n, padded(E)); in place is allowed. `gate_gradient` is read at active
  /// pairs only and may be overwritten. `gradient`: of the gating's own parameters, overwritten; null where
  /// it has none.
  virtual void backward(const GatingContext<Real>& context, GatingScratch<Real>& scratch, Real* gate_gradient,
                        Real* score_gradient, Real* gradient) const = 0;
  /// From ∂L/∂scores (n, padded(E)), what the gating's own parameters (of noise, of further slots) add to
  /// their gradient and, unless empty, to ∂L/∂x (n, d). Called once for what came through the gates, after
  /// backward(), and once for what came through the probabilities.
  virtual void add_own_gradient(const GatingContext<Real>& /*context*/, GatingScratch<Real>& /*scratch*/,
                                const Real* /*score_gradient*/, Real* /*gradient*/,
                                const View<Real>& /*input_gradient*/) const {}
  /// The same from ∂L/∂(standard deviations of the noise), (n, padded(E)), of losses that look at it.
  virtual void add_spread_gradient(const GatingContext<Real>& /*context*/, GatingScratch<Real>& /*scratch*/,
                                   const Real* /*spread_gradient*/, Real* /*gradient*/,
                                   const View<Real>& /*input_gradient*/) const {}
  /// What a training step adds to the loss for the gating's own sake; backward() has its gradient.
  virtual double added_loss(const GatingContext<Real>& /*context*/,
                            const GatingScratch<Real>& /*scratch*/) const {
    return 0;
  }
  /// Whether r = softmax(γ).
  virtual bool is_softmax() const { return true; }
  /// ∂L/∂r → ∂L/∂scores (n, padded(E)), in place, for losses on the probabilities; of softmax(γ) unless told.
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
  bool selects = false;        ///< see Gating::selects()
  bool reaches_scores = true;  ///< whether a gradient in the gates reaches the scores
  /// Whether some row may have no expert even without a capacity; null for never.
  bool (*may_leave_rows)(const AnyOptions&, int experts) = nullptr;
  /// Mean of the experts that a row of a group of so many costs, of resolved options; null: `most_experts`.
  double (*experts_per_row)(const AnyOptions&, int experts, double group_rows) = nullptr;
  /// Where the gates of a row depend on rows after it in its group; empty for nowhere, with the ending
  /// " in training" where measuring does not. Null for nowhere, whatever the options.
  std::string (*looks_ahead)(const AnyOptions&) = nullptr;
  /// Experts that a row is sent to at most, or is steered to, of resolved options; 0 where there is no such
  /// number.
  int (*most_experts)(const AnyOptions&) = nullptr;
  /// What options have to satisfy beyond their fields one by one. Throws InvalidOption below `path`; null for
  /// nothing.
  void (*check)(const AnyOptions&, const std::string& path) = nullptr;
};

/// The table: adding a gating is a new file and a line in gatings.cpp.
struct GatingAxis {
  using Entry = GatingKind;
  static const std::vector<GatingKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "gating";
};
using GatingRule = OneOf<GatingAxis>;
void add_gating_kind(GatingKind kind);

/// Mean of the experts that a row of a group of so many costs: all of them where the kind has no number.
double experts_per_row(const GatingRule& rule, int experts, double group_rows);

/// A Made<Real> from its options and, where it asks for it, the setting.
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

// Which experts of a row are chosen, and the gates that they get.

/// A row as gatings that select see it: γ and r (E), and gates to be set, at first all zero.
template <class Real>
struct GatedRow {
  const Real* scores;
  const Real* probabilities;
  Real* gates;
};

/// Marks the k largest of the values by gate 1: of r_e + bias_e, or without biases of the scores, since
/// probabilities may tie where scores do not. Ties go to the lower index. With `room` (E), among the experts
/// that have some, and it shrinks. `scratch.chosen` ← the experts, ascending.
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

/// The softmax of `scores` (E) over the chosen experts alone.
template <class Real>
void set_softmax_of_chosen(const Real* scores, std::span<const int> chosen, Real* gates) {
  Real largest = scores[chosen.front()], total = 0;
  for (const int e : chosen) largest = std::max(largest, scores[e]);
  for (const int e : chosen) total += std::exp(scores[e] - largest);
  for (const int e : chosen) gates[e] = std::exp(scores[e] - largest) / total;
}

/// r_e for the chosen experts, divided by their sum when renormalised. r is increasing in `scores` (E), and
/// like exp of them where it is small: chosen experts may all be so much less likely than others that each r
/// is rounded to 0. Null where the likeliest is always chosen.
template <class Real>
void set_gates(bool renormalize, const GatedRow<Real>& row, std::span<const int> chosen,
               const Real* scores = nullptr) {
  Real total = 0;
  for (const int e : chosen) total += row.probabilities[e];
  if (renormalize && total == 0 && scores && !chosen.empty())
    return set_softmax_of_chosen(scores, chosen, row.gates);
  for (const int e : chosen) row.gates[e] = renormalize ? row.probabilities[e] / total : row.probabilities[e];
}

/// Marks the experts with r_e above a threshold by gate 1, the one of the largest score where there is none.
/// `scratch.chosen` ← the experts, ascending.
template <class Real>
void mark_above(Real threshold, const GatedRow<Real>& row, int experts, GatingScratch<Real>& scratch) {
  scratch.chosen.clear();
  for (int e = 0; e < experts; ++e) {
    if (row.probabilities[e] > threshold) scratch.chosen.push_back(e);
  }
  if (scratch.chosen.empty()) return mark_largest(1, row, nullptr, experts, scratch);
  for (const int e : scratch.chosen) row.gates[e] = 1;
}

// How mixtures are asked beside `gating.eval`: every expert, weighted by r, or the likeliest one alone.

/// gate_e = r_e of every expert, r the probabilities of `gating`, which outlives it.
template <class Real>
std::unique_ptr<Gating<Real>> make_soft_gating(const Gating<Real>& gating);

/// Gate 1 for the largest r_e + bias_e, of equal ones for the largest score. Without capacities.
template <class Real>
std::unique_ptr<Gating<Real>> make_top1_gating(const Gating<Real>& gating);

}  // namespace moelab
