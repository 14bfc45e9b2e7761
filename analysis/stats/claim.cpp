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

std::string to_string(TrendShape shape) {
  return shape == TrendShape::ends ? "ends" : "monotone";
}

std::string to_string(Origin origin) {
  return origin == Origin::ours ? "ours" : "paper";
}

std::string to_string(Matched matched) {
  switch (matched) {
    case Matched::loss:
      return "loss";
    case Matched::flops:
      return "flops";
    case Matched::steps:
      break;
  }
  return "steps";
}

std::string matched_metric(Matched matched) {
  switch (matched) {
    case Matched::loss:
      return "train_loss";
    case Matched::flops:
      return "train_flops";
    case Matched::steps:
      break;
  }
  return "";
}

std::string ClaimSide::text() const {
  std::string text = factor == 1 ? "" : fmt::format("{:g} × ", factor);
  const std::string& what = is_constant() ? value : metric;
  const std::string whole = what.find(' ') == std::string::npos ? what : "(" + what + ")";
  if (is_constant()) return text + whole;
  text += fmt::format("{} {}", arm, whole);
  if (!relative_to.empty()) text += fmt::format(" relative to {}", relative_to);
  if (!distance_from.empty()) text += fmt::format(" (RMSE from {} over training)", distance_from);
  const std::string place = point_text(where);
  if (!place.empty()) text += fmt::format(" at {}", place);
  return text + step_text(step);
}

}  // namespace moelab
