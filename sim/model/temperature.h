#pragma once

/// Temperatures that move over a training.

#include <cmath>
#include <numbers>

namespace moelab {

enum class TauSchedule { linear, cosine, geometric };

/// τ between its start and its end at a share of the training steps.
inline double temperature_at(double start, double end, TauSchedule schedule, double progress) {
  if (schedule == TauSchedule::geometric) return start * std::pow(end / start, progress);
  const bool is_cosine = schedule == TauSchedule::cosine;
  const double share = is_cosine ? (1 - std::cos(std::numbers::pi * progress)) / 2 : progress;
  return start + (end - start) * share;
}

}  // namespace moelab
