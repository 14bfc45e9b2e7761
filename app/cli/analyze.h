#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/metrics/overlap.h"
#include "analysis/stats/intervals.h"
#include "app/scenario/json.h"
#include "sim/base/random.h"
#include "sim/data/npy.h"

namespace moelab {

struct ArrayAnalysis;

/// An array that is analysed: a .npy file, or memory; none where both are empty. Implicit: a file is one.
struct ArraySource {
  std::filesystem::path file = {};
  std::optional<MemoryArray> memory = {};

  ArraySource() = default;
  ArraySource(std::filesystem::path given) : file(std::move(given)) {}
  ArraySource(const MemoryArray& given) : memory(given) {}
  bool is_given() const { return memory || !file.empty(); }
};

/// What `moelab analyze` is given: arrays of n rows. Rows may be tokens: where probs are (n, s, E), the other
/// arrays have the dimensions n and s, too.
struct AnalyzedArrays {
  ArraySource probs;                 ///< r(x), (n, E)
  ArraySource logits;                ///< or the scores γ(x) whose softmax it is, (n, E)
  ArraySource labels;                ///< clusters, (n), or (n, r) for rows of several parts
  ArraySource inputs;                ///< x, (n, d)
  ArraySource router;                ///< W of a linear router, (E, d)
  ArraySource embeddings;            ///< where overlap and silhouette are measured, (n, m)
  ArraySource expert_outputs;        ///< (n, E, o)
  ArraySource previous_probs;        ///< an earlier snapshot of probs
  ArraySource previous_logits;       ///< or of logits
  ArraySource previous_assignments;  ///< or of its experts, (n) or (n, K)
  int top_k = 1;                     ///< K, experts that serve a row
  int neighbours = 0;                ///< of expert overlap; 0: 10, or all other rows
};

/// The answer of `moelab analyze --json`.
Json to_json(const ArrayAnalysis& analysis);

/// `moelab analyze`: prints every metric that the arrays allow and names those left out, as text or as
/// {"metrics": {name: value}, "skipped": {name: reason}, "intervals": {name: [low, high]}, "settings": {…}};
/// intervals (95 %) are given where a metric was taken over a sample of rows. Returns 0.
int run_analyze_command(const AnalyzedArrays& arrays, bool json);

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

/// The opened arrays of `analyze`, whose shapes fit each other.
struct ArrayFiles {
  NpyReader probs;
  std::optional<NpyReader> labels, inputs, embeddings, expert_outputs, previous_probs, previous_assignments;
  std::optional<Matrix> router;  ///< (E, d)
  int experts = 0;               ///< E
  int tokens = 1;                ///< s, rows of one entry of the first dimension

  /// Rows of all arrays, n · s.
  std::int64_t rows() const { return probs.rows() * tokens; }
  /// The most neighbours that a row can have.
  std::int64_t other_rows() const { return std::max<std::int64_t>(0, rows() - 1); }
  /// The space of overlap and silhouette: embeddings, or else inputs; null when neither is given.
  const NpyReader* space() const;
  /// Routing probabilities of samples first … first + count − 1, (count · s, E), of `probs` or
  /// `previous_probs`: the softmax of their rows where they hold logits. Throws UserError for entries that
  /// are not finite (of logits, but for −∞ beside others) and for probabilities that are negative or do not
  /// sum to one.
  Matrix probabilities(const NpyReader& array, std::int64_t first, std::int64_t count) const;
  /// Entries of samples first … first + count − 1 as rows, (count · s, width).
  Matrix token_rows(const NpyReader& array, std::int64_t first, std::int64_t count) const;
};

/// Opens the files and checks their shapes. Throws UserError at the option ("--labels") with the shape found,
/// the shape needed and the shape of --probs.
ArrayFiles open_arrays(const AnalyzedArrays& files);

/// Names, among the metrics that are left out, those that can be taken of arrays (metrics whose needs all
/// have an argument, analysis/metrics/metric_groups.h) and lack some, with the arguments that are missing.
void skip_not_given(const ArrayFiles& arrays, int top_k, ArrayAnalysis& analysis);

/// The rows that overlap and silhouette are taken over, with their points in `space` and their likeliest
/// experts among those of all rows: all of them or, beyond kMaxAllRows, kQueryRows that are drawn.
QueryPoints query_points(const ArrayFiles& arrays, const NpyReader& space, const std::vector<int>& top1,
                         const Seeds& seeds);

}  // namespace moelab
