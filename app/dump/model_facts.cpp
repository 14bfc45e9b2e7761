#include "app/dump/model_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// Model types whose scores are not a softmax over all experts, and those whose selection has a bias.
const std::set<std::string> kSigmoidModels = {"deepseek_v3", "glm4_moe", "glm4_moe_lite", "minimax_m2",
                                              "dots1",       "llama4",   "llama4_text",   "glm4v_moe",
                                              "lfm2_moe",    "afmoe",    "glm_moe_dsa",   "bailing_moe_v2"};
const std::set<std::string> kBiasedModels = {
    "deepseek_v3",   "glm4_moe",  "glm4_moe_lite", "minimax_m2", "dots1",       "ernie4_5_moe",
    "longcat_flash", "glm4v_moe", "lfm2_moe",      "afmoe",      "glm_moe_dsa", "bailing_moe_v2"};
/// Model types whose scores are known to be a softmax over all experts.
const std::set<std::string> kSoftmaxModels = {"mixtral",       "qwen2_moe",
                                              "qwen3_moe",     "qwen3_vl_moe_text",
                                              "qwen3_next",    "olmoe",
                                              "flex_olmo",     "deepseek_v2",
                                              "phimoe",        "jetmoe",
                                              "granitemoe",    "granitemoeshared",
                                              "dbrx",          "switch_transformers",
                                              "nllb-moe",      "ernie4_5_moe",
                                              "longcat_flash", "jamba",
                                              "minimax",       "hunyuan_v1_moe"};
const std::set<std::string> kTopOneModels = {"switch_transformers", "llama4", "llama4_text"};

class ConfigReader {
 public:
  ConfigReader(const Json& config, std::string place) : config_(config), place_(std::move(place)) {}

  const Json* field(const std::string& name) const {
    const auto own = config_.find(name);
    return own == config_.end() || own->is_null() ? nullptr : &*own;
  }

  /// The first of these fields that is there.
  std::optional<int> number(std::initializer_list<const char*> names, int least = 0) const {
    for (const char* const name : names) {
      const Json* const value = field(name);
      if (!value) continue;
      const Json& own = value->is_array() && !value->empty() ? value->front() : *value;
      if (!own.is_number_integer() || own.get<std::int64_t>() < least || own.get<std::int64_t>() > 1000000)
        throw UserError(place_, fmt::format("{} is {}, needs a whole number", name, abbreviated(*value)));
      return own.get<int>();
    }
    return std::nullopt;
  }

  std::optional<std::vector<int>> numbers(const char* name) const {
    const Json* const value = field(name);
    if (!value || !value->is_array()) return std::nullopt;
    std::vector<int> all;
    for (const Json& entry : *value) {
      if (!entry.is_number_integer())
        throw UserError(place_, fmt::format("{} is {}, needs a list of numbers", name, abbreviated(*value)));
      all.push_back(entry.get<int>());
    }
    return all;
  }

  /// Whether one of these fields is true.
  bool is_set(std::initializer_list<const char*> names) const {
    return std::any_of(names.begin(), names.end(), [&](const char* name) {
      const Json* const value = field(name);
      return value && value->is_boolean() && value->get<bool>();
    });
  }

  std::string text(const char* name) const {
    const Json* const value = field(name);
    return value && value->is_string() ? value->get<std::string>() : std::string();
  }

 private:
  const Json& config_;
  std::string place_;
};

