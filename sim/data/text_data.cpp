#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/folder.h"
#include "sim/data/file_data.h"
#include "sim/data/layout.h"
#include "sim/data/problem.h"

namespace moelab {
namespace {

/// A pair as a number, which orders pairs by their first id, then by their second id.
using PairKey = std::uint32_t;

PairKey key_of(int first, int second) {
  return static_cast<PairKey>(first) << 16 | static_cast<PairKey>(second);
}

/// The places of a pair.
struct PairPlaces {
  int count = 0;
  std::vector<int> places;  ///< of its first token, ascending, including outdated places
};

/// Changes of pairs with the tokens next to the places of a merge. There are few such tokens with many
/// places.
class BesideMerge {
 public:
  void add(int token, int count) { entry(token).count += count; }
  void add_place(int token, int place) {
    PairPlaces& known = entry(token);
    ++known.count;
    known.places.push_back(place);
  }
  /// Calls take(token, places) for all, and deletes them.
  template <class Take>
  void empty_into(const Take& take) {
    for (const int token : touched_) {
      PairPlaces& known = of_token_[size(token)];
      if (known.count != 0) take(token, known);
      known.count = 0;
      known.places.clear();
    }
    touched_.clear();
  }

 private:
  PairPlaces& entry(int token) {
    const std::size_t at = size(token);
    if (at >= of_token_.size()) of_token_.resize(at + 1);
    if (of_token_[at].count == 0) touched_.push_back(token);
    return of_token_[at];
  }

  std::vector<PairPlaces> of_token_;
  std::vector<int> touched_;
};

/// Texts whose tokens are merged in place. It stores the places of pairs, so the cost of a merge is
/// proportional to its changes.
class MergedTexts {
 public:
  using IsKept = std::function<bool(PairKey pair, int count)>;

  /// Keeps the new pairs for which `is_kept` holds.
  MergedTexts(std::span<const std::string_view> texts, IsKept is_kept) : is_kept_(std::move(is_kept)) {
    const std::size_t all =
        std::accumulate(texts.begin(), texts.end(), std::size_t{0},
                        [](std::size_t sum, std::string_view text) { return sum + text.size(); });
    MOELAB_EXPECT(all <= std::size_t{std::numeric_limits<int>::max()});
    bytes_.reserve(all);
    for (const std::string_view text : texts) {
      const int first = static_cast<int>(bytes_.size()), size = static_cast<int>(text.size());
      first_.push_back(text.empty() ? kNone : first);
      for (int i = 0; i < size; ++i) {
        bytes_.push_back({static_cast<unsigned char>(text[static_cast<std::size_t>(i)]),
                          i > 0 ? first + i - 1 : kNone, i + 1 < size ? first + i + 1 : kNone});
      }
    }
    for (int place = 0; place < static_cast<int>(all); ++place) {
      const Byte& here = at(place);
      if (here.next == kNone) continue;
      PairPlaces& known = pairs_[key_of(here.token, at(here.next).token)];
      ++known.count;
      known.places.push_back(place);
    }
    std::erase_if(pairs_, [&](const auto& pair) { return !is_kept_(pair.first, pair.second.count); });
  }

  /// The kept pairs. The count of a new pair can only fall later, because a merge makes only pairs with its
  /// own token.
  const std::unordered_map<PairKey, PairPlaces>& pairs() const { return pairs_; }

  /// Replaces the places of a kept pair by the new token `merged`, and calls made(pair) for all kept pairs
  /// with this token.
  template <class Made>
  void merge(const BytePair& pair, int merged, const Made& made) {
    auto node = pairs_.extract(key_of(pair.first, pair.second));
    if (node.empty()) return;
    for (const int place : node.mapped().places) {
      const int second = at(place).next;
      if (at(place).token == pair.first && second != kNone && at(second).token == pair.second)
        merge_at(place, second, pair, merged);
    }
    lost_before_.empty_into([&](int x, const PairPlaces& lost) { lose(key_of(x, pair.first), lost.count); });
    lost_after_.empty_into([&](int x, const PairPlaces& lost) { lose(key_of(pair.second, x), lost.count); });
    const auto keep = [&](PairKey made_pair, PairPlaces& places) {
      if (!is_kept_(made_pair, places.count)) return;
      pairs_.emplace(made_pair, places);
      made(made_pair, places.count);
    };
    made_before_.empty_into([&](int x, PairPlaces& places) { keep(key_of(x, merged), places); });
    made_after_.empty_into([&](int x, PairPlaces& places) { keep(key_of(merged, x), places); });
  }

