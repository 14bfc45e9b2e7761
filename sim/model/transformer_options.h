#pragma once

/// What `model` of a scenario says of transformers beside the fields of every model.

#include <optional>
#include <string>
#include <vector>

#include "sim/base/options.h"
#include "sim/model/blocks/normalization.h"

namespace moelab {

/// With h_0 = E[id] (+ P[place]), for each of L layers h ← h + attention(norm(h)), h ← h + f(norm(h)) with f
/// a mixture or a network of depth 2, then f(x) = A norm(h_L) + b (tied: norm(h_L) E^T / √d), the scores of
/// the next token (Vaswani et al. 2017, with the norms of Xiong et al. 2020 before each part). Where it is
/// not causal, attention looks at the whole sequence, E has a row more, for the mask, and f are scores of the
/// masked token. In training steps dropout p makes of each part h ← h + D ∘ part(norm(h)), the entries of D
/// independently 0 with probability p and else 1 / (1 − p), drawn anew in each step; measuring has none.
struct TransformerOptions {
  enum class Positions { learned, rotary };
  std::optional<int> heads = {};
  std::optional<int> feed_forward = {};  ///< unset: 4 width
  std::optional<std::vector<std::string>> moe_layers = {};
  std::optional<Positions> positions = {};
  std::optional<Normalization> norm = {};
  std::optional<bool> tied_embedding = {};
  std::optional<bool> causal = {};     ///< unset: true
  std::optional<double> dropout = {};  ///< p; unset: 0

  bool is_causal() const { return causal.value_or(true); }

  void bind(Fields& fields);
};

/// The layers, of `layers`, with a mixture, ascending. Throws InvalidOption at "model.moe_layers".
std::vector<int> moe_layers(const TransformerOptions& options, int layers);

/// What cannot be, for `width` and `layers` of the model. Throws InvalidOption at "model.…".
void check(const TransformerOptions& options, std::optional<int> width, int layers);

/// Throws InvalidOption at "model.…" where a field is given that only transformers have.
void check_no_transformer(const TransformerOptions& options);

}  // namespace moelab
