#pragma once

/// Documents of a run directory that carry the checksum of their own text.

#include <filesystem>
#include <string>
#include <string_view>

#include "app/json/json.h"

namespace moelab {

/// The text of an object with a first field "checksum", on a line of its own: the CRC-32 of every byte behind
/// that line.
std::string sealed_text(const Json& object);

/// What is wrong with a text that sealed_text is to have written; empty where nothing is.
std::string seal_problem(std::string_view text);

/// The object of a text that is whole, without its checksum, but for what `take` takes out of it while it is
/// read; null where the text is no object.
Json parse_sealed(std::string_view text, const Json::parser_callback_t& take = nullptr);

/// Reads a file of such a text. Throws UserError at the file, with what to do about it, where it is damaged.
Json read_sealed(const std::filesystem::path& file, const std::string& way_out);

}  // namespace moelab