  std::vector<std::vector<TokenId>> tokens() const {
    std::vector<std::vector<TokenId>> all;
    for (const int first : first_) {
      std::vector<TokenId>& text = all.emplace_back();
      for (int place = first; place != kNone; place = at(place).next)
        text.push_back(static_cast<TokenId>(at(place).token));
    }
    return all;
  }

 private:
  static constexpr int kNone = -1;
  struct Byte {
    int token;  ///< that begins here, or kNone if the byte belongs to the token before
    int previous, next;
  };

  Byte& at(int place) { return bytes_[size(place)]; }
  const Byte& at(int place) const { return bytes_[size(place)]; }

  void merge_at(int place, int second, const BytePair& pair, int merged) {
    const int before = at(place).previous, after = at(second).next;
    if (before != kNone) {
      const int x = at(before).token;
      // The token before may have been merged just now.
      if (x == merged)
        made_after_.add(pair.first, -1);
      else
        lost_before_.add(x, 1);
      made_before_.add_place(x, before);
    }
    if (after != kNone) {
      const int x = at(after).token;
      lost_after_.add(x, 1);
      made_after_.add_place(x, place);
      at(after).previous = place;
    }
    at(place).token = merged;
    at(place).next = after;
    at(second).token = kNone;
  }

  void lose(PairKey pair, int count) {
    const auto known = pairs_.find(pair);
    if (known != pairs_.end()) known->second.count -= count;
  }

  IsKept is_kept_;
  std::vector<Byte> bytes_;
  std::vector<int> first_;  ///< place of each text
  std::unordered_map<PairKey, PairPlaces> pairs_;
  // Changes of the pairs (x, first), (second, x), (x, merged) and (merged, x), by x.
  BesideMerge lost_before_, lost_after_, made_before_, made_after_;
};

namespace fs = std::filesystem;

/// Places of byte pairs are counted by `int`.
constexpr std::size_t kMostPairedBytes = 2'000'000'000;

/// The files of a path: itself, or the regular files of a folder by name.
std::vector<fs::path> files_at(const std::string& path, const std::string& field) {
  if (fs::is_regular_file(path)) return {path};
  if (!fs::is_directory(path)) throw UserError(field, fmt::format("'{}' is no file or folder", path));
  std::vector<fs::path> files;
  for (const fs::path& file : entries_of(path))
    if (fs::is_regular_file(file)) files.push_back(file);
  if (files.empty()) throw UserError(field, fmt::format("'{}' is a folder without files", path));
  return files;
}

std::string read_text(const fs::path& path, const std::string& field,
                      const std::shared_ptr<FileContents>& contents) {
  const InputFile file(path, content_of(contents, path));
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, text.data(), text.size());
  const std::size_t place = first_byte_outside_utf8(text);
  if (place == text.size()) return text;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(place), '\n');
  throw UserError(field, fmt::format("'{}' is no UTF-8: byte {} (\\x{:02x}, in line {}) begins no character",
                                     path.string(), place, static_cast<unsigned char>(text[place]), line));
}

/// The text of files, each cut into a training part and a testing part.
struct TextParts {
  std::vector<std::string> names, files;
  std::vector<std::string_view> train, test;  ///< of `files`, one for each

