#pragma once

#include <filesystem>
#include <optional>
#include <utility>

#include "app/json/json.h"
#include "sim/data/npy/npy_reader.h"

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

}  // namespace moelab
