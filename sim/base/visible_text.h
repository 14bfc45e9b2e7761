#pragma once

/// Texts of others (scenarios, file names, error messages) made harmless to whoever reads them on a terminal.

#include <string>
#include <string_view>

namespace moelab {

/// `text` with the characters that a terminal would obey written out: control characters (C0 without line
/// feed and tab, DEL, C1) as \u001b, which JSON reads as the same character, and bytes that are no UTF-8 as
/// \x9b. All else stays as it is, so texts without them come back unchanged.
std::string visible_text(std::string_view text);

/// The same on one line: line feeds and tabs become spaces.
std::string visible_line(std::string_view text);

/// How many bytes at the end of `text` begin a character of UTF-8 whose other bytes are still to come: 0–3.
std::size_t unfinished_bytes(std::string_view text);

/// The place of the first byte that is no UTF-8, the length of the text where there is none.
std::size_t first_byte_outside_utf8(std::string_view text);

}  // namespace moelab
