#pragma once

/// `moelab analyze`: the metrics of a user's own arrays.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "analysis/stats/intervals.h"
#include "app/scenario/json.h"
#include "sim/base/random.h"
#include "sim/data/npy.h"

namespace moelab {

/// An array to analyse: a .npy file, or memory; none where both are empty. The conversions are implicit.
struct ArraySource {
  std::filesystem::path file = {};
  std::optional<MemoryArray> memory = {};

  ArraySource() = default;
  ArraySource(std::filesystem::path given) : file(std::move(given)) {}
  ArraySource(const MemoryArray& given) : memory(given) {}
  bool is_given() const { return memory || !file.empty(); }
};

/// The input of `moelab analyze`: arrays of n rows. Rows may be tokens: where probs are (n, s, E), the other
/// arrays begin with the dimensions n and s, too.
struct AnalyzedArrays {
  ArraySource probs;                 ///< r(x), (n, E)
  ArraySource logits;                ///< or the scores γ(x), whose softmax is r(x), (n, E)
  ArraySource labels;                ///< clusters (n), or (n, r) for rows of several parts
  ArraySource inputs;                ///< x, (n, d)
  ArraySource router;                ///< W of a linear router, (E, d)
  ArraySource embeddings;            ///< the space of overlap and silhouette, (n, m)
  ArraySource expert_outputs;        ///< (n, E, o)
  ArraySource previous_probs;        ///< an earlier snapshot of probs
  ArraySource previous_logits;       ///< or of logits
  ArraySource previous_assignments;  ///< or of its experts, (n) or (n, K)
  int top_k = 1;                     ///< K, experts that serve a row
  int neighbours = 0;                ///< of expert overlap; 0: 10, or all other rows
};

/// Metrics of a user's arrays, by name, in the order of the table of metric groups.
struct ArrayAnalysis {
  Json metrics = Json::object();              ///< {name: value}
  Json skipped = Json::object();              ///< {name: why it is left out}
  Json settings = Json::object();             ///< sizes and choices behind the numbers
  std::map<std::string, Interval> intervals;  ///< 95 %, of metrics that are a mean over a sample of rows
};

/// The seeds of the shuffled baseline and of sampled rows: those of a run's first cell by default.
constexpr Seeds kAnalysisSeeds{1, 0};

/// Overlap and silhouette compare every row with every other up to this many rows. Of more rows, a random
/// sample is compared with all.
constexpr std::int64_t kMaxAllRows = 5000;
constexpr std::int64_t kQueryRows = 1000;

/// Measures every metric group (analysis/metrics/metric_groups.h) that the arrays allow. Throws UserError for
/// arrays that do not fit.
ArrayAnalysis analyze_arrays(const AnalyzedArrays& arrays);

/// The answer of `moelab analyze --json`: {"metrics": {name: value}, "skipped": {name: reason}, "intervals":
/// {name: [low, high]}, "settings": {…}}.
Json to_json(const ArrayAnalysis& analysis);

}  // namespace moelab
