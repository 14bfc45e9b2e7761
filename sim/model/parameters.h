#pragma once

/// What a training step changes beside the parameters.

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/random.h"
#include "sim/model/attention_state.h"

namespace moelab {

/// A named array of a component's state, (shape) row-major without padding.
struct StateArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t size() const {
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) product *= extent;
    return product;
  }
};

/// Selection biases, statistics of routers, progress of schedules: all of them, so that a model is its
/// parameters and this. Values are exact for either precision of training.
struct State {
  /// Share of the training's steps that were done when the last one began; stays after training.
  double progress = 0;
  std::vector<double> values;  ///< every component's arrays, one after another; see Network::state_arrays()

  bool operator==(const State&) const = default;
};

// What starting values may be drawn from.

/// The streams of a model's or a layer's starting values, and the first rows (≥ E, d) of the training set for
/// the start laws that need them (null where there are none).
struct Start {
  Seeds seeds;
  const Matrix* train_rows = nullptr;

  Start of_layer(int layer) const { return {seeds.of_layer(layer), layer == 0 ? train_rows : nullptr}; }
};

/// A law from which the rows w_e of a router that is linear in x start.
struct StartLaw {
  std::string name;
  std::string help;
  bool needs_train_rows = false;
  /// row (d) ← the start of w_e, with the router's init_scale; expert e's does not depend on E.
  void (*fill)(const Start& start, int expert, double init_scale, std::span<double> row) = nullptr;
};

/// The table of start laws: adding one is a new file in sim/model/router/start/ and a line in start_laws.cpp.
const std::vector<StartLaw>& start_laws();
const StartLaw& start_law(const std::string& name);
std::vector<std::string> start_law_names();

// Arrays that a part of a model writes while it works: nothing that has to be kept, copied or compared.

/// What make_scratch() of a router, expert bank or block returns and its passes take back; each derives its
/// own. Backward passes read what the forward pass of the same batch left here.
class Scratch {
 public:
  virtual ~Scratch() = default;
  /// That of the block inside, where a block wraps another.
  virtual Scratch& innermost() { return *this; }
};

/// A named array of parameters, padding removed, for saving.
template <class Real>
struct NamedArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<Real> values;
};

// What the blocks of a model hand on to the routers of later blocks, beside the rows themselves.

/// One value that passes through the list of blocks: each reads what those before it left, and adds its own.
template <class Real>
struct LayerSignals {
  /// The model's own inputs (n, d).
  View<const Real> first_inputs;
  /// The true cluster of each row (n); null where nobody knows it.
  const int* labels = nullptr;
  /// Inputs (n, d) and routing probabilities r (n, E) of the mixture before; empty before the first.
  View<const Real> previous_inputs;
  View<const Real> previous_probabilities;
  /// Of the attention block that handed on the rows; null where there is none.
  const AttentionState<Real>* attention = nullptr;
  /// Where a router's backward pass adds to ∂L/∂(that state); null as above.
  AttentionGradients<Real>* attention_gradients = nullptr;
};

// Temperatures that move over a training.

enum class TauSchedule { linear, cosine, geometric };

/// τ between its start and its end at a share of the training steps.
inline double temperature_at(double start, double end, TauSchedule schedule, double progress) {
  if (schedule == TauSchedule::geometric) return start * std::pow(end / start, progress);
  const bool is_cosine = schedule == TauSchedule::cosine;
  const double share = is_cosine ? (1 - std::cos(std::numbers::pi * progress)) / 2 : progress;
  return start + (end - start) * share;
}

}  // namespace moelab
