#pragma once

/// Training sets and options for the tests of training.

#include <doctest/doctest.h>

#include "sim/train/trainer.h"
#include "tests/sim/model/example.h"

namespace moelab {

/// x and y, standard normal.
template <class Real>
TrainingSet<Real> normal_set(const Layout& layout, int samples, std::uint64_t seed = 5) {
  Engine engine = Seeds{seed, 0}.stream(Purpose::train_data);
  TrainingSet<Real> set{samples, std::vector<Real>(entries(samples, layout.sample_dim())),
                        std::vector<Real>(entries(samples, layout.target_dim()))};
  for (Real& value : set.x) value = static_cast<Real>(draw_normal(engine));
  for (Real& value : set.y) value = static_cast<Real>(draw_normal(engine));
  return set;
}

/// What check() says of options.
template <class Options>
void check_refused(const Options& options, const std::string& path, const std::string& message) {
  try {
    check(options);
    FAIL_CHECK("accepted");
  } catch (const InvalidOption& error) {
    CHECK(error.path() == path);
    CHECK(error.message() == message);
  }
}

/// Plain descent at rate 0.05 in batches of 8.
inline TrainOptions small_steps(std::int64_t steps) {
  TrainOptions options;
  options.lr = 0.05;
  options.batch_size = 8;
  options.steps = steps;
  return options;
}

}  // namespace moelab
