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
std::vector<fs::path> files_at(const std::string& path, const std::string& field) {
  if (!fs::exists(path)) throw UserError(field, fmt::format("'{}' is no file or folder", path));
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
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

/// The text of files, each cut into what is for training and what is for testing.
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

/// The parts of files, one for each file, as tokens.
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

/// `learned` is the text that byte pairs are learned of.
TokenizedText tokenize(const BytePairTokenizer* pairs, const TextParts& text, const TextParts& learned) {
  std::vector<BytePair> merges;
  if (pairs) {
    check_bytes({&text, &learned});
    merges = learn_byte_pairs(learned.train, pairs->vocabulary);
    const int count = kByteTokens + static_cast<int>(merges.size());
    if (count < pairs->vocabulary) {
      throw UserError(
          "data.tokenizer.vocabulary",
          fmt::format("got {}, needs at most {}: with so many tokens no two follow one another twice "
                      "in what the files of data.{}paths hold for training",
                      pairs->vocabulary, count, pairs->paths ? "tokenizer." : ""));
    }
  }
  return {encode_byte_pairs(text.train, merges), encode_byte_pairs(text.test, merges),
          lengths_of_tokens(merges)};
}

/// A problem is drawn for every cell and every check of one, byte pairs are learned once: the last few that
/// were are kept with the text that they are of.
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
  fields.add(
      "paths", paths,
      "files, or folders of them, that pairs are learned of (default: data.paths; evaluations and phases: "
      "those of the data that the model was made for)");
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
