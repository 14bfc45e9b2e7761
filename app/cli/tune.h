#pragma once

/// `moelab tune`: what the command line asks for, what was chosen, and the texts that report it.

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "app/cli/verbs.h"
#include "app/run/search.h"
#include "app/scenario/scenario.h"

namespace moelab {

/// What `tune` chooses between, and by what.
struct TuningChoice {
  std::string arms;       ///< names with commas between; empty for all
  int budget = 0;         ///< cells of each arm; 0 for the default
  std::string metric;     ///< empty for the main one
  bool maximize = false;  ///< the greatest metric is the best

  /// The help texts begin with `prefix`.
  void bind(VerbOptions& options, const std::string& prefix = "");
};

struct TunedArm {
  std::string name;
  std::vector<std::size_t> left;  ///< remaining candidates, the best first
  double score = 0;               ///< of the best candidate on the last rung; NaN where it diverged or failed
  std::set<std::string> cells = {};  ///< ids of all cells of all rungs
};

struct Tuning {
  Scenario scenario;
  std::filesystem::path directory;
  std::string metric;
  std::string metric_from;  ///< why this one: MainMetric::reason, or "--metric"
  double sign = 1;          ///< multiplies the metric, so that the least score is the best: −1 to maximise
  std::vector<TuneRange> ranges;
  std::vector<std::vector<Json>> candidates;
  std::vector<Rung> rungs;
  std::vector<TunedArm> arms;
  Json trace = Json::array();
};

/// What the command line asks for. Every arm still has every candidate. `out` is empty for the default
/// directory. Throws UserError; writes nothing.
Tuning read_tuning(const ScenarioChoice& scenario, const TuningChoice& choice,
                   const std::filesystem::path& out);

/// A scenario with an arm for each remaining candidate of each arm.
Scenario rung_scenario(const Tuning& tuning, const Rung& rung);

/// The number of trainings of all rungs, arms and sweep points.
std::size_t tuning_cells(const Tuning& tuning);

}  // namespace moelab
