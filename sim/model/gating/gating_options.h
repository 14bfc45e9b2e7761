#pragma once

/// The options of the gatings that come with the program.

#include <optional>

#include "sim/base/options.h"
#include "sim/model/temperature.h"

namespace moelab {

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

}  // namespace moelab
