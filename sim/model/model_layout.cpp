/// What a model's options and the data's layout come to: how many mixtures, of which width.

#include "sim/model/model_options.h"

namespace moelab {

bool reads_mixture(const ModelOptions& options) {
  if (options.kind == ModelOptions::Kind::dense) return !options.width;
  return mixtures_of(options) > 0 || options.match;
}

int mixtures_of(const ModelOptions& options) {
  switch (options.kind) {
    case ModelOptions::Kind::moe:
      return options.layers;
    case ModelOptions::Kind::transformer:
      return static_cast<int>(moe_layers(options.transformer, options.layers).size());
    case ModelOptions::Kind::dense:
      break;
  }
  return 0;
}

int router_dim(const ModelOptions& options, const Layout& layout) {
  return layout_of_blocks(options, layout).router_dim();
}

Layout layout_of_blocks(const ModelOptions& options, const Layout& layout) {
  Layout own = layout_read_by(options, layout);
  own.input_dim = options.input_width.value_or(own.input_dim);
  if (options.kind == ModelOptions::Kind::transformer) own.input_dim = own.output_dim = *options.width;
  return own;
}

Layout layout_read_by(const ModelOptions& options, const Layout& layout) {
  const bool reads_sequence =
      options.kind == ModelOptions::Kind::dense && options.reads == ModelOptions::Reads::sequence;
  if (!reads_sequence) return layout;
  return {.input_dim = layout.sample_dim(), .output_dim = layout.target_dim()};
}

}  // namespace moelab
