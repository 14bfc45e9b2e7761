#pragma once

/// State, starting values, scratch and signals of the parts of a model.

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/random.h"
#include "sim/model/attention_state.h"

namespace moelab {

/// A named array of a component's state, row-major, without padding.
struct StateArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t size() const {
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) product *= extent;
    return product;
  }
};

/// State that training changes in addition to the parameters: selection biases, router statistics, schedule
/// progress. A model is its parameters and its state. Values are exact in both precisions of training.
struct State {
  /// The share of training steps done when the last step began. It stays after training.
  double progress = 0;
  std::vector<double> values;  ///< every component's arrays, one after another; see Network::state_arrays()

  bool operator==(const State&) const = default;
};

// Starting values.

/// The streams for the starting values of a model or layer. Start laws may also need the first rows (≥ E, d)
/// of the training set; null if there are none.
struct Start {
  Seeds seeds;
  const Matrix* train_rows = nullptr;

  Start of_layer(int layer) const { return {seeds.of_layer(layer), layer == 0 ? train_rows : nullptr}; }
};

/// A start law: the distribution of the starting rows w_e of a router that is linear in x.
struct StartLaw {
  std::string name;
  std::string help;
  bool needs_train_rows = false;
  /// row (d) ← the start of w_e, with the router's init_scale. The start of expert e does not depend on E.
  void (*fill)(const Start& start, int expert, double init_scale, std::span<double> row) = nullptr;
};

/// The table of start laws. A new law is one file and one line in router/router.cpp.
const std::vector<StartLaw>& start_laws();
const StartLaw& start_law(const std::string& name);
std::vector<std::string> start_law_names();

// Temporary arrays of a part of a model. They need not be kept, copied or compared.

/// Temporary arrays of a router, expert bank or block; each derives its own class. make_scratch() makes it,
/// and the passes take it. A backward pass reads what the forward pass of the same batch left here.
class Scratch {
 public:
  virtual ~Scratch() = default;
  /// The scratch of the inner block, if a block wraps another.
  virtual Scratch& innermost() { return *this; }
};

/// A named array of parameters, padding removed, for saving.
template <class Real>
struct NamedArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<Real> values;
  /// Whether saving divides each row of this array and of the next one by the length of both together.
  bool unit_with_next = false;
};

/// The entries of a matrix, row-major, without padding.
template <class Value>
std::vector<std::remove_const_t<Value>> values_of(const View<Value>& matrix) {
  std::vector<std::remove_const_t<Value>> values;
  values.reserve(entries(matrix.rows, matrix.columns));
  for (int i = 0; i < matrix.rows; ++i) {
    for (int j = 0; j < matrix.columns; ++j) values.push_back(matrix(i, j));
  }
  return values;
}

/// Draws the entries of a matrix from N(0, deviation²), row by row.
template <class Real>
void draw_matrix(Engine& engine, double deviation, const View<Real>& matrix) {
  for (int i = 0; i < matrix.rows; ++i) {
    for (int j = 0; j < matrix.columns; ++j) {
      matrix(i, j) = static_cast<Real>(deviation * draw_normal(engine));
    }
  }
}

/// Draws the start of column e from N(0, deviation² I), with the router's stream first + e.
template <class Real>
void draw_columns(const Start& start, double deviation, const View<Real>& matrix, std::uint64_t first = 0) {
  for (int e = 0; e < matrix.columns; ++e) {
    Engine engine = start.seeds.stream(Purpose::router_init, first + static_cast<std::uint64_t>(e));
    draw_matrix(engine, deviation, matrix.middle_columns(e, 1));
  }
}

/// Column e of (d, E) ← the start of w_e by a start law.
template <class Real>
void start_columns(const StartLaw& law, const Start& start, double init_scale, const View<Real>& matrix) {
  std::vector<double> row(size(matrix.rows));
  for (int e = 0; e < matrix.columns; ++e) {
    law.fill(start, e, init_scale, row);
    for (int j = 0; j < matrix.rows; ++j) matrix(j, e) = static_cast<Real>(row[size(j)]);
  }
}

// Values that blocks pass to the routers of later blocks, in addition to the rows.

/// The signals that pass through the list of blocks. Each block reads the signals of earlier blocks and adds
/// its own.
template <class Real>
struct LayerSignals {
  /// The model's own inputs (n, d).
  View<const Real> first_inputs;
  /// The true cluster of each row (n); null if it is unknown.
  const int* labels = nullptr;
  /// Inputs (n, d) and routing probabilities r (n, E) of the previous mixture; empty before the first.
  View<const Real> previous_inputs;
  View<const Real> previous_probabilities;
  /// The state of the attention block that wrote the rows; null if there is none.
  const AttentionState<Real>* attention = nullptr;
  /// A router's backward pass adds ∂L/∂(attention state) here; null if there is no attention block.
  AttentionGradients<Real>* attention_gradients = nullptr;
};

// Temperature schedules.

enum class TauSchedule { linear, cosine, geometric };

/// τ between `start` and `end` at a share `progress` of the training steps.
inline double temperature_at(double start, double end, TauSchedule schedule, double progress) {
  if (schedule == TauSchedule::geometric) return start * std::pow(end / start, progress);
  const bool is_cosine = schedule == TauSchedule::cosine;
  const double share = is_cosine ? (1 - std::cos(std::numbers::pi * progress)) / 2 : progress;
  return start + (end - start) * share;
}

}  // namespace moelab
