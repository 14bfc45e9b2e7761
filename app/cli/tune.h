#pragma once

/// What `moelab tune` is asked for, what it has chosen, and how it says it.

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "app/cli/verbs.h"
#include "app/run/search.h"
#include "app/scenario/scenario.h"

namespace moelab {

struct TunedArm {
  std::string name;
  std::vector<std::size_t> left;     ///< candidates that are left, the best first
  double score = 0;                  ///< of the best, on the last rung
  std::set<std::string> cells = {};  ///< the ids of all that were looked at

  /// Whether the best candidate is one: its score is not that of one that diverged or failed.
  bool has_choice() const;
};

struct Tuning {
  Scenario scenario;
  std::filesystem::path directory;
  std::string metric;
  double sign = 1;  ///< −1 where the greatest is the best
  std::vector<TuneRange> ranges;
  std::vector<std::vector<Json>> candidates;
  std::vector<Rung> rungs;
  std::vector<TunedArm> arms;
  Json trace = Json::array();
};

/// --arms, --budget, --metric and --maximize; their help begins with `prefix`.
std::vector<Option> tuning_options(Arguments& arguments, const std::string& prefix);

/// What the arguments ask for, with every candidate left. Throws UserError; writes nothing.
Tuning read_tuning(const Arguments& arguments);

/// The arm of a rung's scenario that stands for a candidate of an arm.
std::string candidate_name(const std::string& arm, std::size_t candidate);

/// A scenario whose arms are the candidates that are left of each arm.
Scenario rung_scenario(const Tuning& tuning, const Rung& rung);

/// Trainings of all rungs, arms and sweep points.
std::size_t tuning_cells(const Tuning& tuning);

/// {path: value} of a candidate.
Json tuned_values(const Tuning& tuning, std::size_t candidate);

/// A tuned field whose best value may lie beyond those that were tried.
struct TunedEdge {
  std::string path;
  std::string text;  ///< "the best train.lr is at the edge of its range; widen it"
};

/// Where the chosen value is at an end of its range, or is the least or the largest that was tried; none
/// where nothing is chosen.
std::vector<TunedEdge> tuned_edges(const Tuning& tuning, const TunedArm& arm);

/// The mean of the metric over sweep points and seeds on the last rung that the chosen candidate has: the
/// geometric mean where the metric is declared positive.
double tuned_mean(const Tuning& tuning, const TunedArm& arm);

/// The chosen values of an arm as a person reads them.
std::string tuned_text(const Tuning& tuning, const TunedArm& arm);

/// What a scenario's notes say of the choice.
std::string tuning_notes(const Tuning& tuning);

/// tune.json, and the answer with --json.
Json tuning_answer(const Tuning& tuning);

}  // namespace moelab
