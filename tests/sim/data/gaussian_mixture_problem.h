#pragma once

/// The small mixture that several tests of the generator start from.

#include <memory>

#include "tests/sim/data/data_of.h"

namespace moelab {

inline const Seeds kMixtureSeeds{1, 0};

inline std::unique_ptr<Problem> mixture_problem(const Json& changes, const Seeds& seeds = kMixtureSeeds) {
  Json data = {{"generator", "gaussian_mixture"},
               {"clusters", 5},
               {"dim", 4},
               {"target", {{"kind", "constant"}, {"dim", 3}}},
               {"train_samples", 10}};
  data.update(changes);
  return draw_problem(data_of(data), seeds);
}

inline Dataset mixture_sample(const Problem& problem, int rows) {
  return draw_set(problem, kMixtureSeeds, Purpose::train_data, rows);
}

}  // namespace moelab