  /// `field` names the paths in messages.
  TextParts(const std::vector<std::string>& paths, const std::string& field, double test_share,
            const std::shared_ptr<FileContents>& contents) {
    if (paths.empty()) throw UserError(field, "got [], needs a file or a folder");
    for (const std::string& path : paths) {
      for (const fs::path& file : files_at(path, field)) {
        names.push_back(file.string());
        files.push_back(read_text(file, field, contents));
      }
    }
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::string_view text = files[i];
      if (text.empty()) throw UserError(field, fmt::format("'{}' is empty", names[i]));
      const auto begin = static_cast<std::size_t>((1 - test_share) * static_cast<double>(text.size()));
      train.push_back(text.substr(0, begin));
      test.push_back(text.substr(begin));
    }
  }
  TextParts(const TextParts&) = delete;
  TextParts& operator=(const TextParts&) = delete;
};

/// The parts of all files as tokens.
struct TokenizedText {
  std::vector<std::vector<TokenId>> train, test;
  std::vector<int> lengths;  ///< bytes of each token, (V)
};

void check_bytes(const std::vector<const TextParts*>& texts) {
  std::size_t bytes = 0;
  for (const TextParts* const text : texts) {
    for (const std::string& file : text->files) bytes += file.size();
  }
  if (bytes <= kMostPairedBytes) return;
  throw UserError("data.tokenizer", fmt::format("got \"bpe\", needs files of at most {} bytes in all, not {}",
                                                kMostPairedBytes, bytes));
}

/// Byte pairs are learned on `learned`.
TokenizedText tokenize(const BytePairTokenizer* pairs, const TextParts& text, const TextParts& learned) {
  std::vector<BytePair> merges;
  if (pairs) {
    check_bytes({&text, &learned});
    merges = learn_byte_pairs(learned.train, pairs->vocabulary);
    const int count = kByteTokens + static_cast<int>(merges.size());
    if (count < pairs->vocabulary) {
      throw UserError("data.tokenizer.vocabulary",
                      fmt::format("got {}, needs at most {}: with so many tokens no two follow one another "
                                  "twice in what the files of data.{}paths hold for training",
                                  pairs->vocabulary, count, pairs->paths ? "tokenizer." : ""));
    }
  }
  return {encode_byte_pairs(text.train, merges), encode_byte_pairs(text.test, merges),
          lengths_of_tokens(merges)};
}

/// The same with a cache of the last few texts: every cell and every check draws a problem, but byte pairs
/// are learned once.
std::shared_ptr<const TokenizedText> tokenized(const BytePairTokenizer* pairs, const TextParts& text,
                                               const TextParts& learned) {
  if (!pairs) return std::make_shared<const TokenizedText>(tokenize(pairs, text, learned));
  struct Known {
    int vocabulary;
    std::vector<std::string> train, test, learned;
    std::shared_ptr<const TokenizedText> text;
  };
  constexpr std::size_t kKept = 4;
  static std::mutex mutex;
  static std::deque<Known> all;
  const std::lock_guard lock(mutex);
  const auto is_this = [&](const Known& known) {
    return known.vocabulary == pairs->vocabulary && std::ranges::equal(known.train, text.train) &&
           std::ranges::equal(known.test, text.test) && std::ranges::equal(known.learned, learned.train);
  };
  if (const auto known = std::ranges::find_if(all, is_this); known != all.end()) return known->text;
  all.push_front({pairs->vocabulary,
                  {text.train.begin(), text.train.end()},
                  {text.test.begin(), text.test.end()},
                  {learned.train.begin(), learned.train.end()},
                  std::make_shared<const TokenizedText>(tokenize(pairs, text, learned))});
  if (all.size() > kKept) all.pop_back();
  return all.front().text;
}

