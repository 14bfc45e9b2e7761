#pragma once

/// The axis of routers: a router computes scores γ(x; W) (n, E), which a gating turns into gates.

#include <algorithm>
#include <memory>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/kernels/kernels.h"
#include "sim/data/layout.h"
#include "sim/model/parameters.h"

namespace moelab {

/// The setting of a router in a model.
struct RouterSetting {
  int input_dim = 0;  ///< d, columns of the rows it reads
  int experts = 0;    ///< E
  int layer = 0;      ///< 0 … layers − 1
  int layers = 1;
  ImageShape image = {};  ///< set if the rows are images, channel after channel
  bool causal = false;    ///< a row's scores must not depend on later rows of its sequence
};

/// The batch that a router reads.
template <class Real>
struct RouterContext {
  View<const Real> x;     ///< (n, d) rows; a sequence is s consecutive rows
  int tokens = 1;         ///< s
  int group_rows = 0;     ///< consecutive rows whose statistics are computed together; 0: all rows
  bool training = false;  ///< in a training step, in which a router may learn in its own way
  double progress = 0;    ///< State::progress
  LayerSignals<Real> signals;
  const double* state = nullptr;  ///< the router's own part of State::values
};

/// What a forward pass returns in addition to the scores.
template <class Real>
struct RouterOutput {
  double added_loss = 0;           ///< a term of the router that a training step adds to the loss
  const Real* features = nullptr;  ///< (n, feature_dim), if the router gives features to the experts
  /// (n, d): experts read x times these, entry by entry. No gradient goes through them.
  const Real* expert_input_weights = nullptr;
  /// r (n, padded(E)) before tokens mix their routing; null for routers that do not mix.
  const Real* base_probabilities = nullptr;
};

/// What a backward pass reads and writes. Arrays that are not needed are null.
template <class Real>
struct RouterGradients {
  const Real* scores = nullptr;    ///< ∂L/∂γ (n, padded(E)), padding zero
  const Real* features = nullptr;  ///< ∂L/∂features (n, feature_dim); null if no expert reads them
  Real* parameters = nullptr;      ///< ∂L/∂parameters, overwritten
  Real* inputs = nullptr;          ///< ∂L/∂x (n, padded(d)), overwritten
};

/// A router. Immutable: it knows the layout of its parameters and state, and is called once per batch. Unless
/// it says otherwise, it has no parameters, and its scores have no gradient.
template <class Real>
class Router {
 public:
  virtual ~Router() = default;
  /// Free parameters.
  virtual std::size_t parameter_count() const { return 0; }
  /// Entries of the parameter block, padding included; a multiple of kernels::kPadding.
  virtual std::size_t block_size() const { return 0; }
  /// Entries at the front of the block that never learn, whatever `trainable` says.
  virtual std::size_t frozen_size() const { return 0; }
  /// Starting values. Expert e's row does not depend on E.
  virtual void initialize(const Start& /*start*/, Real* /*parameters*/) const {}
  virtual std::unique_ptr<Scratch> make_scratch() const { return std::make_unique<Scratch>(); }
  /// scores (n, padded(E)) ← γ(x).
  virtual RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters,
                                     Scratch& scratch, Real* scores) const = 0;
  /// The backward pass of the last forward pass with this scratch: ∂L/∂parameters = (∂γ/∂parameters)^T ∂L/∂γ,
  /// and so on.
  virtual void backward(const RouterContext<Real>& context, const Real* /*parameters*/, Scratch& /*scratch*/,
                        const RouterGradients<Real>& gradients) const {
    std::fill_n(gradients.parameters, block_size(), Real(0));
    if (!gradients.inputs) return;
    std::fill_n(gradients.inputs, entries(context.x.rows, kernels::padded(context.x.columns)), Real(0));
  }
  /// Whether scores of a row depend on the other rows of its group.
  virtual bool couples_rows() const { return false; }
  /// Width of the features that the router gives to the experts; 0 for most routers.
  virtual int feature_dim() const { return 0; }
  /// Arrays for saving. If γ is linear in x, "router_weight" (E, d) holds its rows.
  virtual std::vector<NamedArray<Real>> arrays(const Real* /*parameters*/) const { return {}; }

  /// State that training changes in addition to the parameters: the arrays, their start, and their updates at
  /// the beginning and end of a step. Only a trainer calls the updates.
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
  bool needs_image = false;         ///< reads rows that begin with an image
  bool needs_attention = false;     ///< reads LayerSignals::attention
  bool reads_first_inputs = false;  ///< computes scores from LayerSignals::first_inputs
  bool learns_in_state = false;     ///< learns in its state, without a gradient
  bool mixes_tokens = false;        ///< the scores of a token depend on other tokens of its sequence
  bool leaves_base = false;         ///< leaves RouterOutput::base_probabilities
  /// Describes where scores depend on later rows in spite of RouterSetting::causal; see
  /// GatingKind::looks_ahead.
  std::string (*looks_ahead)(const AnyOptions&) = nullptr;
  /// The field that makes the router read LayerSignals::labels ("kind": every router of the kind does). Null:
  /// none.
  const char* (*needs_labels)(const AnyOptions&) = [](const AnyOptions&) -> const char* { return nullptr; };
  /// Whether the last of its arrays "router_…" with a row per expert starts N(0, init_scale² / columns).
  bool starts_at_rows = false;
  /// Whether training moves a router of these options.
  bool (*trainable)(const AnyOptions&) = [](const AnyOptions&) { return true; };
  /// See Start::train_rows.
  bool (*needs_train_rows)(const AnyOptions&) = [](const AnyOptions&) { return false; };
  /// Checks the options beyond single fields. Throws InvalidOption. Null: nothing to check.
  void (*check)(const AnyOptions&, int experts) = nullptr;
};

/// The table of routers. A new router is one file and one line in router.cpp.
struct RouterAxis {
  using Entry = RouterKind;
  static const std::vector<RouterKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "router";
};
using RouterOptions = OneOf<RouterAxis>;

/// The entry of a router class `Made<Real>` whose constructor takes (Options, RouterSetting). Every router's
/// options have a field `bool trainable`.
template <class Options, template <class> class Made>
RouterKind router_kind(std::string name, std::string help, Options example = {}) {
  RouterKind kind{{std::move(name), std::move(help), Options{}, std::move(example)}};
  kind.make = {make_from<Router<float>, Options, Made<float>, const RouterSetting&>,
               make_from<Router<double>, Options, Made<double>, const RouterSetting&>};
  kind.trainable = [](const AnyOptions& options) { return options.get<Options>().trainable; };
  return kind;
}

bool is_trainable(const RouterOptions& options);

/// Makes a router. Throws InvalidOption if the router cannot read such inputs.
template <class Real>
std::unique_ptr<Router<Real>> make_router(const RouterOptions& options, const RouterSetting& setting) {
  return options.entry().make.of<Real>()(options.options(), setting);
}

}  // namespace moelab
