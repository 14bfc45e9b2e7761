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

  /// Whether some candidate finished.
  bool has_choice() const;
};

struct Tuning {
  Scenario scenario;
  std::filesystem::path directory;
  std::string metric;
  double sign = 1;  ///< multiplies the metric, so that the least score is the best: −1 with --maximize
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

/// The name of the arm that a rung's scenario has for a candidate of `arm`.
std::string candidate_name(const std::string& arm, std::size_t candidate);

/// A scenario with an arm for each remaining candidate of each arm.
Scenario rung_scenario(const Tuning& tuning, const Rung& rung);

/// The number of trainings of all rungs, arms and sweep points.
std::size_t tuning_cells(const Tuning& tuning);

/// A candidate as {path: value}.
Json tuned_values(const Tuning& tuning, std::size_t candidate);

/// A tuned field whose best value may lie beyond the values tried.
struct TunedEdge {
  std::string path;
  std::string text;  ///< "the best train.lr is at the edge of its range; widen it"
};

/// The fields whose chosen value is at an end of its range, or is the least or the largest value tried. Empty
/// where nothing is chosen.
std::vector<TunedEdge> tuned_edges(const Tuning& tuning, const TunedArm& arm);

/// The mean of the metric of the chosen candidate over sweep points and seeds, on its last rung: the
/// geometric mean where the metric is declared positive.
double tuned_mean(const Tuning& tuning, const TunedArm& arm);

/// The chosen values of an arm: "train.lr.expert = 0.003, …".
std::string tuned_text(const Tuning& tuning, const TunedArm& arm);

/// A sentence for a scenario's `notes`: how the values were chosen.
std::string tuning_notes(const Tuning& tuning);

/// The content of tune.json, which is also the answer of --json.
Json tuning_answer(const Tuning& tuning);

}  // namespace moelab
