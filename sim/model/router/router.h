#pragma once

/// The axis of routers: scores γ(x; W) (n, E), from which gating makes gates.

#include <memory>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/data/layout.h"
#include "sim/model/parameters.h"

namespace moelab {

/// Where a router stands: what its scores are for.
struct RouterSetting {
  int input_dim = 0;  ///< d, columns of the rows it reads
  int experts = 0;    ///< E
  int layer = 0;      ///< of `layers`
  int layers = 1;
  ImageShape image = {};  ///< where the rows it reads are images, channel after channel
  bool causal = false;    ///< scores of a row are from rows up to its own in the sequence
};

/// A batch as a router sees it.
template <class Real>
struct RouterContext {
  View<const Real> x;     ///< (n, d) rows; the tokens of a sequence are s rows one after another
  int tokens = 1;         ///< s
  int group_rows = 0;     ///< rows whose statistics belong together, one after another; 0 for all
  bool training = false;  ///< a step's gradient, for what a router learns beside the loss
  double progress = 0;    ///< State::progress
  LayerSignals<Real> signals;
  const double* state = nullptr;  ///< the router's own part of State::values
};

/// What a forward pass leaves beside the scores.
template <class Real>
struct RouterOutput {
  double added_loss = 0;           ///< what a training step adds to the loss for the router's own sake
  const Real* features = nullptr;  ///< (n, feature_dim), for routers that hand features on to the experts
  /// (n, d): experts read these times x, entry by entry, in place of x; no gradient goes through them.
  const Real* expert_input_weights = nullptr;
  /// r (n, padded(E)) before tokens mixed their routing, where they do.
  const Real* base_probabilities = nullptr;
};

/// What a backward pass reads and writes. Arrays that nobody asked for are null.
template <class Real>
struct RouterGradients {
  const Real* scores = nullptr;    ///< ∂L/∂γ (n, padded(E)), padding zero
  const Real* features = nullptr;  ///< ∂L/∂features (n, feature_dim); null where no expert reads them
  Real* parameters = nullptr;      ///< ∂L/∂parameters, overwritten
  Real* inputs = nullptr;          ///< ∂L/∂x (n, padded(d)), overwritten
};

/// Immutable: it knows the layout of parameters and state in the model's buffers. Called once per batch.
template <class Real>
class Router {
 public:
  virtual ~Router() = default;
  /// Free parameters.
  virtual std::size_t parameter_count() const = 0;
  /// Entries of the parameter block, padding included; a multiple of kernels::kPadding.
  virtual std::size_t block_size() const = 0;
  /// Entries at the front of the block that stay at their start, beside what `trainable` says of the whole.
  virtual std::size_t frozen_size() const { return 0; }
  /// Starting values. Expert e's row does not depend on E.
  virtual void initialize(const Start& start, Real* parameters) const = 0;
  virtual std::unique_ptr<Scratch> make_scratch() const { return std::make_unique<Scratch>(); }
  /// scores (n, padded(E)) ← γ(x).
  virtual RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters,
                                     Scratch& scratch, Real* scores) const = 0;
  /// Of the last forward pass with that scratch: ∂L/∂parameters = (∂γ/∂parameters)^T ∂L/∂γ, and so on.
  virtual void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                        const RouterGradients<Real>& gradients) const = 0;
  /// Whether scores of a row depend on the other rows of its group.
  virtual bool couples_rows() const { return false; }
  /// Width of what the router hands on to the experts, beside their own inputs: 0 for most.
  virtual int feature_dim() const { return 0; }
  /// Arrays for saving; "router_weight" (E, d) holds the rows that meet the input, where γ is linear in x.
  virtual std::vector<NamedArray<Real>> arrays(const Real* parameters) const = 0;

  /// What training changes beside the parameters: its arrays, their start, and what the beginning and the end
  /// of a step do to them, which only a trainer calls.
  virtual std::vector<StateArray> state_arrays() const { return {}; }
  virtual void start_state(const Start& /*start*/, double* /*state*/) const {}
  virtual void begin_step(double /*progress*/, const Real* /*parameters*/, double* /*state*/) const {}
  virtual void end_step(const Scratch& /*of the forward pass*/, double* /*state*/) const {}
};

template <class Real>
using MakeRouter = std::unique_ptr<Router<Real>>(const AnyOptions&, const RouterSetting&);

/// An entry of the table of routers.
struct RouterKind : KindEntry {
  PerPrecision<MakeRouter> make = {};
  bool needs_image = false;         ///< reads rows that lead with an image
  bool needs_attention = false;     ///< reads LayerSignals::attention
  bool reads_first_inputs = false;  ///< makes scores of LayerSignals::first_inputs
  bool learns_in_state = false;     ///< what is trainable of it is its state, which no gradient moves
  bool mixes_tokens = false;        ///< the scores of a token depend on the sequence that it stands in
  bool leaves_base = false;         ///< leaves RouterOutput::base_probabilities
  /// Where scores depend on later rows though RouterSetting::causal; see GatingKind::looks_ahead.
  std::string (*looks_ahead)(const AnyOptions&) = nullptr;
  /// The field whose value has it read LayerSignals::labels ("kind" where all of the kind do); null: none.
  const char* (*needs_labels)(const AnyOptions&) = [](const AnyOptions&) -> const char* { return nullptr; };
  /// The last of its arrays "router_…" with a row for each expert starts N(0, init_scale² / columns).
  bool starts_at_rows = false;
  /// Whether training moves a router of these options.
  bool (*trainable)(const AnyOptions&) = [](const AnyOptions&) { return true; };
  /// See Start::train_rows.
  bool (*needs_train_rows)(const AnyOptions&) = [](const AnyOptions&) { return false; };
  /// What options have to satisfy beyond their fields. Throws InvalidOption; null for nothing.
  void (*check)(const AnyOptions&, int experts) = nullptr;
};

/// The table: adding a router is a new file and a line in routers.cpp.
struct RouterAxis {
  using Entry = RouterKind;
  static const std::vector<RouterKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "router";
};
using RouterOptions = OneOf<RouterAxis>;

/// Adds a kind to the table, for programs and tests that bring their own.
void add_router_kind(RouterKind kind);

/// The entry of a router class `Made<Real>` that is made from (Options, RouterSetting). Options of every
/// router have a field `bool trainable`.
template <class Options, template <class> class Made>
RouterKind router_kind(std::string name, std::string help, Options example = {}) {
  RouterKind kind{{std::move(name), std::move(help), Options{}, std::move(example)}};
  kind.make = {make_from<Router<float>, Options, Made<float>, const RouterSetting&>,
               make_from<Router<double>, Options, Made<double>, const RouterSetting&>};
  kind.trainable = [](const AnyOptions& options) { return options.get<Options>().trainable; };
  return kind;
}

bool is_trainable(const RouterOptions& options);

/// Throws InvalidOption where the router cannot read such inputs.
template <class Real>
std::unique_ptr<Router<Real>> make_router(const RouterOptions& options, const RouterSetting& setting) {
  return options.entry().make.of<Real>()(options.options(), setting);
}

}  // namespace moelab
