#include "app/run/cell_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace moelab {
namespace {

/// Settings whose problem is drawn and whose model is made for an estimate.
constexpr std::size_t kMaxEstimates = 100;

/// In settings: little beside one that is done, enough to choose among effects that fit as well.
constexpr double kRidge = 0.1;
constexpr int kRounds = 50;

/// Timers have no finer time, and a logarithm is taken.
constexpr double kShortestSeconds = 1e-6;

}  // namespace

CellTimes::CellTimes(const Scenario& scenario) {
  std::vector<const Cell*> firsts;
  std::map<std::string, std::size_t> places;  // of effects, by "arm" or "path = value"
  setting_of_.reserve(scenario.cells.size());
  for (const Cell& cell : scenario.cells) {
    const auto [place, added] = setting_of_.try_emplace(cell.id);
    if (!added) continue;  // two arms may have the same cell
    if (firsts.empty() || firsts.back()->arm != cell.arm || firsts.back()->point != cell.point) {
      firsts.push_back(&cell);
      Setting& setting = settings_.emplace_back();
      setting.effects = {places.try_emplace(cell.arm, places.size()).first->second};
      for (const auto& [path, value] : cell.point)
        setting.effects.push_back(
            places.try_emplace(path + " = " + value.dump(), places.size()).first->second);
    }
    place->second = settings_.size() - 1;
    ++settings_.back().cells;
    ++settings_.back().open;
  }
  effects_ = places.size();
  const std::size_t looked_at = std::min(settings_.size(), kMaxEstimates);
  std::size_t next = 0;
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    if (i == next * settings_.size() / looked_at) {
      settings_[i].cost = estimated_cost(*firsts[i]);
      ++next;
    } else {
      settings_[i].cost = settings_[i - 1].cost;
    }
  }
  fit();
}

void CellTimes::learn(const std::string& cell, const std::string& state, double seconds) {
  const auto found = setting_of_.find(cell);
  if (found == setting_of_.end()) return;
  Setting& setting = settings_[found->second];
  --setting.open;
  if (state != "done" && state != "diverged") return;
  ++learned_;
  ++setting.recorded;
  setting.recorded_seconds += seconds;
  if (state != "done") return;
  ++setting.done;
  setting.done_seconds += seconds;
}

void CellTimes::fit() {
  std::vector<double> effects(effects_, 0), logs;
  std::vector<const Setting*> known;
  for (Setting& setting : settings_) {
    setting.seconds = std::max(setting.cost.seconds, kShortestSeconds);
    if (setting.done == 0) continue;
    known.push_back(&setting);
    logs.push_back(
        std::log(std::max(setting.done_seconds / setting.done, kShortestSeconds) / setting.seconds));
  }
  double mean = 0;
  // One effect after the other against what the others leave, until they settle: `logs` holds what is left.
  std::vector<std::vector<std::size_t>> settings_with(effects_);
  for (std::size_t i = 0; i < known.size(); ++i) {
    for (const std::size_t effect : known[i]->effects) settings_with[effect].push_back(i);
  }
  for (int round = 0; round < kRounds && !known.empty(); ++round) {
    const double shift = std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size());
    for (double& value : logs) value -= shift;
    mean += shift;
    for (std::size_t effect = 0; effect < effects_; ++effect) {
      const std::vector<std::size_t>& own = settings_with[effect];
      double sum = 0;
      for (const std::size_t i : own) sum += logs[i] + effects[effect];
      const double better = sum / (static_cast<double>(own.size()) + kRidge);
      for (const std::size_t i : own) logs[i] -= better - effects[effect];
      effects[effect] = better;
    }
  }
  for (Setting& setting : settings_) {
    if (setting.recorded > 0) {
      setting.seconds = setting.recorded_seconds / setting.recorded;
      continue;
    }
    double log_factor = mean;
    for (const std::size_t effect : setting.effects) log_factor += effects[effect];
    setting.seconds *= std::exp(log_factor);
  }
}

double seconds_on_threads(const std::vector<double>& seconds, int threads, double partial) {
  if (seconds.empty()) return 0;
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  const double count = static_cast<double>(seconds.size());
  const double left = 1 - std::clamp(partial / count, 0.0, 1.0);
  const double running = std::clamp<double>(threads, 1, count);
  const double longest = partial > 0 ? 0 : *std::max_element(seconds.begin(), seconds.end());
  return std::max(sum * left / running, longest);
}

}  // namespace moelab
