#pragma once

/// Random numbers of training steps, from a state that tells which step it is.

#include "sim/base/random.h"
#include "sim/model/start.h"
#include "sim/model/state.h"

namespace moelab {

/// What random numbers of a step are for.
enum StepUse : std::uint64_t { kStepNoise = 1, kStepDrops = 2, kStepJitter = 3, kStepDropout = 4 };

/// An array (3), "gating_noise" where it is a gating's: a key and the number of the step in two parts, each
/// exact in float.
namespace step_stream {

constexpr double kPart = 16777216;  ///< 2^24

inline StateArray array(const char* name = "gating_noise") {
  return {name, {3}};
}
/// `stream`: of the key, for each array of a layer its own; 2 is that of random routers.
inline void start(const Start& start, double* state, std::uint64_t stream = 1) {
  Engine engine = start.seeds.stream(Purpose::router_noise, stream);
  state[0] = static_cast<double>(engine() >> 40);
  state[1] = state[2] = 0;
}
inline void advance(double* state) {
  if (++state[1] < kPart) return;
  state[1] = 0;
  ++state[2];
}
/// The stream of a use of the state's step; without a state that of step 0 of any model, for what is drawn in
/// measuring.
inline Engine engine(const double* state, std::uint64_t use) {
  if (!state) return Seeds{}.stream(Purpose::router_noise, use);
  const double step = state[1] + kPart * state[2];
  return Seeds{static_cast<std::uint64_t>(state[0]), static_cast<std::uint64_t>(step)}.stream(
      Purpose::router_noise, use);
}

}  // namespace step_stream
}  // namespace moelab
