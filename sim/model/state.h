#pragma once

/// What a training step changes beside the parameters.

#include <cstdint>
#include <string>
#include <vector>

namespace moelab {

/// A named array of a component's state, (shape) row-major without padding.
struct StateArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t size() const {
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) product *= extent;
    return product;
  }
};

/// Selection biases, statistics of routers, progress of schedules: all of them, so that a model is its
/// parameters and this. Values are exact for either precision of training.
struct State {
  /// Share of the training's steps that were done when the last one began; stays after training.
  double progress = 0;
  std::vector<double> values;  ///< every component's arrays, one after another; see Network::state_arrays()

  bool operator==(const State&) const = default;
};

}  // namespace moelab
