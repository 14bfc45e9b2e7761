#pragma once

/// The layout of a problem's arrays, on which generators and models agree.

#include <cstdint>
#include <vector>

namespace moelab {

/// The image at the beginning of a row: (channels, height, width), one channel after another.
struct ImageShape {
  int channels = 0;
  int height = 0;
  int width = 0;
  int size() const { return channels * height * width; }
};

struct Layout {
  int input_dim = 0;              ///< d, width of a row
  int output_dim = 0;             ///< o, width of a target
  bool sequences = false;         ///< a sample is a sequence of `tokens` rows (s, d), otherwise one row
  int tokens = 1;                 ///< s
  bool target_per_token = false;  ///< y is (n, s, o), otherwise one target a sample, f = Σ_tokens f(x_i)
  bool class_targets = false;     ///< targets are indicators (or probabilities) of o classes
  int labels = 1;                 ///< latent labels of a sample: 1, one a token (s), or one a part (r)
  /// V if inputs and targets are ids of tokens 0 … V − 1 (d = o = 1) and a model has an output for each id.
  /// Otherwise 0.
  int vocabulary = 0;
  ImageShape image = {};  ///< leading columns, which only the router reads. The experts read the others.

  int sample_dim() const { return tokens * input_dim; }
  int target_dim() const { return target_per_token ? tokens * output_dim : output_dim; }
  /// Entries of the outputs of a sample: (n, s, V) for ids.
  int prediction_dim() const { return vocabulary > 0 ? tokens * vocabulary : target_dim(); }
  /// Columns that the router reads.
  int router_dim() const { return image.size() > 0 ? image.size() : input_dim; }

  /// Shapes of arrays of n samples: (n, width), or (n, s, width) for sequences.
  std::vector<std::int64_t> row_shape(std::int64_t n, std::int64_t width) const {
    if (sequences) return {n, tokens, width};
    return {n, width};
  }
  std::vector<std::int64_t> input_shape(std::int64_t n) const {
    if (vocabulary > 0) return {n, tokens};
    return row_shape(n, input_dim);
  }
  std::vector<std::int64_t> target_shape(std::int64_t n) const {
    if (vocabulary > 0) return {n, tokens};
    if (target_per_token) return row_shape(n, output_dim);
    return {n, output_dim};
  }
  /// Whether a model for this layout fits rows and outputs of the other.
  bool has_same_rows(const Layout& other) const {
    return input_dim == other.input_dim && output_dim == other.output_dim && sequences == other.sequences &&
           tokens == other.tokens && vocabulary == other.vocabulary &&
           target_per_token == other.target_per_token && image.size() == other.image.size();
  }
  /// (n), or (n, labels) if a sample has several labels.
  std::vector<std::int64_t> label_shape(std::int64_t n) const {
    if (sequences || labels > 1) return {n, labels};
    return {n};
  }
};

/// Sequences of ids x (n, s) with the next ids as targets y (n, s), and one label per token.
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
