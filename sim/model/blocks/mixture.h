#pragma once

/// One mixture of experts: a router, a gating and a bank of experts.

#include <cmath>
#include <optional>
#include <vector>

#include "sim/model/blocks/block.h"
#include "sim/model/expert/expert.h"
#include "sim/model/router/router.h"

namespace moelab {

// Slots: the gating mixes rows into slots, and the experts read slots.

/// The arrays of a batch's passes. Slots are stored group by group, and expert by expert within a group.
template <class Real>
struct SlotScratch {
  Routing<Real> routing;                    ///< each slot to its expert, gates 1
  AlignedVector<Real> gates;                ///< gates of `routing`
  AlignedVector<Real> rows;                 ///< X (n, padded(d))
  AlignedVector<Real> slots, of_slots;      ///< D^T X (slots, padded(d)) and its gradient
  AlignedVector<Real> outputs, of_outputs;  ///< experts' outputs (slots, padded(o)) and their gradient
};

/// outputs (n, padded(o)) ← C f(D^T X), group by group, with D and C in `gating`.
template <class Real>
void forward_slots(const View<const Real>& x, const GatingScratch<Real>& gating, const ExpertBank<Real>& bank,
                   const Real* parameters, Scratch& bank_scratch, SlotScratch<Real>& scratch,
                   const View<Real>& outputs, bool keep);

/// Writes the gradients of the bank's parameters, of D and C (in `gating`) and, unless null, of X (n,
/// padded(d)) from gradients.outputs. Does not touch gradients.gates. For the batch of the last forward pass
/// with `keep`.
template <class Real>
void backward_slots(GatingScratch<Real>& gating, const ExpertBank<Real>& bank, const Real* parameters,
                    Scratch& bank_scratch, SlotScratch<Real>& scratch, int input_dim, int output_dim,
                    const ExpertGradients<Real>& gradients);

/// The parts of a mixture.
template <class Real>
struct MixtureParts {
  std::unique_ptr<Router<Real>> router;
  std::unique_ptr<ExpertBank<Real>> bank;
  bool router_trainable = true;
  int layer = 0;
  int experts = 0;       ///< E, the experts that the router scores
  int null_experts = 0;  ///< the last of these experts, which have no network
  double jitter = 0;     ///< training steps multiply what the router reads by U[1 − jitter, 1 + jitter]
  int input_dim = 0;     ///< d, columns of the rows
  int output_dim = 0;    ///< o
  int image_size = 0;    ///< leading columns that only the router reads
  /// The gating whose parameters the mixture holds; null for none. Outlives the mixture.
  const Gating<Real>* learned_gating = nullptr;
  /// The training gating, whose state the mixture holds; null for none.
  const Gating<Real>* train_gating = nullptr;
  std::optional<double> balance_rate;  ///< rate of loss-free balancing; empty: no selection biases
  BalanceRule balance_rule = BalanceRule::sign;
};

/// The arrays of a batch's passes: routing, scores, outputs of pairs.
template <class Real>
struct MixtureScratch final : Scratch {
  GatingScratch<Real> gating;
  RouterOutput<Real> router_output;
  std::unique_ptr<Scratch> router, bank;
  AuxiliaryScratch auxiliary;
  AlignedVector<Real> scores;
  AlignedVector<Real> expert_inputs, expert_input_gradient, router_input_gradient, feature_gradient;
  AlignedVector<Real> gate_gradient, probability_gradient;
  AlignedVector<Real> pair_outputs, pair_gradient, spread_gradient;
  AlignedVector<Real> jitter, jittered, jittered_gradient;
  SlotScratch<Real> slots;
  int tokens = 1;             ///< s of the batch
  Targets<Real> targets;      ///< of the batch, if it is one of training
  std::vector<double> moves;  ///< (E) ‖Δw_e‖ of a step that moves experts before its gradient; else empty

  const Routing<Real>& routing() const { return gating.routing; }
};

/// A mixture of experts: f(x) = Σ_e gate_e(x) expert_e(x) for rows x (n, d).
///
/// Parameters: [router | gating | experts]. State, in this order:
/// - the router's state.
/// - `selection_bias` (E) with loss-free balancing. A step moves each bias by the rate, against the sign of
///   the expert's load error. The load error is its number of rows minus the mean.
/// - the training gating's state.
/// - `router_jitter` (3) with jitter.
template <class Real>
class Mixture final : public Block<Real> {
 public:
  explicit Mixture(MixtureParts<Real> parts);

  int experts() const { return parts_.experts; }
  int layer() const { return parts_.layer; }
  bool router_couples_rows() const { return parts_.router->couples_rows(); }
  /// Experts that are networks.
  int networks() const { return parts_.experts - parts_.null_experts; }
  std::size_t parameters_per_expert() const { return parts_.bank->parameters_per_expert(); }
  std::size_t expert_block_size() const { return parts_.bank->expert_block_size(); }
  std::vector<std::size_t> expert_part_ends() const { return parts_.bank->expert_part_ends(); }
  int output_stride() const;
  /// Entries of the router's part of the parameters, which comes first, and its arrays.
  std::size_t router_size() const { return gating_begin_; }
  std::vector<NamedArray<Real>> router_arrays(const Real* parameters) const {
    return parts_.router->arrays(parameters);
  }

