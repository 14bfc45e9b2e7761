#include "analysis/stats/claim.h"

#include <fmt/format.h>

namespace moelab {
namespace {

std::string step_text(const std::optional<ClaimStep>& step) {
  if (!step) return "";
  switch (step->at) {
    case ClaimStep::At::end:
      return " at the end";
    case ClaimStep::At::start:
      return " at the start";
    case ClaimStep::At::recorded:
      break;
  }
  return fmt::format(" at step {}", step->step);
}

}  // namespace

std::string ClaimSide::text() const {
  if (value) return fmt::format("{:g}", factor * *value);
  std::string text = factor == 1 ? "" : fmt::format("{:g} × ", factor);
  text += fmt::format("{} {}", arm, metric);
  if (!relative_to.empty()) text += fmt::format(" relative to {}", relative_to);
  if (!distance_from.empty()) text += fmt::format(" (RMSE from {} over training)", distance_from);
  const std::string place = point_text(where);
  if (!place.empty()) text += fmt::format(" at {}", place);
  return text + step_text(step);
}

}  // namespace moelab
