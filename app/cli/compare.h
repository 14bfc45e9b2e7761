#pragma once

/// Paired comparison of two runs of the same problems.
///
/// For seed s, the run has the value a_s and the first run has b_s. The comparison reports the mean of a_s −
/// b_s and, for positive metrics, the geometric mean of a_s / b_s, each with a 95 % interval over the seeds.

#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/scenario/json.h"

namespace moelab {

/// The values of a metric for a seed. A right-censored value is an interval without upper end.
struct SeedPair {
  Interval own;    ///< of the run
  Interval first;  ///< of the run that it is compared with
};

/// The comparison over all seeds. A metric that may be right-censored has only `signs`. A metric that is
/// declared positive also has the `ratio`, provided that all of its values are above 0.
struct PairedSeeds {
  int count = 0;
  std::optional<MeanEstimate> difference;  ///< mean of own − first
  std::optional<MeanEstimate> ratio;       ///< geometric mean of own / first
  std::optional<SignCounts> signs;         ///< own below, above first
  bool is_sequential = false;              ///< the intervals are confidence sequences
};

/// Compares the pairs. Needs at least one pair.
PairedSeeds paired_seeds(const std::vector<SeedPair>& pairs, const std::string& metric, bool is_sequential);

/// "ratio 0.97 [0.9, 1.04]", "difference 0.01 ± 0.02" or "2 below, 5 above, 3 tied".
std::string paired_text(const PairedSeeds& paired);

/// {"mean", "count", "interval", "scale"} of the difference, and "ratio": {"mean", "interval"} or "signs".
/// With signs, "mean" and "interval" are null. "scale" names the comparison that paired_text() shows.
Json paired_json(const PairedSeeds& paired);

}  // namespace moelab
