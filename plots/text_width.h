#pragma once

/// How much room texts take, so that nothing runs off a page or over something else.

#include <cstddef>
#include <string>
#include <vector>

namespace moelab {

/// The length of `text` in points when set in DejaVu Sans of this size: the sum of its letters' advance
/// widths. A letter beyond ASCII counts as one em at most.
double text_width(const std::string& text, double font_size);

/// The longest of several texts.
double widest(const std::vector<std::string>& texts, double font_size);

/// Lines of at most `width` points; words that are longer are broken.
std::vector<std::string> wrapped(const std::string& text, double font_size, double width);

}  // namespace moelab
