/// Byte pairs against an implementation that counts all anew before every merge (byte_pairs.py, whose values
/// are byte_pairs.json).

#include <doctest/doctest.h>

#include <numeric>
#include <string>

#include "app/scenario/json.h"
#include "sim/data/file_data.h"

namespace moelab::byte_pairs_test {
namespace {

std::vector<std::string_view> views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

using Tokens = std::vector<std::vector<TokenId>>;

}  // namespace

TEST_CASE("byte pairs: merges and tokens are those of plain counting") {
  for (const Json& stored : read_json_file(MOELAB_TEST_DATA "/sim/data/byte_pairs.json")) {
    const std::vector<std::string> train = stored.at("train"), test = stored.at("test");
    const std::vector<BytePair> merges = learn_byte_pairs(views(train), stored.at("vocabulary"));
    REQUIRE(merges.size() == stored.at("merges").size());
    for (std::size_t m = 0; m < merges.size(); ++m) {
      CAPTURE(m);
      CHECK(merges[m].first == stored.at("merges")[m][0]);
      CHECK(merges[m].second == stored.at("merges")[m][1]);
    }
    CHECK(encode_byte_pairs(views(train), merges) == stored.at("encoded_train").get<Tokens>());
    CHECK(encode_byte_pairs(views(test), merges) == stored.at("encoded_test").get<Tokens>());
  }
}

TEST_CASE("byte pairs: by hand") {
  const std::vector<std::string> texts = {"abab", "ab", "ba"};
  // (a, b) stands at three places, (b, a) at two; afterwards no pair stands at two.
  const std::vector<BytePair> merges = learn_byte_pairs(views(texts), 1000);
  CHECK(merges == std::vector<BytePair>{{'a', 'b'}});
  CHECK(encode_byte_pairs(views(texts), merges) == Tokens{{256, 256}, {256}, {'b', 'a'}});
  CHECK(encode_byte_pairs(views(texts), {}) == Tokens{{'a', 'b', 'a', 'b'}, {'a', 'b'}, {'b', 'a'}});
  // Of pairs that stand at as many places, the lowest.
  CHECK(learn_byte_pairs(views({"cdabab", "xyxy", "cd"}), 257) == std::vector<BytePair>{{'a', 'b'}});
  // A pair does not reach from a text into the next.
  CHECK(learn_byte_pairs(views({"a", "b", "a", "b"}), 300).empty());
  CHECK(learn_byte_pairs({}, 300).empty());
}

TEST_CASE("byte pairs: tokens stand for the bytes that they are made of") {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i * i % 997) + (i % 7 == 0 ? "; " : " ");
  const std::vector<BytePair> merges = learn_byte_pairs(views({text}), 700);
  REQUIRE(merges.size() == 700 - 256);
  std::vector<std::string> meaning;
  for (int byte = 0; byte < kByteTokens; ++byte) meaning.emplace_back(1, static_cast<char>(byte));
  for (const BytePair& pair : merges) meaning.push_back(meaning[pair.first] + meaning[pair.second]);
  const std::vector<int> lengths = lengths_of_tokens(merges);
  REQUIRE(lengths.size() == 700);
  for (std::size_t id = 0; id < lengths.size(); ++id)
    CHECK(lengths[id] == static_cast<int>(meaning[id].size()));
  const Tokens tokens = encode_byte_pairs(views({text}), merges);
  std::string decoded;
  for (const TokenId id : tokens.front()) decoded += meaning[id];
  CHECK(decoded == text);
  CHECK(tokens.front().size() < text.size() / 2);
}

}  // namespace moelab::byte_pairs_test
