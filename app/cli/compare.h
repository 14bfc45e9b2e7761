#pragma once

/// Two runs of the same problems against each other, seed by seed.

#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/scenario/json.h"

namespace moelab {

/// Values of a metric that both runs have for a seed.
struct SeedPair {
  Interval own, first;  ///< of the run, and of that which it is compared with (observation.h)
};

/// How the values of a run compare with those of the first. A metric that may be right-censored has `signs`
/// alone; one that is declared positive also the `ratio` where all of its values are above 0.
struct PairedSeeds {
  int count = 0;
  std::optional<MeanEstimate> difference;  ///< mean of own − first
  std::optional<MeanEstimate> ratio;       ///< geometric mean of own / first
  std::optional<SignCounts> signs;         ///< own below, above first
  bool is_sequential = false;              ///< intervals are of confidence sequences
};

/// At least one pair is needed.
PairedSeeds paired_seeds(const std::vector<SeedPair>& pairs, const std::string& metric, bool is_sequential);

/// "ratio 0.97 [0.9, 1.04]", "difference 0.01 ± 0.02" or "2 below, 5 above, 3 tied".
std::string paired_text(const PairedSeeds& paired);

/// {"mean", "count", "interval"} of the difference, "scale", which is that of the text, and "ratio": {"mean",
/// "interval"} or "signs"; with signs the first have no numbers.
Json paired_json(const PairedSeeds& paired);

}  // namespace moelab
