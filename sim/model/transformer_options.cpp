#include "sim/model/transformer_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/error.h"

namespace moelab {
namespace {

[[noreturn]] void refuse_moe_layers(const std::string& got, int layers) {
  throw InvalidOption("model.moe_layers",
                      fmt::format("got {}, needs \"all\", \"alternate\", or different layers from 0 to {}, "
                                  "ascending",
                                  got, layers - 1));
}

}  // namespace

void TransformerOptions::bind(Fields& fields) {
  fields.add("heads", heads, between(1, 1024), "transformers: heads of attention, a divisor of model.width");
  fields.add(
      "feed_forward", feed_forward, between(1, 65536),
      "transformers: hidden units of networks without a router, and of each expert where model.expert is "
      "not given (default: 4 model.width)");
  fields.add(
      "moe_layers", moe_layers,
      "transformers: layers whose network is a mixture: a list of layers from 0 on, \"all\" (default) or "
      "\"alternate\" (1, 3, …); [] is the dense model");
  fields.add(
      "positions", positions, {"learned", "rotary"},
      "transformers: places in the sequence are learned rows that are added to those of tokens (default), or "
      "turn queries and keys");
  fields.add("norm", norm, {"layer", "rms"}, "transformers: normalization before each part (default layer)");
  fields.add("tied_embedding", tied_embedding,
             "transformers: the read-out is the embedding, scores x E^T / √width (default false)");
  fields.add(
      "causal", causal,
      "transformers: a token sees those before it, and the task is the next one (default true); false: it "
      "sees the whole sequence, and the task is masked_tokens");
  fields.add(
      "dropout", dropout, between(0, 0.99),
      "transformers: in training steps entries of what attention and networks add to a row are 0 with this "
      "probability p, the others divided by 1 − p (default 0)");
}

std::vector<int> moe_layers(const TransformerOptions& options, int layers) {
  std::vector<int> chosen;
  const std::vector<std::string> given = options.moe_layers.value_or(std::vector<std::string>{"all"});
  if (given.size() == 1 && (given.front() == "all" || given.front() == "alternate")) {
    const bool are_all = given.front() == "all";
    for (int layer = are_all ? 0 : 1; layer < layers; layer += are_all ? 1 : 2) chosen.push_back(layer);
    return chosen;
  }
  for (const std::string& text : given) {
    int layer = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layer);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    const bool is_next = chosen.empty() || layer > chosen.back();
    if (!is_number || layer < 0 || layer >= layers || !is_next) refuse_moe_layers(text, layers);
    chosen.push_back(layer);
  }
  return chosen;
}

void check(const TransformerOptions& options, std::optional<int> width, int layers) {
  if (!width) throw InvalidOption("model.width", "missing; a transformer needs the width of its rows");
  if (!options.heads) throw InvalidOption("model.heads", "missing; a transformer needs it");
  if (*width % *options.heads != 0) {
    throw InvalidOption("model.heads",
                        fmt::format("got {}, needs a divisor of model.width = {}", *options.heads, *width));
  }
  if (options.positions == TransformerOptions::Positions::rotary && *width / *options.heads % 2 != 0) {
    throw InvalidOption("model.heads",
                        fmt::format("got {}, but \"rotary\" positions need an even model.width / "
                                    "model.heads = {}",
                                    *options.heads, *width / *options.heads));
  }
  moe_layers(options, layers);
}

void check_no_transformer(const TransformerOptions& options) {
  const auto refuse = [](const char* field, bool given) {
    if (given)
      throw InvalidOption(std::string("model.") + field, "given, but model.kind is not 'transformer'");
  };
  refuse("heads", options.heads.has_value());
  refuse("feed_forward", options.feed_forward.has_value());
  refuse("moe_layers", options.moe_layers.has_value());
  refuse("positions", options.positions.has_value());
  refuse("norm", options.norm.has_value());
  refuse("tied_embedding", options.tied_embedding.has_value());
  refuse("causal", options.causal.has_value());
  refuse("dropout", options.dropout.has_value());
}

}  // namespace moelab
