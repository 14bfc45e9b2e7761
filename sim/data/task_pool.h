#pragma once

/// A pool of linear tasks that are learned one after another (Li, Lin, Duan, Liang, Shroff 2025).

#include <optional>

#include "sim/data/problem.h"

namespace moelab {

/// N tasks in K groups. A sample is a sequence of s rows of one task: x ∈ R^d and y = w_n·x. The paper calls
/// it X_t.
///
/// - Task n is in group n mod K. The first task of a group has w_n uniform on the sphere of radius σ0. The
///   others differ from it by N(0, within² I).
/// - One row at a random place is the signal β v_n, unless `signal` is none. The others are
///   N(0, noise_std² I). `noise_norm` scales them to this norm.
/// - With `support` k, the vectors w_n and v_n and all rows fill k coordinates. Coordinate k + j is a copy of
///   coordinate j mod k times 1e-3 · N(0, 1). Each coordinate of a sample has one factor, as in the public
///   code.
struct TaskPoolOptions {
  enum class Signal { none, independent, parallel };
  int tasks = 7;
  int groups = 3;
  int dim = 10;
  int rows = 6;
  double weight_norm = 0.4;
  double within = 0.002;
  Signal signal = Signal::independent;
  double signal_norm = 6;
  double signal_scale = 1;
  double noise_std = 1;
  std::optional<double> noise_norm = std::nullopt;
  std::optional<int> support = std::nullopt;
  void bind(Fields& fields);
};

/// The tasks of a pool: w and v (N, d), and the group of each task.
struct TaskPool {
  Matrix weights;
  Matrix signals;  ///< (0, 0) without signals
  std::vector<int> groups;
};

}  // namespace moelab
