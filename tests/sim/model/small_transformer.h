#pragma once

/// The small transformer that tests of its options start from.

#include "sim/model/model_options.h"
#include "sim/model/router/routers.h"

namespace moelab::small_transformer {

inline constexpr int kVocabulary = 5, kTokens = 4, kWidth = 6, kExperts = 3, kSamples = 2;
inline const Layout kLayout{.input_dim = 1,
                            .output_dim = 1,
                            .sequences = true,
                            .tokens = kTokens,
                            .target_per_token = true,
                            .labels = kTokens,
                            .vocabulary = kVocabulary};

inline ModelOptions transformer() {
  ModelOptions options;
  options.kind = ModelOptions::Kind::transformer;
  options.width = kWidth;
  options.experts = kExperts;
  options.router = LinearRouterOptions{};
  options.gating.train = TopKGatingOptions{.k = 2, .renormalize = true};
  options.gating.eval = TopKGatingOptions{.k = 2, .renormalize = true};
  options.transformer.heads = 2;
  options.transformer.feed_forward = 3;
  return options;
}

/// The same without a mixture.
inline ModelOptions dense() {
  ModelOptions options = transformer();
  options.transformer.moe_layers = std::vector<std::string>{};
  return options;
}

}  // namespace moelab::small_transformer
