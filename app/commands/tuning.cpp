#include "app/commands/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace moelab {
namespace {

/// A candidate within this share of its range of one end is at the edge.
constexpr double kEdge = 0.05;

/// Arms have the same number of cells, unless candidates that differ make the same cells of one.
std::string cells_text(const std::vector<TunedArm>& arms) {
  const auto [least, most] =
      std::ranges::minmax_element(arms, {}, [](const TunedArm& arm) { return arm.cells.size(); });
  if (least->cells.size() == most->cells.size()) return fmt::format("{}", most->cells.size());
  return fmt::format("{} to {}", least->cells.size(), most->cells.size());
}

}  // namespace

bool TunedArm::has_choice() const {
  return !std::isnan(score);
}

Json tuned_values(const Tuning& tuning, std::size_t candidate) {
  Json values = Json::object();
  for (std::size_t i = 0; i < tuning.ranges.size(); ++i)
    values[tuning.ranges[i].path] = tuning.candidates[candidate][i];
  return values;
}

std::vector<std::string> tuned_edges(const Tuning& tuning, const TunedArm& arm) {
  std::vector<std::string> edges;
  if (!arm.has_choice()) return edges;
  for (std::size_t i = 0; i < tuning.ranges.size(); ++i) {
    const double share = tuning.ranges[i].share_of(tuning.candidates[arm.left.front()][i]);
    if (share < kEdge || share > 1 - kEdge) edges.push_back(tuning.ranges[i].path);
  }
  return edges;
}

std::string tuned_text(const Tuning& tuning, const TunedArm& arm) {
  if (!arm.has_choice()) return "no candidate";
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < tuning.ranges.size(); ++i) {
    parts.push_back(
        fmt::format("{} = {}", tuning.ranges[i].path, tuning.candidates[arm.left.front()][i].dump()));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string tuning_notes(const Tuning& tuning) {
  std::vector<std::string> ranges, arms;
  for (const TuneRange& range : tuning.ranges) {
    ranges.push_back(fmt::format("{} of [{:g}, {:g}] ({})", range.path, range.low, range.high,
                                 range.is_log ? "log" : "linear"));
  }
  for (const TunedArm& arm : tuning.arms)
    arms.push_back(fmt::format("{}: {}", arm.name, tuned_text(tuning, arm)));
  return fmt::format(
      "Chosen on root seed {} from {} with {} cells an arm: {} candidates, the same for every arm, by the {} "
      "{} over sweep points and seeds, successive halving on common random numbers. {}.",
      kTuningRoot, fmt::join(ranges, ", "), cells_text(tuning.arms), tuning.candidates.size(),
      tuning.sign > 0 ? "least" : "greatest", tuning.metric, fmt::join(arms, "; "));
}

Json tuning_answer(const Tuning& tuning, const std::filesystem::path& directory) {
  Json ranges = Json::object(), arms = Json::object();
  for (const TuneRange& range : tuning.ranges)
    ranges[range.path] = {
        {"low", range.low}, {"high", range.high}, {"scale", range.is_log ? "log" : "linear"}};
  for (const TunedArm& arm : tuning.arms) {
    arms[arm.name] = {{"values", arm.has_choice() ? tuned_values(tuning, arm.left.front()) : Json()},
                      {"score", std::isfinite(arm.score) ? Json(arm.score) : Json()},
                      {"cells", arm.cells.size()},
                      {"at_edge", tuned_edges(tuning, arm)}};
  }
  return {{"name", tuning.scenario.name},
          {"directory", directory.string()},
          {"root_seed", kTuningRoot},
          {"metric", tuning.metric},
          {"best", tuning.sign > 0 ? "least" : "greatest"},
          {"ranges", std::move(ranges)},
          {"arms", std::move(arms)},
          {"notes", tuning_notes(tuning)},
          {"trace", tuning.trace}};
}

}  // namespace moelab
