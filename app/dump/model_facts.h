#pragma once

/// What the configuration of a language model (config.json of transformers) says about its routers.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/scenario/json.h"

namespace moelab {

struct ModelFacts {
  std::optional<int> experts, top_k, layers;  ///< E, K, decoder layers
  std::vector<int> moe_layers;                ///< numbers of the layers with a router; empty where unknown
  int groups = 1, kept_groups = 1;            ///< of a grouped selection
  std::string score;                          ///< "softmax", "sigmoid", "selected"; empty where unknown
  bool has_selection_bias = false;
  bool knows_selection_bias = false;  ///< whether the configuration tells if there is one
  std::string type;                   ///< model_type
  bool is_assumed = false;            ///< whether the score is a softmax because the type is not known
  std::optional<std::int64_t> pad_token;
};

/// Reads the configuration. Throws UserError at `place` for fields of a wrong type and for a configuration
/// without experts.
ModelFacts model_facts(const Json& config, const std::string& place);

}  // namespace moelab
