#pragma once

/// Texts of figures: math, spaces that do not break, and TeX.

#include <string>
#include <vector>

namespace moelab {

std::vector<std::string> split_text(const std::string& text, const std::string& at);

std::string with_replaced(std::string text, const std::string& part, const std::string& by);

/// A printed number with the sign of a minus, and without the sign of a zero: "−0.5", "0.00".
std::string signed_text(const std::string& number);

/// The text with the sign of a minus before its numbers: "−0.5 [−0.6, 0.1]". Zeros lose it. Hyphens of names
/// stay.
std::string with_minus_signs(const std::string& text);

/// The text with its indices and exponents in small letters: "L_o" is "Lₒ", and "n^{-1/2}" is "n⁻¹ᐟ²". An
/// index follows a single letter. It is one letter, a number (as a power also "-1/2") or in braces. Indices
/// for which there are no small letters stay as they are.
std::string math_text(const std::string& text);

/// The text with no-break spaces where a line must not end: before "%", and around "=", "±",
/// "<" and ">".
std::string fixed_spaces(const std::string& text);
std::string with_plain_spaces(const std::string& text);

/// The text for TeX: special characters escaped, indices, Greek letters and signs as math.
std::string latex_text(const std::string& text);

/// A caption for TeX: `\caption{…}`, then `\label{fig:ID}`. Spaces that do not break are "~".
std::string latex_caption(const std::string& caption, const std::string& id);

}  // namespace moelab
