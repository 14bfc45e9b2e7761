#include "app/scenario/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <list>
#include <optional>
#include <unordered_set>
#include <vector>

#include "sim/base/error.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace moelab {
namespace {

/// Iterates over characters and stores the lexer's position, which the parser events do not report.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

/// The place of the byte at `offset`.
TextPlace place_at(std::string_view text, std::size_t offset) {
  TextPlace place{1, 1};
  for (const char byte : text.substr(0, offset)) {
    if (byte == '\n') {
      ++place.line;
      place.column = 1;
    } else if (begins_character(byte)) {
      ++place.column;
    }
  }
  return place;
}

bool is_comment(std::string_view key) {
  return key.starts_with("//");
}

/// The library's message without its error number and position. The path already gives the position.
std::string plain_message(std::string message) {
  if (const std::size_t end = message.find("] "); message.starts_with('[') && end != std::string::npos) {
    message.erase(0, end + 2);
  }
  if (const std::size_t end = message.find(": ");
      message.starts_with("parse error") && end != std::string::npos) {
    message.erase(0, end + 2);
  }
  // The text last read may be long or may not be UTF-8.
  const std::size_t read = message.find("; last read: ");
  const std::size_t read_end = message.find("; expected", read == std::string::npos ? 0 : read);
  const bool is_ill_formed = message.find("ill-formed") != std::string::npos;
  constexpr std::size_t kLongestQuote = 80;
  if (read != std::string::npos && (is_ill_formed || message.size() - read > kLongestQuote)) {
    message.erase(read, read_end == std::string::npos ? std::string::npos : read_end - read);
  }
  return message;
}

/// The library's error number for numeric overflow.
constexpr int kOverflow = 406;

std::string refused_number(std::string digits, const char* allowed) {
  constexpr std::size_t kLongestNumber = 40;
  if (digits.size() > kLongestNumber) digits = digits.substr(0, kLongestNumber) + "…";
  return fmt::format("got {}, needs a number that a double holds: {} in size", digits, allowed);
}

/// Builds the document from parser events. Rejects duplicate keys and deep nesting.
class DocumentBuilder : public nlohmann::json_sax<Json> {
 public:
  DocumentBuilder(std::string_view text, const std::string& source, const char** reached,
                  std::vector<UserError>* duplicates)
      : text_(text), source_(source), reached_(reached), duplicates_(duplicates) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string& digits) override {
    // The lexer is already past the last digit.
    if (value == 0 && digits.find_first_of("123456789") < digits.find_first_of("eE"))
      fail<NumberOutOfRange>(text_.find_last_of("0123456789", offset()),
                             refused_number(digits, "0, or at least 4.9e-324"));
    return add(value);
  }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    is_left_out_ = is_comment(name);
    if (is_left_out_) return true;
    if (!open_.back().keys.insert(name).second) {
      const UserError error = error_at<UserError>(start_of_string(), "duplicate key '" + name + "'");
      if (!duplicates_) throw error;
      duplicates_->push_back(error);
      is_left_out_ = true;
      return true;
    }
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const std::size_t at = std::min(position == 0 ? 0 : position - 1, text_.size());
    const std::string message = error.what();
    if (error.id != kOverflow) fail(at, plain_message(message));
    const std::size_t quote = message.find('\'') + 1;  // the message quotes the digits
    const std::string digits = message.substr(quote, message.rfind('\'') - quote);
    fail<NumberOutOfRange>(at, refused_number(digits, "at most 1.8e308"));
  }

 private:
  struct Container {
    Json* value;
    std::unordered_set<std::string> keys;
  };

  template <class Error>
  Error error_at(std::size_t at, const std::string& message) const {
    const TextPlace place = place_at(text_, at);
    return Error(fmt::format("{}:{}:{}", source_, place.line, place.column), message);
  }
  template <class Error = UserError>
  [[noreturn]] void fail(std::size_t at, const std::string& message) const {
    throw error_at<Error>(at, message);
  }

  /// The offset of the last byte that the lexer read.
  std::size_t offset() const {
    const std::size_t read = static_cast<std::size_t>(*reached_ - text_.data());
    return read == 0 ? 0 : read - 1;
  }

  /// The offset of the opening quote of the last string.
  std::size_t start_of_string() const {
    std::size_t at = offset();
    while (at > 0) {
      --at;
      if (text_[at] != '"') continue;
      std::size_t backslashes = 0;
      while (backslashes < at && text_[at - 1 - backslashes] == '\\') ++backslashes;
      if (backslashes % 2 == 0) break;
    }
    return at;
  }

  Json* place(Json value) {
    if (is_left_out_) {
      is_left_out_ = false;
      return &left_out_.emplace_back(std::move(value));
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& container = *open_.back().value;
    if (container.is_array()) {
      container.push_back(std::move(value));
      return &container.back();
    }
    // `keys` has already excluded duplicates. The map's own insertion would search all keys again.
    Json::object_t& object = container.get_ref<Json::object_t&>();
    object.emplace_back(std::move(key_), std::move(value));
    return &object.back().second;
  }

  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  bool open(Json value) {
    if (open_.size() >= static_cast<std::size_t>(kMaxJsonDepth)) {
      fail(offset(), fmt::format("nested deeper than {} levels", kMaxJsonDepth));
    }
    Json* const placed = place(std::move(value));
    open_.push_back({placed, {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& source_;
  const char** reached_;
  Json root_;
  std::vector<UserError>* duplicates_;
  std::list<Json> left_out_;  ///< values of comments and of duplicate keys
  bool is_left_out_ = false;  ///< whether the next value is one of them
  std::string key_;
  std::vector<Container> open_;
};

void append_canonical(const Json& value, std::string& text) {
  if (value.is_object()) {
    std::vector<std::pair<std::string_view, const Json*>> members;
    for (const auto& [key, member] : value.get_ref<const Json::object_t&>())
      members.emplace_back(key, &member);
    std::sort(members.begin(), members.end());
    text += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i > 0) text += ',';
      append_canonical(Json(members[i].first), text);
      text += ':';
      append_canonical(*members[i].second, text);
    }
    text += '}';
  } else if (value.is_array()) {
    text += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) text += ',';
      append_canonical(value[i], text);
    }
    text += ']';
  } else if (value.is_number_float()) {
    const double number = value.get<double>();
    constexpr double kTwoTo63 = 9223372036854775808.0;
    if (std::trunc(number) == number && number >= -kTwoTo63 && number < kTwoTo63) {
      text += fmt::to_string(static_cast<std::int64_t>(number));
    } else if (std::trunc(number) == number && number >= kTwoTo63 && number < 2 * kTwoTo63) {
      text += fmt::to_string(static_cast<std::uint64_t>(number));
    } else {
      text += fmt::to_string(number);  // the shortest text that gives the same double
    }
  } else {
    text += value.dump();
  }
}

