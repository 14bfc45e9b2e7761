#pragma once

/// The token topics that the tests of the generator start from.

#include <doctest/doctest.h>

#include <memory>

#include "tests/sim/data/data_of.h"
#include "tests/sim/data/statistics.h"

namespace moelab::token_topics_problem {

inline constexpr int kTopics = 5, kPerTopic = 2, kDim = 4;
inline const Seeds kSeeds{1, 0};
inline const Json kLinear = {{"kind", "linear"}, {"dim", 3}}, kConstant = {{"kind", "constant"}, {"dim", 3}},
                  kClass = {{"kind", "class"}, {"classes", 3}},
                  kLinearClass = {{"kind", "linear_class"}, {"classes", 3}};

inline std::unique_ptr<Problem> problem_of(const Json& changes, const Seeds& seeds = kSeeds) {
  Json spec = {{"generator", "token_topics"},
               {"topics", kTopics},
               {"clusters_per_topic", kPerTopic},
               {"dim", kDim},
               {"tokens", 3},
               {"target", kConstant},
               {"train_samples", 10}};
  spec.update(changes);
  const DataOptions data = data_of(spec);
  check(data);
  return draw_problem(data, seeds);
}

inline Dataset sample(const Problem& problem, int count) {
  return draw_set(problem, kSeeds, Purpose::train_data, count);
}

/// Inputs or targets of a set, a token a row.
inline Matrix token_rows(const Problem& problem, const Matrix& values, int width) {
  return MatrixView(values.data(), values.rows() * problem.layout().tokens, width);
}

/// The means μ_c (k, d), read off the problem without noise.
inline Matrix means_of(Json changes, const Seeds& seeds = kSeeds) {
  changes["noise_std"] = 0;
  const std::unique_ptr<Problem> still = problem_of(changes, seeds);
  const Dataset points = sample(*still, 60 * still->clusters());
  const Matrix tokens = token_rows(*still, points.x, still->layout().input_dim);
  Matrix means(still->clusters(), tokens.cols());
  for (int c = 0; c < still->clusters(); ++c) {
    const Matrix same = rows_of(tokens, points.cluster, c);
    REQUIRE(same.rows() > 0);
    means.row(c) = same.row(0);
    CHECK((same.rowwise() - same.row(0)).isZero(0));
  }
  return means;
}

}  // namespace moelab::token_topics_problem
