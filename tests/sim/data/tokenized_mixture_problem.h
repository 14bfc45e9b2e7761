#pragma once

/// The tokenized mixture that the tests of the generator start from.

#include <memory>

#include "tests/sim/data/data_of.h"

namespace moelab::tokenized_mixture_problem {

inline constexpr int kClusters = 5, kDim = 4;
inline const Seeds kSeeds{1, 0};

inline DataOptions tokenized(const Json& changes) {
  Json data = {
      {"generator", "tokenized_mixture"},           {"clusters", kClusters}, {"dim", kDim}, {"tokens", 3},
      {"target", {{"kind", "linear"}, {"dim", 2}}}, {"train_samples", 10}};
  data.update(changes);
  return data_of(data);
}

inline std::unique_ptr<Problem> problem_of(const Json& changes, const Seeds& seeds = kSeeds) {
  return draw_problem(tokenized(changes), seeds);
}

inline Dataset sample(const Problem& problem, int count) {
  return draw_set(problem, kSeeds, Purpose::train_data, count);
}

}  // namespace moelab::tokenized_mixture_problem
