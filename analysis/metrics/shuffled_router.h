#pragma once

/// The baseline of sparsity: the same linear router with its columns shuffled (Dikkala et al. 2023). Gives
/// `probabilities`.

#include <vector>

#include "sim/base/aligned.h"
#include "sim/base/random.h"
#include "sim/base/types.h"

namespace moelab {

/// A linear router W (E, d) and copies of it whose columns are permuted, by the same permutation for every
/// expert. The permutation of shuffle s is drawn from the stream (shuffles, s) of `seeds`, as in a run.
class ShuffledRouter {
 public:
  ShuffledRouter(const Eigen::Ref<const Matrix>& weight, const Seeds& seeds, int shuffles);

  int shuffles() const { return static_cast<int>(weights_.size()) - 1; }

  /// Rows of probabilities, (n, E), until the next call.
  using Probabilities = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
  /// softmax(W x) for each row of inputs (n, d).
  Probabilities route(const Matrix& inputs) { return route(weights_.front(), inputs); }
  /// The same with the columns of shuffle s, 0 … shuffles − 1.
  Probabilities route_shuffled(int s, const Matrix& inputs) {
    return route(weights_.at(static_cast<std::size_t>(s) + 1), inputs);
  }

 private:
  Probabilities route(const AlignedVector<double>& weight, const Matrix& inputs);

  int experts_, width_, stride_;
  std::vector<AlignedVector<double>> weights_;  // W^T, (d, stride): as given, then every shuffle
  AlignedVector<double> probabilities_;
};

}  // namespace moelab
