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
  options.kind = TransformerOptions{.width = kWidth, .heads = 2, .feed_forward = 3};
  options.experts = kExperts;
  options.router = LinearRouterOptions{};
  options.gating.train = TopKGatingOptions{.k = 2, .renormalize = true};
  options.gating.eval = TopKGatingOptions{.k = 2, .renormalize = true};
  return options;
}
inline TransformerOptions& own(ModelOptions& options) {
  return *options.kind.as<TransformerOptions>();
}

/// The same with another mixer, by the example of its kind.
inline ModelOptions with_mixer(const MixerKind& mixer) {
  ModelOptions options = transformer();
  own(options).mixer = MixerOptions::example(mixer.name);
  if (!mixer.has_heads) own(options).heads.reset();
  return options;
}

/// The same without a mixture.
inline ModelOptions dense() {
  ModelOptions options = transformer();
  own(options).moe_layers = std::vector<std::string>{};
  return options;
}

}  // namespace moelab::small_transformer
