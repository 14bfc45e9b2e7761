#pragma once

#include "sim/data/layout.h"

namespace moelab {

/// Sequences of ids x (n, s) whose targets y (n, s) are the ids after them, a label a token.
inline Layout token_layout(int tokens, int vocabulary) {
  return {.input_dim = 1,
          .output_dim = 1,
          .sequences = true,
          .tokens = tokens,
          .target_per_token = true,
          .labels = tokens,
          .vocabulary = vocabulary};
}

}  // namespace moelab