class TextProblem final : public Problem {
 public:
  explicit TextProblem(const DataOptions& data) : tokens_(data.options().get<TextOptions>().tokens) {
    const TextOptions& options = data.options().get<TextOptions>();
    const auto parts_of = [&](const std::vector<std::string>& paths, const char* field) {
      return std::make_unique<TextParts>(paths, field, options.test_share, data.contents);
    };
    const std::unique_ptr<TextParts> text = parts_of(options.paths, "data.paths");
    const auto* const pairs = options.tokenizer.as<BytePairTokenizer>();
    const std::unique_ptr<TextParts> learned =
        pairs && pairs->paths ? parts_of(*pairs->paths, "data.tokenizer.paths") : nullptr;
    text_ = tokenized(pairs, *text, learned ? *learned : *text);
    for (std::size_t i = 0; i < text->files.size(); ++i) {
      const auto check = [&](const std::vector<TokenId>& part, std::string_view bytes, const char* use) {
        check_length(text->names[i], text->files[i].size(), part, bytes.size(), use);
      };
      check(text_->train[i], text->train[i], "training");
      check(text_->test[i], text->test[i], "testing");
    }
  }

  Layout layout() const override { return token_layout(tokens_, static_cast<int>(text_->lengths.size())); }
  int clusters() const override { return static_cast<int>(text_->train.size()); }

  Dataset draw(Engine& engine, const SampleRange& range) const override {
    const auto& parts = range.purpose == Purpose::test_data ? text_->test : text_->train;
    std::int64_t all = 0;
    for (const std::vector<TokenId>& part : parts) all += windows_of(part);
    boost::random::uniform_int_distribution<std::int64_t> windows(0, all - 1);
    Dataset data{Matrix(range.count, tokens_), Matrix(range.count, tokens_), {}};
    data.cluster.reserve(size(data.x.size()));
    for (int i = 0; i < range.count; ++i) {
      std::int64_t window = windows(engine);
      auto part = parts.begin();
      for (; window >= windows_of(*part); ++part) window -= windows_of(*part);
      const auto first = part->begin() + window;
      for (int t = 0; t < tokens_; ++t) {
        data.x(i, t) = first[t];
        data.y(i, t) = first[t + 1];
        data.cluster.push_back(static_cast<int>(part - parts.begin()));
      }
    }
    return data;
  }

  std::optional<double> bytes_of(const Matrix& ids) const override {
    std::int64_t bytes = 0;
    for (const double id : ids.reshaped()) {
      if (id >= 0) bytes += text_->lengths[static_cast<std::size_t>(id)];
    }
    return static_cast<double>(bytes);
  }

 private:
  std::int64_t windows_of(const std::vector<TokenId>& part) const {
    return static_cast<std::int64_t>(part.size()) - tokens_;
  }

  void check_length(const std::string& name, std::size_t all_bytes, const std::vector<TokenId>& part,
                    std::size_t bytes, const char* use) const {
    if (windows_of(part) > 0) return;
    const std::string as_tokens =
        text_->lengths.size() > kByteTokens ? fmt::format(" ({} tokens)", part.size()) : "";
    throw UserError("data.paths", fmt::format("'{}' has {} bytes, {}{} of them for {}; a sequence of "
                                              "data.tokens = {} and the token after it need {}",
                                              name, all_bytes, bytes, as_tokens, use, tokens_, tokens_ + 1));
  }

  int tokens_;
  std::shared_ptr<const TokenizedText> text_;
};

}  // namespace

std::vector<BytePair> learn_byte_pairs(std::span<const std::string_view> texts, int vocabulary) {
  MOELAB_EXPECT(vocabulary <= kMostTokens);
  MergedTexts merged(texts, [](PairKey /*pair*/, int count) { return count > 1; });
  using Candidate = std::pair<int, PairKey>;
  const auto is_later = [](const Candidate& a, const Candidate& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  };
  // Counts at the time of insertion. The largest count that is still right is the largest of all.
  std::priority_queue<Candidate, std::vector<Candidate>, decltype(is_later)> candidates(is_later);
  for (const auto& [pair, places] : merged.pairs()) candidates.emplace(places.count, pair);
  std::vector<BytePair> merges;
  while (!candidates.empty() && kByteTokens + static_cast<int>(merges.size()) < vocabulary) {
    const auto [count, pair] = candidates.top();
    candidates.pop();
    const auto known = merged.pairs().find(pair);
    if (known == merged.pairs().end()) continue;
    if (known->second.count != count) {
      if (known->second.count > 1) candidates.emplace(known->second.count, pair);
      continue;
    }
    merges.push_back({static_cast<TokenId>(pair >> 16), static_cast<TokenId>(pair & 0xffff)});
    merged.merge(merges.back(), kByteTokens + static_cast<int>(merges.size()) - 1,
                 [&](PairKey made, int places) { candidates.emplace(places, made); });
  }
  return merges;
}

