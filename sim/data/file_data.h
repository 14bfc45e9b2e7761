#pragma once

/// The user's files as data: .npy files of inputs, targets and labels, and text files that are cut into
/// sequences of tokens.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/data/problem.h"

namespace moelab {

// Arrays (generator `file`, file_data.cpp)

/// x = inputs (n, d), y = targets (n, o) or (n), cluster = labels (n), or 0 for every row without labels.
/// With test_inputs the first train_samples rows are the training set, and the first test_samples rows of the
/// test files are the test set. Without them the last test_samples rows of `inputs` are the test set, and the
/// training set must end before it. Nothing is drawn: seeds change only the initial weights and the batches.
///
/// Drawing the problem opens the files and checks shapes, sample counts and labels, as check() does. Drawing
/// samples reads them. Bad content is a UserError at the field that names the file (data.targets, …), with
/// row and column for an entry that is not finite. Too large sample counts, and sets other than training and
/// test sets, are an InvalidOption.
struct FileOptions {
  std::string inputs = "";
  std::string targets = "";
  std::optional<std::string> labels = std::nullopt;
  std::optional<std::string> test_inputs = std::nullopt;
  std::optional<std::string> test_targets = std::nullopt;
  std::optional<std::string> test_labels = std::nullopt;

  void bind(Fields& fields);
};

/// Checks data of FileOptions and reads every row that a run would read. With `class_targets` rows of targets
/// must be probabilities.
void check_file_values(const DataOptions& data, bool class_targets = false);

// Text (generator `text`, text_data.cpp)

/// Each byte is a token, V = 256.
struct BytesTokenizer : NoFields {};
/// V byte-pair tokens, learned on the training part of all files, or of the files in `paths`.
struct BytePairTokenizer {
  int vocabulary = 512;  ///< V
  std::optional<std::vector<std::string>> paths = {};
  void bind(Fields& fields);
};
struct TokenizerAxis : PlainAxis {
  static const std::vector<KindEntry>& table();
  static constexpr const char* kNoun = "tokenizer";
};

/// The last `test_share` of each file's bytes is for testing, the bytes before it are for training. So no
/// sequence is in both parts, and each part is tokenized separately. A sample is a window of s + 1 tokens
/// inside one file. Inputs are the first s tokens, and targets the next token of each, (n, s). All windows
/// are equally likely. The label of every token, (n, s), is the place of its file in `paths`, where a
/// folder's files are sorted by name.
struct TextOptions {
  std::vector<std::string> paths = {};
  OneOf<TokenizerAxis> tokenizer = BytesTokenizer{};
  int tokens = 0;  ///< s
  double test_share = 0.1;

  void bind(Fields& fields);
};

// Byte-pair encoding (Gage 1994; for language models Sennrich et al. 2016) of any bytes, including spaces

/// The id of a token: the byte for ids below 256, and the result of merge m for id 256 + m.
using TokenId = std::uint16_t;
constexpr int kByteTokens = 256;
constexpr int kMostTokens = 65536;

/// Two consecutive tokens.
struct BytePair {
  TokenId first = 0;
  TokenId second = 0;
  bool operator==(const BytePair&) const = default;
};

/// The merges that lead to `vocabulary` ids. Each merge takes the most frequent pair of the current texts
/// (overlapping places count: "aaa" has two of "aa"). Among equally frequent pairs it takes the one with the
/// lowest first id, then the lowest second id. It replaces the pair by one token, from left to right in each
/// text, and skips places that overlap the one before. There are fewer merges if no pair occurs twice any
/// more. No pair spans two texts. The texts have at most 2^31 − 1 bytes in all.
std::vector<BytePair> learn_byte_pairs(std::span<const std::string_view> texts, int vocabulary);

/// The texts as tokens: their bytes after the merges in order. For the texts on which the merges were
/// learned, these are the tokens at the end of learning.
std::vector<std::vector<TokenId>> encode_byte_pairs(std::span<const std::string_view> texts,
                                                    std::span<const BytePair> merges);

/// Bytes of each token, (256 + merges).
std::vector<int> lengths_of_tokens(std::span<const BytePair> merges);

}  // namespace moelab
