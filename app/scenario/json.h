#pragma once

/// Strict reading of JSON documents.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sim/base/error.h"

// Compiled once, in json.cpp, rather than in each source that uses it.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace moelab {

/// Keys keep the order of the file, because arms and sweeps are drawn in that order.
using Json = nlohmann::ordered_json;

/// Size limits of a document, which protect memory and the stack.
constexpr std::size_t kMaxJsonBytes = 16u << 20;
constexpr int kMaxJsonDepth = 64;

/// A number outside the range of double: it would be read as infinity, or underflow to 0.
class NumberOutOfRange : public UserError {
 public:
  using UserError::UserError;
};

/// Parses one JSON document.
/// Throws UserError with path "source:line:column" for malformed or empty text, duplicate keys, or nesting
/// deeper than kMaxJsonDepth. Throws NumberOutOfRange for numbers outside the range of double.
Json parse_json(std::string_view text, const std::string& source);

/// Reads and parses a file. Throws also if the path is missing, a folder, a pipe, a device, or larger than
/// kMaxJsonBytes.
Json read_json_file(const std::filesystem::path& file);

/// The canonical text of a value: sorted keys, no spaces, equal text for equal numbers (1 and 1.0).
std::string canonical_text(const Json& value);

/// The printed text of a value. Bytes that are not UTF-8, which a path may contain, become U+FFFD.
inline std::string json_text(const Json& value, int indent = 2) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// The text of a value in messages: JSON, cut after about 60 characters.
std::string abbreviated(const Json& value);

/// Joins a parent path and a key to "a.b.c", or a parent path and an index to "a[2]".
std::string join_path(const std::string& parent, const std::string& key);
std::string join_path(const std::string& parent, std::size_t index);

}  // namespace moelab
