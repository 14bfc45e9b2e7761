#pragma once

#include <map>
#include <string>

#include "analysis/stats/intervals.h"
#include "app/commands/analyze.h"
#include "app/json/json.h"

namespace moelab {

/// Metrics of a user's arrays, by name and in the order in which they are shown.
struct ArrayAnalysis {
  Json metrics = Json::object();              ///< {name: value}
  Json skipped = Json::object();              ///< {name: why it is left out}
  Json settings = Json::object();             ///< sizes and choices behind the numbers
  std::map<std::string, Interval> intervals;  ///< 95 %, of metrics taken over a sample of rows
};

/// Moves metrics that are not finite to those that are left out: finite arrays can have sums and squares that
/// are not.
void skip_not_finite(ArrayAnalysis& analysis);

/// Shuffles of the shuffled baseline and the root seed of their permutations and of sampled rows.
constexpr int kAnalysisShuffles = 20;
constexpr int kAnalysisSeed = 1;

/// Overlap and silhouette compare every row with every other up to this many rows; of more rows so many,
/// drawn at random, are compared with all.
constexpr std::int64_t kMaxAllRows = 5000;
constexpr std::int64_t kQueryRows = 1000;

/// Reads the arrays once, in blocks (the space of overlap and silhouette once more), and measures. Memory is
/// O(n) for experts and labels, O(block) for the rest. Throws UserError for arrays that do not fit.
ArrayAnalysis analyze_arrays(const AnalyzedArrays& files);

}  // namespace moelab
