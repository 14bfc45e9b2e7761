#pragma once

/// JSON documents read with the care that a scenario file needs.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sim/base/error.h"

// Compiled once, in json.cpp, rather than in each source that uses it.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace moelab {

/// Keys keep the order of the file: arms and sweeps are drawn in the order in which they are written.
using Json = nlohmann::ordered_json;

/// Limits beyond which a document is refused before it costs memory or stack.
constexpr std::size_t kMaxJsonBytes = 16u << 20;
constexpr int kMaxJsonDepth = 64;

/// A number that no double comes near: it would be read as infinite, or as 0 though it is not.
class NumberOutOfRange : public UserError {
 public:
  using UserError::UserError;
};

/// Parses one JSON document. Throws UserError with path "source:line:column" on malformed text, a
/// duplicate key, nesting deeper than kMaxJsonDepth, or an empty text, and NumberOutOfRange.
Json parse_json(std::string_view text, const std::string& source);

/// Reads and parses a file; also refuses one that is missing, a folder, a pipe, a device, or larger than
/// kMaxJsonBytes.
Json read_json_file(const std::filesystem::path& file);

/// The canonical text of a value: keys sorted, no spaces, numbers of equal value written equally (1 and 1.0).
std::string canonical_text(const Json& value);

/// The value as it is printed. Bytes that are not UTF-8, which a path may hold, become U+FFFD.
inline std::string json_text(const Json& value, int indent = 2) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// The value as it stands in messages: JSON text, cut after some 60 characters.
std::string abbreviated(const Json& value);

/// "a.b.c" from a parent path and a key; an array element is "a[2]".
std::string join_path(const std::string& parent, const std::string& key);
std::string join_path(const std::string& parent, std::size_t index);

}  // namespace moelab
