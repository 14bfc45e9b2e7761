#pragma once

/// What `moelab tune` has chosen, and how it says it.

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "app/run/halving.h"
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
  std::string metric;
  double sign = 1;  ///< −1 where the greatest is the best
  std::vector<TuneRange> ranges;
  std::vector<std::vector<Json>> candidates;
  std::vector<Rung> rungs;
  std::vector<TunedArm> arms;
  Json trace = Json::array();
};

/// {path: value} of a candidate.
Json tuned_values(const Tuning& tuning, std::size_t candidate);

/// The tuned fields whose chosen value is at an end of its range; none where nothing is chosen.
std::vector<std::string> tuned_edges(const Tuning& tuning, const TunedArm& arm);

/// The chosen values of an arm as a person reads them.
std::string tuned_text(const Tuning& tuning, const TunedArm& arm);

/// What a scenario's notes say of the choice.
std::string tuning_notes(const Tuning& tuning);

/// tune.json, and the answer with --json.
Json tuning_answer(const Tuning& tuning, const std::filesystem::path& directory);

}  // namespace moelab
