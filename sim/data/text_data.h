#pragma once

/// Text of the user's own as data: UTF-8 files, cut into sequences of tokens.

#include <optional>
#include <string>
#include <vector>

#include "sim/data/choices.h"

namespace moelab {

/// Each byte is a token, V = 256.
struct BytesTokenizer {
  void bind(Fields& /*fields*/) {}
};
/// Tokens are the V of sim/data/byte_pairs.h, learned on what is for training of all files, or of those of
/// `paths`.
struct BytePairTokenizer {
  int vocabulary = 512;  ///< V
  std::optional<std::vector<std::string>> paths = {};
  void bind(Fields& fields);
};
struct TokenizerAxis : PlainAxis {
  static const std::vector<KindEntry>& table();
  static constexpr const char* kNoun = "tokenizer";
};

/// The last `test_share` of each file's bytes is for testing, what is before it for training, so that no
/// sequence lies in both; each of these parts is made tokens on its own. A sample is a window of s + 1 tokens
/// inside one file: inputs are the first s, targets the next token of each, (n, s); windows are drawn
/// uniformly, of a file in proportion to its tokens. The label of every token, (n, s), is the place of its
/// file among `paths`, a folder's files in the order of their names.
struct TextOptions {
  std::vector<std::string> paths = {};
  OneOf<TokenizerAxis> tokenizer = BytesTokenizer{};
  int tokens = 0;  ///< s
  double test_share = 0.1;

  void bind(Fields& fields);
};

}  // namespace moelab
