#pragma once

#include <filesystem>

namespace moelab {

/// What `moelab analyze` is given: .npy files of n rows, an empty path where there is none. Rows may be
/// tokens: where probs are (n, s, E), the other arrays have the dimensions n and s, too.
struct AnalyzedFiles {
  std::filesystem::path probs;                 ///< r(x), (n, E)
  std::filesystem::path logits;                ///< or the scores γ(x) whose softmax it is, (n, E)
  std::filesystem::path labels;                ///< clusters, (n), or (n, r) for rows of several parts
  std::filesystem::path inputs;                ///< x, (n, d)
  std::filesystem::path router;                ///< W of a linear router, (E, d)
  std::filesystem::path embeddings;            ///< where overlap and silhouette are measured, (n, m)
  std::filesystem::path expert_outputs;        ///< (n, E, o)
  std::filesystem::path previous_probs;        ///< an earlier snapshot of probs
  std::filesystem::path previous_logits;       ///< or of logits
  std::filesystem::path previous_assignments;  ///< or of its experts, (n) or (n, K)
  int top_k = 1;                               ///< K, experts that serve a row
  int neighbours = 0;                          ///< of expert overlap; 0: 10, or all other rows
};

/// `moelab analyze`: prints every metric that the arrays allow and names those left out, as text or as
/// {"metrics": {name: value}, "skipped": {name: reason}, "intervals": {name: [low, high]}, "settings": {…}};
/// intervals (95 %) are given where a metric was taken over a sample of rows. Returns 0.
int run_analyze_command(const AnalyzedFiles& files, bool json);

}  // namespace moelab