  /// Scores, probabilities and gates of a batch, without the experts.
  void route(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& values,
             const LayerSignals<Real>& signals, MixtureScratch<Real>& scratch) const;
  /// The outputs x̃ (n, E, padded(o)) before gates at active pairs, of the last forward pass with `keep`.
  /// Null if experts read slots.
  const Real* pair_outputs(const BlockValues<Real>& values, MixtureScratch<Real>& scratch) const;
  /// The last batch as auxiliary losses read it. `with_outputs` needs a forward pass with `keep`.
  RoutedBatch<Real> routed_batch(const MixtureScratch<Real>& scratch, bool with_outputs) const;

  int output_dim() const override { return parts_.output_dim; }
  std::size_t parameter_count() const override;
  std::size_t block_size() const override { return experts_begin_ + parts_.bank->block_size(); }
  std::vector<ParameterGroup> groups() const override;
  void initialize(const Start& start, Real* parameters) const override;
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override;
  std::vector<StateArray> state_arrays() const override;
  void start_state(const Start& start, double* state) const override;
  void begin_step(double progress, const Real* parameters, double* state) const override;
  void end_step(const Scratch& scratch, double* state) const override;
  std::unique_ptr<Scratch> make_scratch() const override;
  void forward(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& values,
               LayerSignals<Real>& signals, Scratch& scratch, const View<Real>& outputs) const override;
  void backward(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& values,
                const LayerSignals<Real>& signals, Scratch& scratch, const View<const Real>& outputs,
                const Real* output_gradient, Real* gradient, Real* input_gradient) const override;
  double added_loss(const Pass<Real>& pass, const BlockValues<Real>& values, Scratch& scratch) const override;

 private:
  RouterContext<Real> router_context(const Pass<Real>& pass, const View<const Real>& inputs,
                                     const BlockValues<Real>& values,
                                     const LayerSignals<Real>& signals) const;
  /// `x` holds the rows that the router reads.
  GatingContext<Real> gating_context(const Pass<Real>& pass, const View<const Real>& x,
                                     const BlockValues<Real>& values,
                                     const MixtureScratch<Real>& scratch) const;
  View<const Real> expert_inputs(const View<const Real>& inputs, MixtureScratch<Real>& scratch) const;
  /// Rows that are routed together in a batch of `rows` rows.
  static int group_rows(const Pass<Real>& pass, int rows);
  bool is_jittered(const Pass<Real>& pass) const { return pass.training && parts_.jitter > 0; }
  View<const Real> jittered(const View<const Real>& x, const BlockValues<Real>& values,
                            MixtureScratch<Real>& scratch) const;
  void move_biases(const Routing<Real>& routing, double* biases) const;
  void backward_scores(const Pass<Real>& pass, const RouterContext<Real>& context,
                       const BlockValues<Real>& values, MixtureScratch<Real>& scratch, Real* gradient,
                       const View<Real>& of_inputs) const;
  void backward_router(const RouterContext<Real>& context, const BlockValues<Real>& values,
                       MixtureScratch<Real>& scratch, Real* gradient, Real* router_input_gradient) const;

  MixtureParts<Real> parts_;
  int expert_dim_;             ///< columns that the experts read
  bool experts_read_rows_;     ///< experts read the unchanged rows: no image to omit, no features to add
  std::size_t gating_begin_;   ///< begin of the gating's part of the parameters
  std::size_t experts_begin_;  ///< begin of the bank's part
  std::size_t router_state_;   ///< size of the router's state
  std::size_t gating_state_;   ///< begin of the gating's state
  std::size_t jitter_state_;   ///< begin of the jitter's state
};

// Rotary positions (Su et al. 2021).

/// Rotates the pairs (j, j + k/2) of a row at place t by the angle t 10000^(−2j/k).
template <class Real>
class Turns {
 public:
  Turns(int tokens, int key_dim) : half_(key_dim / 2) {
    for (int t = 0; t < tokens; ++t) {
      for (int j = 0; j < half_; ++j) {
        const double angle = t * std::pow(kBase, -static_cast<double>(j) / half_);
        cosines_.push_back(static_cast<Real>(std::cos(angle)));
        sines_.push_back(static_cast<Real>(std::sin(angle)));
      }
    }
  }

  /// `direction` is 1, or −1 for the inverse rotation.
  void turn(int place, Real direction, Real* values) const {
    const std::size_t first = static_cast<std::size_t>(place) * static_cast<std::size_t>(half_);
    for (int j = 0; j < half_; ++j) {
      const std::size_t at = first + static_cast<std::size_t>(j);
      const Real cosine = cosines_[at], sine = direction * sines_[at];
      const Real left = values[j], right = values[j + half_];
      values[j] = cosine * left - sine * right;
      values[j + half_] = sine * left + cosine * right;
    }
  }

 private:
  static constexpr double kBase = 10000;
  int half_;
  std::vector<Real> cosines_, sines_;  // (s, k / 2)
};

}  // namespace moelab
