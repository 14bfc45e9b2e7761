#pragma once

/// Options of least-squares fits, see least_squares.h.

#include <optional>

#include "sim/base/one_of.h"

namespace moelab {

/// Maximum likelihood in place of least squares, see sim/train/gaussian_experts.h.
struct LikelihoodOptions {
  bool gate = true;
  bool slope = true;
  std::optional<double> variance = std::nullopt;
  void bind(Fields& fields);
};

/// The training rule "lbfgs".
struct LeastSquaresOptions {
  int memory = 20;                             ///< pairs of steps and gradient changes kept
  std::optional<double> bound = std::nullopt;  ///< largest absolute value of a parameter
  std::optional<LikelihoodOptions> likelihood = std::nullopt;
  void bind(Fields& fields);
};

/// `train.start`.
struct FitStartAxis {
  using Entry = KindEntry;
  static const std::vector<KindEntry>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "start";
};
using FitStart = OneOf<FitStartAxis>;

/// At the model's own initial weights.
struct ColdStartOptions {
  int tries = 2;
  void bind(Fields& fields);
};
/// At the true measure of the data, each parameter moved by N(0, perturbation²).
struct WarmStartOptions {
  double perturbation = 0.1;
  int tries = 2;
  void bind(Fields& fields);
};
/// At many places, of which the lowest minimum is kept: near the true measure, at the clusters of k-means and
/// at weights of the model's own in turn.
struct BestStartOptions {
  int starts = 20;
  double perturbation = 0.1;
  int rows = 4000;
  int evaluations = 300;
  int polished = 5;
  void bind(Fields& fields);
};

}  // namespace moelab
