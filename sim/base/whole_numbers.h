#pragma once

/// Whole numbers in the texts of options.

#include <charconv>
#include <string_view>
#include <vector>

namespace moelab {

/// The numbers of "3/20" or "5..9": digits alone, `separator` between them; empty where the text is anything
/// else, or a number is too large.
inline std::vector<int> whole_numbers(std::string_view text, std::string_view separator) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end && *at >= '0' && *at <= '9') {
    const auto [next, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error != std::errc()) return {};
    if (next == end) return numbers;
    if (!std::string_view(next, static_cast<std::size_t>(end - next)).starts_with(separator)) return {};
    at = next + separator.size();
  }
  return {};
}

}  // namespace moelab
