#pragma once

/// Strict reading of JSON documents.

#include <concepts>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

// Compiled once, in json.cpp, rather than in each source that uses it.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace moelab {

/// Keys keep the order of the file, because arms and sweeps are drawn in that order.
using Json = nlohmann::ordered_json;

/// Whether a value is this text.
inline bool is_text(const Json& value, std::string_view text) {
  return value.is_string() && value.get_ref<const std::string&>() == text;
}

// Some versions of the library refuse this comparison and others accept it. is_text() works with all of them.
template <std::same_as<Json> Value>
bool operator==(const Value& value, const std::string& text) = delete;

/// Size limits of a document, which protect memory and the stack.
constexpr std::size_t kMaxJsonBytes = 16u << 20;
constexpr int kMaxJsonDepth = 64;

/// A number outside the range of double: it would be read as infinity, or underflow to 0.
class NumberOutOfRange : public UserError {
 public:
  using UserError::UserError;
};

/// Parses one JSON document.
/// A key that begins with "//" is a comment. The document does not contain it, and it may repeat.
/// Throws UserError with path "source:line:column" for malformed or empty text, duplicate keys, or nesting
/// deeper than kMaxJsonDepth. Throws NumberOutOfRange for numbers outside the range of double. With
/// `duplicates`, the errors of duplicate keys go there, and the document has the first value.
Json parse_json(std::string_view text, const std::string& source,
                std::vector<UserError>* duplicates = nullptr);

/// Reads and parses a file, or stdin for the name "-". Throws also if the path is missing, a folder, a pipe,
/// a device, or larger than kMaxJsonBytes. `text` receives the text of the file.
Json read_json_file(const std::filesystem::path& file, std::string* text = nullptr,
                    std::vector<UserError>* duplicates = nullptr);

/// A place in a text. Lines and columns start at 1; columns count characters.
struct TextPlace {
  std::size_t line = 0, column = 0;
  std::size_t found = 0;  ///< the number of characters of the path that lead to the place
};

/// The place of a JSON path ("claims[2].left.arm") in the text of a valid document: the key or list entry
/// that the longest part of the path leads to. Keys may contain dots.
TextPlace find_place(std::string_view text, const std::string& path);

/// The canonical text of a value: sorted keys, no spaces, equal text for equal numbers (1 and 1.0).
std::string canonical_text(const Json& value);

/// The printed text of a value. Bytes that are not UTF-8, which a path may contain, become U+FFFD.
inline std::string json_text(const Json& value, int indent = 2) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// The text of a value in messages: JSON, cut after about 60 characters.
std::string abbreviated(const Json& value);

/// Whether `path` equals `ancestor` or lies below it.
bool is_within(const std::string& path, const std::string& ancestor);

/// Joins a parent path and a key to "a.b.c", or a parent path and an index to "a[2]".
std::string join_path(const std::string& parent, const std::string& key);
std::string join_path(const std::string& parent, std::size_t index);

}  // namespace moelab