/// Whether layer l has a router, by the fields that families of models use.
std::vector<int> layers_with_router(const ConfigReader& config, int layers) {
  const std::optional<std::vector<int>> listed = config.numbers("moe_layers"),
                                        dense = config.numbers("mlp_only_layers"),
                                        frequencies = config.numbers("moe_layer_freq");
  if (listed && !listed->empty()) return *listed;
  const int first =
      config.number({"first_k_dense_replace", "moe_layer_start_index", "num_dense_layers"}).value_or(0);
  // −1 is the last layer.
  const int end = config.number({"moe_layer_end_index"}, -1).value_or(-1), last = end < 0 ? layers - 1 : end;
  const int step = std::max(
      1,
      config.number({"decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval"}).value_or(1));
  const bool counts_from_one = config.field("decoder_sparse_step") ||
                               config.field("interleave_moe_layer_step") ||
                               config.field("moe_layer_interval");
  const std::optional<int> period = config.number({"expert_layer_period"});
  const int offset = config.number({"expert_layer_offset"}).value_or(0);
  const int frequency = frequencies ? 1 : std::max(1, config.number({"moe_layer_freq"}).value_or(1));
  std::vector<int> with_router;
  for (int layer = 0; layer < layers; ++layer) {
    bool has_router = layer >= first && layer <= last && layer % frequency == 0;
    if (frequencies && static_cast<std::size_t>(layer) < frequencies->size())
      has_router = has_router && (*frequencies)[static_cast<std::size_t>(layer)] != 0;
    if (counts_from_one) has_router = has_router && (layer + 1) % step == 0;
    if (period) has_router = has_router && *period > 0 && layer % *period == offset;
    if (dense) has_router = has_router && std::find(dense->begin(), dense->end(), layer) == dense->end();
    if (has_router) with_router.push_back(layer);
  }
  return with_router;
}

}  // namespace

ModelFacts model_facts(const Json& given, const std::string& place) {
  if (!given.is_object()) throw UserError(place, "is no configuration: needs a JSON object");
  const Json& config = given.contains("text_config") && given.at("text_config").is_object() &&
                               !given.contains("num_hidden_layers")
                           ? given.at("text_config")
                           : given;
  const ConfigReader reader(config, place);
  ModelFacts facts;
  facts.experts = reader.number({"num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts",
                                 "num_routed_experts", "n_experts"});
  if (!facts.experts)
    throw UserError(place,
                    "names no number of experts (num_experts, num_local_experts, n_routed_experts); is it "
                    "the config.json of a model with experts?");
  *facts.experts += reader.number({"zero_expert_num"}).value_or(0);
  // A configuration of text within another may leave its type to it.
  const std::string own_type = reader.text("model_type"),
                    type = own_type.empty() ? ConfigReader(given, place).text("model_type") : own_type;
  facts.top_k = reader.number({"num_experts_per_tok", "moe_topk", "moe_top_k", "num_experts_per_token",
                               "num_selected_experts", "moe_k", "top_k_experts"});
  if (!facts.top_k && kTopOneModels.contains(type)) facts.top_k = 1;
  facts.layers = reader.number({"num_hidden_layers", "num_layers", "n_layer"});
  if (facts.layers) facts.moe_layers = layers_with_router(reader, *facts.layers);
  facts.groups = std::max(1, reader.number({"n_group"}).value_or(1));
  facts.kept_groups = std::max(1, reader.number({"topk_group"}).value_or(facts.groups));
  std::string scoring;
  for (const char* const name :
       {"scoring_func", "score_function", "score_func", "moe_router_activation_func"}) {
    if (scoring.empty()) scoring = reader.text(name);
  }
  if (!scoring.empty())
    facts.score = scoring;
  else if (kSigmoidModels.contains(type))
    facts.score = "sigmoid";
  else if (type == "gpt_oss")
    facts.score = "selected";
  else {
    facts.score = "softmax";
    facts.is_assumed = !kSoftmaxModels.contains(type);
  }
  facts.type = type;
  if (facts.score != "softmax" && facts.score != "sigmoid" && facts.score != "selected")
    throw UserError(place, fmt::format("scoring_func is '{}'; softmax and sigmoid are known", facts.score));
  facts.has_selection_bias = reader.text("topk_method") == "noaux_tc" ||
                             (reader.text("topk_method").empty() && kBiasedModels.contains(type)) ||
                             reader.is_set({"use_expert_bias", "moe_router_enable_expert_bias",
                                            "use_routing_bias", "e_score_correction_bias"});
  facts.knows_selection_bias = facts.has_selection_bias || !reader.text("topk_method").empty() ||
                               kSigmoidModels.contains(type) || kSoftmaxModels.contains(type);
  if (const Json* const pad = reader.field("pad_token_id"); pad && pad->is_number_integer())
    facts.pad_token = pad->get<std::int64_t>();
  return facts;
}

}  // namespace moelab
