#pragma once

/// Sets drawn in pieces against sets drawn at once.

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "sim/data/problem.h"

namespace moelab {

/// Checks that pieces of `counts` samples, drawn one after the other, make up the set that is drawn at once,
/// to the last bit.
inline void check_pieces(const Problem& problem, const Seeds& seeds, Purpose purpose,
                         const std::vector<int>& counts) {
  const Dataset whole = draw_set(problem, seeds, purpose, std::accumulate(counts.begin(), counts.end(), 0));
  Engine engine = seeds.stream(purpose);
  std::vector<int> labels;
  int first = 0;
  for (const int count : counts) {
    CAPTURE(count);
    const Dataset piece = problem.draw(engine, {purpose, first, count});
    CHECK((piece.x == whole.x.middleRows(first, count)));
    CHECK((piece.y == whole.y.middleRows(first, count)));
    labels.insert(labels.end(), piece.cluster.begin(), piece.cluster.end());
    first += count;
  }
  CHECK(labels == whole.cluster);
}

}  // namespace moelab
