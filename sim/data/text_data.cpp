#include "sim/data/text_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/base/error.h"
#include "sim/base/visible_text.h"
#include "sim/data/problem.h"
#include "sim/data/token_layout.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

constexpr int kBytes = 256;

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

/// Tokens of a file from which windows of one set are taken.
struct TextPart {
  std::string_view tokens;
  int label = 0;
};

class TextProblem final : public Problem {
 public:
  explicit TextProblem(const DataOptions& data) : tokens_(data.options().get<TextOptions>().tokens) {
    const TextOptions& options = data.options().get<TextOptions>();
    for (const std::string& path : options.paths) {
      for (const fs::path& file : files_at(path)) {
        names_.push_back(file.string());
        texts_.push_back(read_text(file, data.contents));
      }
    }
    for (std::size_t i = 0; i < texts_.size(); ++i) cut(i, options.test_share);
  }

  Layout layout() const override { return token_layout(tokens_, kBytes); }
  int clusters() const override { return static_cast<int>(texts_.size()); }

  Dataset draw(Engine& engine, const SampleRange& range) const override {
    const std::vector<TextPart>& parts = range.purpose == Purpose::test_data ? test_ : train_;
    std::int64_t all = 0;
    for (const TextPart& part : parts) all += windows_of(part);
    boost::random::uniform_int_distribution<std::int64_t> windows(0, all - 1);
    Dataset data{Matrix(range.count, tokens_), Matrix(range.count, tokens_), {}};
    data.cluster.reserve(static_cast<std::size_t>(data.x.size()));
    for (int i = 0; i < range.count; ++i) {
      std::int64_t window = windows(engine);
      auto part = parts.begin();
      for (; window >= windows_of(*part); ++part) window -= windows_of(*part);
      const auto first = static_cast<std::size_t>(window);
      for (int t = 0; t < tokens_; ++t) {
        data.x(i, t) = static_cast<unsigned char>(part->tokens[first + static_cast<std::size_t>(t)]);
        data.y(i, t) = static_cast<unsigned char>(part->tokens[first + static_cast<std::size_t>(t) + 1]);
        data.cluster.push_back(part->label);
      }
    }
    return data;
  }

  std::optional<double> bytes_of(const Matrix& ids) const override { return static_cast<double>(ids.size()); }

 private:
  std::int64_t windows_of(const TextPart& part) const {
    return static_cast<std::int64_t>(part.tokens.size()) - tokens_;
  }

  void cut(std::size_t file, double test_share) {
    const std::string_view text = texts_[file];
    if (text.empty()) throw UserError("data.paths", fmt::format("'{}' is empty", names_[file]));
    const auto begin = static_cast<std::size_t>((1 - test_share) * static_cast<double>(text.size()));
    const int label = static_cast<int>(file);
    for (const auto& [parts, tokens, share] : {std::tuple{&train_, text.substr(0, begin), "training"},
                                               std::tuple{&test_, text.substr(begin), "testing"}}) {
      parts->push_back({tokens, label});
      if (windows_of(parts->back()) > 0) continue;
      throw UserError(
          "data.paths",
          fmt::format("'{}' has {} bytes, {} of them for {}; a sequence of data.tokens = {} and the "
                      "token after it need {}",
                      names_[file], text.size(), tokens.size(), share, tokens_, tokens_ + 1));
    }
  }

  int tokens_;
  std::vector<std::string> names_, texts_;
  std::vector<TextPart> train_, test_;
};

}  // namespace

void TextOptions::bind(Fields& fields) {
  fields.required().add("paths", paths, "UTF-8 files, or folders of them");
  fields.required().add("tokens", tokens, between(1, 1e5),
                        "tokens of a sequence s; the one after it is the target of the last");
  fields.add("test_share", test_share, between(1e-6, 1 - 1e-6),
             "share of each file, at its end, for testing");
}

GeneratorKind text_generator() {
  GeneratorKind kind = {
      {"text",
       "sequences of bytes from files of text, whose next byte is the target and whose file the label",
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