std::vector<std::vector<TokenId>> encode_byte_pairs(std::span<const std::string_view> texts,
                                                    std::span<const BytePair> merges) {
  if (merges.empty()) {
    std::vector<std::vector<TokenId>> all;
    for (const std::string_view text : texts) {
      std::vector<TokenId>& tokens = all.emplace_back();
      for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    }
    return all;
  }
  std::unordered_set<PairKey> to_merge;
  for (const BytePair& pair : merges) to_merge.insert(key_of(pair.first, pair.second));
  MergedTexts merged(texts, [&](PairKey pair, int /*count*/) { return to_merge.contains(pair); });
  for (std::size_t m = 0; m < merges.size(); ++m)
    merged.merge(merges[m], kByteTokens + static_cast<int>(m), [](PairKey, int) {});
  return merged.tokens();
}

std::vector<int> lengths_of_tokens(std::span<const BytePair> merges) {
  std::vector<int> lengths(kByteTokens, 1);
  for (const BytePair& pair : merges) lengths.push_back(lengths[pair.first] + lengths[pair.second]);
  return lengths;
}

const std::vector<KindEntry>& TokenizerAxis::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<BytesTokenizer>("bytes", "each byte is a token"),
      plain_kind<BytePairTokenizer>(
          "bpe",
          "bytes whose most frequent pairs are merged until there are so many tokens, learned on what the "
          "files hold for training (Sennrich et al. 2016)")};
  return kinds;
}

void BytePairTokenizer::bind(Fields& fields) {
  fields.add("vocabulary", vocabulary, between(kByteTokens, kMostTokens),
             "number of tokens V, bytes among them");
  fields.add("paths", paths,
             "files, or folders of them, that pairs are learned of (default: data.paths; evaluations and "
             "phases: the files that the model was made for)");
}

void TextOptions::bind(Fields& fields) {
  fields.required().add("paths", paths, "UTF-8 files, or folders of them");
  fields.add("tokenizer", tokenizer, "what tokens are");
  fields.required().add("tokens", tokens, between(1, 1e5),
                        "tokens of a sequence s; the one after it is the target of the last");
  fields.add("test_share", test_share, between(1e-6, 1 - 1e-6),
             "share of each file, at its end, for testing");
}

GeneratorKind text_generator() {
  GeneratorKind kind = {
      {"text",
       "sequences of tokens from files of text, whose next token is the target and whose file the label",
       TextOptions{}, TextOptions{.paths = {"text.txt"}, .tokens = 4}},
      [](const DataOptions& data, const Seeds&) -> std::unique_ptr<Problem> {
        return std::make_unique<TextProblem>(data);
      },
      [](const DataOptions& data) { TextProblem{data}; }};
  kind.tokens = [](const AnyOptions& options) { return options.get<TextOptions>().tokens; };
  kind.token_ids = true;
  kind.file_fields = {"paths", "tokenizer.paths"};
  kind.files = [](const AnyOptions& options) {
    std::vector<std::pair<std::string, std::string>> files;
    const TextOptions& text = options.get<TextOptions>();
    for (const std::string& path : text.paths) files.emplace_back("paths", path);
    const auto* const pairs = text.tokenizer.as<BytePairTokenizer>();
    if (!pairs || !pairs->paths) return files;
    for (const std::string& path : *pairs->paths) files.emplace_back("tokenizer.paths", path);
    return files;
  };
  return kind;
}

}  // namespace moelab
