#pragma once

/// Which experts are selected together. Uses `selected`.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace moelab {

/// One pass over rows, each with the experts that it is sent to.
class CoActivation {
 public:
  explicit CoActivation(int experts) : experts_(experts) {}

  /// The experts of the next row, distinct, 0 … E − 1.
  void add(std::span<const int> experts);

  /// Mean over the experts i with rows of max_{j ≠ i} n_ij / n_i, n_ij rows that are sent to both i and j,
  /// n_i those that are sent to i (the matrix n_ij / n_i is that of Muennighoff et al. 2024): 1 when every
  /// expert has a partner on all of its rows, (K − 1)/(E − 1) when the other K − 1 experts of a row are drawn
  /// at random, up to the scatter of the largest. None without rows or for one expert.
  std::optional<double> value() const;

 private:
  int experts_;
  std::vector<int> of_rows_;           // the rows' experts, one row after another
  std::vector<std::size_t> row_ends_;  // (n)
};

}  // namespace moelab
