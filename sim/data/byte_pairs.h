#pragma once

/// Byte-pair encoding (Gage 1994; for language models Sennrich et al. 2016) of any bytes, spaces among them.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace moelab {

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
