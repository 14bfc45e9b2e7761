#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "app/commands/analyze.h"
#include "sim/data/npy/npy_reader.h"

namespace moelab {

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

}  // namespace moelab
