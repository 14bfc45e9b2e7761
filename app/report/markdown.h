#pragma once

/// Texts in Markdown documents.

#include <string>

namespace moelab {

/// Text with what Markdown would take for markup escaped, for tables, too.
std::string markdown_text(const std::string& text);

/// The anchor that a heading gets: small letters, digits, hyphens and underscores, spaces as
/// hyphens.
std::string anchor(const std::string& heading);

}  // namespace moelab
