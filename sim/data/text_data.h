#pragma once

/// Text of the user's own as data: UTF-8 files, cut into sequences of tokens.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/data/problem.h"

namespace moelab {

/// Each byte is a token, V = 256.
struct BytesTokenizer {
  void bind(Fields& /*fields*/) {}
};
/// Tokens are the V of sim/data/text_data.h, learned on what is for training of all files, or of those of
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

// Byte-pair encoding (Gage 1994; for language models Sennrich et al. 2016) of any bytes, spaces among them.

/// Ids of tokens: below 256 that byte, 256 + m what merge m makes.
using TokenId = std::uint16_t;
constexpr int kByteTokens = 256;
constexpr int kMostTokens = 65536;

/// Two tokens that follow one another.
struct BytePair {
  TokenId first = 0;
  TokenId second = 0;
  bool operator==(const BytePair&) const = default;
};

/// Merges by which `vocabulary` ids come about. Each takes the pair that stands at most places of the texts
/// as they then are (overlapping places count: "aaa" has two of "aa"), of several the lowest by its first id,
/// then by its second; its places become one token, from the left of each text to its right, those that
/// overlap one before left out. Fewer than asked for where no pair stands at two places any more. No pair
/// spans two texts, which hold at most 2^31 − 1 bytes in all.
std::vector<BytePair> learn_byte_pairs(std::span<const std::string_view> texts, int vocabulary);

/// The texts as tokens: their bytes, on which the merges are made in their order. Of the texts that they were
/// learned of, the tokens that learning ended with.
std::vector<std::vector<TokenId>> encode_byte_pairs(std::span<const std::string_view> texts,
                                                    std::span<const BytePair> merges);

/// Bytes of each token, (256 + merges).
std::vector<int> lengths_of_tokens(std::span<const BytePair> merges);

}  // namespace moelab
