#pragma once

/// The axes of an array of routing: what the user says, or the only reading that fits what else is known.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/data/npy.h"

namespace moelab {

/// The letters of --axes in the order in which arrays are measured: layers, steps, sequences, positions,
/// tokens, experts, choices.
constexpr std::string_view kCanonicalAxes = "LNBSTEK";

/// "LTE (layers, tokens, experts)".
std::string axes_text(std::string_view axes);

/// The rows of one batch: sequences of so many positions where they are known.
struct Frame {
  std::int64_t rows = 0, sequences = 0, positions = 0;
  bool is_position_first = false;  ///< the files' rows go by position, then by sequence
  bool is_side_turned = false;     ///< but what stands beside goes by sequence
};

/// An array whose axes are in the order of kCanonicalAxes.
struct OrderedArray {
  std::vector<NpyReader> layers;  ///< (rows, width) or (sequences, positions, width) of each layer
  bool is_stack = false;
  Frame frame;
};

/// What is known of an array before its axes are.
struct AxesSetting {
  char width = 'E';
  bool is_entry = false;        ///< an entry of a tuple: no axis of layers
  bool is_side_turned = false;  ///< what stands beside has its axes in the order (B, S), the rows in (S, B)
  std::vector<std::vector<std::int64_t>> sides;
  std::int64_t rows = 0;  ///< of the batch; 0 where unknown
  // What the user said, and what the model says.
  std::string axes;               ///< letters of --axes; empty where they are not given
  int experts = 0, top_k = 0;     ///< E, K; 0 where unknown
  std::vector<int> layers;        ///< of --layers
  std::optional<int> all_layers;  ///< of the model
  std::size_t moe_layers = 0;     ///< of them with a router
  bool is_beside_scores = false;  ///< ids whose scores the axes are for
  bool is_plain = true;           ///< (n, s, E) of probabilities needs no note
};

/// The axes of an array. Notes on what was inferred go to `checks`. Throws UserError with all readings where
/// nothing settles them.
std::string axes_of(const NpyReader& array, const AxesSetting& setting, const std::string& producer_axes,
                    std::vector<std::string>& checks);

/// The array with its axes in the canonical order, cut into layers.
OrderedArray ordered(NpyReader array, std::string axes, const AxesSetting& setting);

}  // namespace moelab