/// Walks over the text of a valid document along one path.
class PathSearch {
 public:
  explicit PathSearch(std::string_view text) : text_(text) {}

  /// Looks for `rest` in the value at `at` and returns the end of the value. The path before `rest` has
  /// `found` characters. Without `rest`, it only skips the value.
  std::size_t visit(std::size_t at, const std::optional<std::string>& rest, std::size_t found) {
    at = without_space(at);
    const char first = text_[at];
    if (first == '"') return end_of_string(at);
    if (first != '{' && first != '[') return std::min(text_.find_first_of(",]} \t\r\n", at), text_.size());
    at = without_space(at + 1);
    for (std::size_t i = 0; text_[at] != '}' && text_[at] != ']'; ++i) {
      const std::size_t member = at;
      std::string key = fmt::format("[{}]", i);
      if (first == '{') {
        const std::size_t end = end_of_string(at);
        key = Json::parse(text_.substr(at, end - at)).get<std::string>();
        at = without_space(end) + 1;  // after the colon
      }
      const bool has_dot = rest && first == '{' && rest->starts_with('.');
      const std::string own = has_dot ? rest->substr(1) : rest.value_or("");
      const bool leads_on = rest && !is_comment(key) && is_within(own, key);
      const std::size_t length = found + key.size() + (has_dot ? 1 : 0);
      if (leads_on && length > best_found_) {
        best_ = member;
        best_found_ = length;
      }
      at = leads_on ? visit(at, own.substr(key.size()), length) : visit(at, std::nullopt, 0);
      at = without_space(at);
      if (text_[at] == ',') at = without_space(at + 1);
    }
    return at + 1;
  }

