#include "app/commands/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "app/metrics/metric_groups.h"

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

std::vector<TunedEdge> tuned_edges(const Tuning& tuning, const TunedArm& arm) {
  std::vector<TunedEdge> edges;
  if (!arm.has_choice()) return edges;
  for (std::size_t i = 0; i < tuning.ranges.size(); ++i) {
    const TuneRange& range = tuning.ranges[i];
    const Json& chosen = tuning.candidates[arm.left.front()][i];
    std::vector<double> shares;
    for (const std::vector<Json>& candidate : tuning.candidates)
      shares.push_back(range.share_of(candidate[i]));
    const auto [least, most] = std::ranges::minmax(shares);
    const double share = range.share_of(chosen);
    if (share < kEdge || share > 1 - kEdge) {
      edges.push_back(
          {range.path, fmt::format("the best {} is at the edge of its range; widen it", range.path)});
    } else if (share == least || share == most) {
      // Points of a sequence in several dimensions reach no end of a range.
      edges.push_back({range.path, fmt::format("the best {}, {} of [{:g}, {:g}], is the {} tried; a greater "
                                               "--budget tries more, or widen its range",
                                               range.path, chosen.dump(), range.low, range.high,
                                               share == least ? "least" : "largest")});
    }
  }
  return edges;
}

double tuned_mean(const Tuning& tuning, const TunedArm& arm) {
  const double mean = tuning.sign * arm.score;
  return is_declared_positive(tuning.metric) ? std::exp(mean) : mean;
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

Json tuning_answer(const Tuning& tuning) {
  Json ranges = Json::object(), arms = Json::object();
  for (const TuneRange& range : tuning.ranges)
    ranges[range.path] = {
        {"low", range.low}, {"high", range.high}, {"scale", range.is_log ? "log" : "linear"}};
  for (const TunedArm& arm : tuning.arms) {
    Json edges = Json::array();
    for (const TunedEdge& edge : tuned_edges(tuning, arm)) edges.push_back(edge.path);
    const double mean = tuned_mean(tuning, arm);
    arms[arm.name] = {{"values", arm.has_choice() ? tuned_values(tuning, arm.left.front()) : Json()},
                      {"score", std::isfinite(arm.score) ? Json(arm.score) : Json()},
                      {"mean", std::isfinite(mean) ? Json(mean) : Json()},
                      {"cells", arm.cells.size()},
                      {"at_edge", std::move(edges)}};
  }
  return {{"name", tuning.scenario.name},
          {"directory", tuning.directory.string()},
          {"root_seed", kTuningRoot},
          {"metric", tuning.metric},
          {"best", tuning.sign > 0 ? "least" : "greatest"},
          {"ranges", std::move(ranges)},
          {"arms", std::move(arms)},
          {"notes", tuning_notes(tuning)},
          {"trace", tuning.trace}};
}

}  // namespace moelab
