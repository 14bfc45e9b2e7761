#pragma once

/// Texts in HTML pages.

#include <string>
#include <string_view>

namespace moelab {

/// Text as it stands in an element or in a quoted attribute: no markup, no link, no control character. An
/// address in a text stays a text.
std::string html_text(std::string_view text);

/// JSON text for a <script> element, which no "<" within can end.
std::string script_text(std::string_view json);

}  // namespace moelab