  TextPlace place() const {
    if (best_found_ == 0) return {};
    TextPlace place = place_at(text_, best_);
    place.found = best_found_;
    return place;
  }

 private:
  std::size_t without_space(std::size_t at) const {
    return std::min(text_.find_first_not_of(" \t\r\n", at), text_.size());
  }
  /// The end of the string that begins at `at`.
  std::size_t end_of_string(std::size_t at) const {
    for (++at; text_[at] != '"'; ++at)
      if (text_[at] == '\\') ++at;
    return at + 1;
  }

  std::string_view text_;
  std::size_t best_ = 0, best_found_ = 0;
};

}  // namespace

TextPlace find_place(std::string_view text, const std::string& path) {
  PathSearch search(text);
  search.visit(0, path, 0);
  return search.place();
}

Json parse_json(std::string_view text, const std::string& source, std::vector<UserError>* duplicates) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw UserError(source + ":1:1", "empty; needs a JSON document");
  }
  const char* reached = text.data();
  DocumentBuilder builder(text, source, &reached, duplicates);
  Json::sax_parse(CountingIterator(text.data(), &reached),
                  CountingIterator(text.data() + text.size(), &reached), &builder);
  return builder.take();
}

namespace {

/// All of stdin, read once, because a command may read its scenario again.
const std::string& standard_input() {
  static const std::string all{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  return all;
}

}  // namespace

Json read_json_file(const std::filesystem::path& file, std::string* text,
                    std::vector<UserError>* duplicates) {
  if (file == "-") {
    if (text) *text = standard_input();
    return parse_json(standard_input(), "stdin", duplicates);
  }
  const std::string name = file.string();
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found) throw UserError(name, "no such file");
  if (error) throw EnvironmentError(name + ": " + error.message());
  if (std::filesystem::is_directory(status)) throw UserError(name, "is a folder, needs a JSON file");
  // Reading a pipe would block. A command that reads its scenario twice would find it empty.
  if (!std::filesystem::is_regular_file(status))
    throw UserError(name, "is a pipe or a device, needs a JSON file on disk");
  const std::string too_large =
      fmt::format("larger than {} MB, the limit of a JSON file", kMaxJsonBytes >> 20);
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw EnvironmentError(name + ": cannot be read");
  std::string read;
  std::vector<char> block(1u << 16);
  while (stream && read.size() <= kMaxJsonBytes) {
    stream.read(block.data(), static_cast<std::streamsize>(block.size()));
    read.append(block.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) throw EnvironmentError(name + ": reading failed");
  if (read.size() > kMaxJsonBytes) throw UserError(name, too_large);
  Json document = parse_json(read, name, duplicates);
  if (text) *text = std::move(read);
  return document;
}

std::string canonical_text(const Json& value) {
  std::string text;
  append_canonical(value, text);
  return text;
}

std::string abbreviated(const Json& value) {
  constexpr std::size_t kLongest = 60;
  std::string text = json_text(value, -1);
  if (text.size() <= kLongest) return text;
  std::size_t end = kLongest;
  while (end > 0 && !begins_character(text[end])) --end;
  return text.substr(0, end) + "…";
}

bool is_within(const std::string& path, const std::string& ancestor) {
  return path.starts_with(ancestor) &&
         (path.size() == ancestor.size() || path[ancestor.size()] == '.' || path[ancestor.size()] == '[');
}

std::string join_path(const std::string& parent, const std::string& key) {
  return parent.empty() ? key : parent + "." + key;
}

std::string join_path(const std::string& parent, std::size_t index) {
  return fmt::format("{}[{}]", parent, index);
}

}  // namespace moelab
