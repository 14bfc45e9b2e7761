#include "sim/data/text_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <mutex>

#include "sim/base/error.h"
#include "sim/base/visible_text.h"
#include "sim/data/byte_pairs.h"
#include "sim/data/problem.h"
#include "sim/data/token_layout.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

/// In one text, places of byte pairs are counted by `int`.
constexpr std::size_t kMostPairedBytes = 2'000'000'000;

/// The files of a path: itself, or the regular files of a folder by name.
std::vector<fs::path> files_at(const std::string& path) {
  if (!fs::exists(path)) throw UserError("data.paths", fmt::format("'{}' is no file or folder", path));
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) throw UserError("data.paths", fmt::format("'{}' is a folder without files", path));
  return files;
}

std::string read_text(const fs::path& path, const std::shared_ptr<FileContents>& contents) {
  const InputFile file(path, content_of(contents, path));
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, text.data(), text.size());
  const std::size_t place = first_byte_outside_utf8(text);
  if (place == text.size()) return text;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(place), '\n');
  throw UserError("data.paths",
                  fmt::format("'{}' is no UTF-8: byte {} (\\x{:02x}, in line {}) begins no character",
                              path.string(), place, static_cast<unsigned char>(text[place]), line));
}

/// The parts of files, one for each file, as tokens.
struct TokenizedText {
  std::vector<std::vector<TokenId>> train, test;
  std::vector<int> lengths;  ///< bytes of each token, (V)
};

TokenizedText tokenize(const OneOf<TokenizerAxis>& tokenizer, const std::vector<std::string_view>& train,
                       const std::vector<std::string_view>& test) {
  std::vector<BytePair> merges;
  if (const auto* const pairs = tokenizer.as<BytePairTokenizer>()) {
    std::size_t bytes = 0;
    for (const std::vector<std::string_view>* const parts : {&train, &test}) {
      for (const std::string_view part : *parts) bytes += part.size();
    }
    if (bytes > kMostPairedBytes) {
      throw UserError("data.tokenizer",
                      fmt::format("got \"bpe\", needs files of at most {} bytes in all, not {}",
                                  kMostPairedBytes, bytes));
    }
    merges = learn_byte_pairs(train, pairs->vocabulary);
    const int learned = kByteTokens + static_cast<int>(merges.size());
    if (learned < pairs->vocabulary) {
      throw UserError(
          "data.tokenizer.vocabulary",
          fmt::format("got {}, needs at most {}: with so many tokens no two follow one another twice "
                      "in what the files of data.paths hold for training",
                      pairs->vocabulary, learned));
    }
  }
  return {encode_byte_pairs(train, merges), encode_byte_pairs(test, merges), lengths_of_tokens(merges)};
}

/// A problem is drawn for every cell and every check of one, byte pairs are learned once: the last few that
/// were are kept with the text that they are of.
std::shared_ptr<const TokenizedText> tokenized(const OneOf<TokenizerAxis>& tokenizer,
                                               const std::vector<std::string_view>& train,
                                               const std::vector<std::string_view>& test) {
  const auto* const pairs = tokenizer.as<BytePairTokenizer>();
  if (!pairs) return std::make_shared<const TokenizedText>(tokenize(tokenizer, train, test));
  struct Known {
    int vocabulary;
    std::vector<std::string> train, test;
    std::shared_ptr<const TokenizedText> text;
  };
  constexpr std::size_t kKept = 4;
  static std::mutex mutex;
  static std::deque<Known> all;
  const std::lock_guard lock(mutex);
  const auto is_this = [&](const Known& known) {
    return known.vocabulary == pairs->vocabulary && std::ranges::equal(known.train, train) &&
           std::ranges::equal(known.test, test);
  };
  if (const auto known = std::ranges::find_if(all, is_this); known != all.end()) return known->text;
  all.push_front({pairs->vocabulary,
                  {train.begin(), train.end()},
                  {test.begin(), test.end()},
                  std::make_shared<const TokenizedText>(tokenize(tokenizer, train, test))});
  if (all.size() > kKept) all.pop_back();
  return all.front().text;
}

class TextProblem final : public Problem {
 public:
  explicit TextProblem(const DataOptions& data) : tokens_(data.options().get<TextOptions>().tokens) {
    const TextOptions& options = data.options().get<TextOptions>();
    std::vector<std::string> names, texts;
    if (options.paths.empty()) throw UserError("data.paths", "got [], needs a file or a folder");
    for (const std::string& path : options.paths) {
      for (const fs::path& file : files_at(path)) {
        names.push_back(file.string());
        texts.push_back(read_text(file, data.contents));
      }
    }
    std::vector<std::string_view> train, test;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string_view text = texts[i];
      if (text.empty()) throw UserError("data.paths", fmt::format("'{}' is empty", names[i]));
      const auto begin =
          static_cast<std::size_t>((1 - options.test_share) * static_cast<double>(text.size()));
      train.push_back(text.substr(0, begin));
      test.push_back(text.substr(begin));
    }
    text_ = tokenized(options.tokenizer, train, test);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      check_length(names[i], texts[i].size(), text_->train[i], train[i].size(), "training");
      check_length(names[i], texts[i].size(), text_->test[i], test[i].size(), "testing");
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
    data.cluster.reserve(static_cast<std::size_t>(data.x.size()));
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
    throw UserError(
        "data.paths",
        fmt::format("'{}' has {} bytes, {}{} of them for {}; a sequence of data.tokens = {} and the "
                    "token after it need {}",
                    name, all_bytes, bytes, as_tokens, use, tokens_, tokens_ + 1));
  }

  int tokens_;
  std::shared_ptr<const TokenizedText> text_;
};

}  // namespace

const std::vector<KindEntry>& TokenizerAxis::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<BytesTokenizer>("bytes", "each byte is a token"),
      plain_kind<BytePairTokenizer>(
          "bpe",
          "bytes whose most frequent pairs are merged until there are so many tokens, learned on what "
          "the files hold for training (Sennrich et al. 2016)")};
  return kinds;
}

void BytePairTokenizer::bind(Fields& fields) {
  fields.add("vocabulary", vocabulary, between(kByteTokens, kMostTokens),
             "number of tokens V, bytes among them");
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
  kind.files = [](const AnyOptions& options) {
    std::vector<std::pair<std::string, std::string>> files;
    for (const std::string& path : options.get<TextOptions>().paths) files.emplace_back("paths", path);
    return files;
  };
  return kind;
}

}  // namespace moelab
