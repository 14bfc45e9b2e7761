#include "plots/texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr const char* kFixedSpace = "\u00A0";

/// The small form of a letter, and the letter.
struct SmallLetter {
  const char* small;
  const char* letter;
};
constexpr std::array kRaised = {
    SmallLetter{"⁰", "0"}, SmallLetter{"¹", "1"}, SmallLetter{"²", "2"}, SmallLetter{"³", "3"},
    SmallLetter{"⁴", "4"}, SmallLetter{"⁵", "5"}, SmallLetter{"⁶", "6"}, SmallLetter{"⁷", "7"},
    SmallLetter{"⁸", "8"}, SmallLetter{"⁹", "9"}, SmallLetter{"⁻", "-"}, SmallLetter{"⁻", "−"},
    SmallLetter{"⁺", "+"}, SmallLetter{"ᐟ", "/"}, SmallLetter{"ᵃ", "a"}, SmallLetter{"ᵇ", "b"},
    SmallLetter{"ᶜ", "c"}, SmallLetter{"ᵈ", "d"}, SmallLetter{"ᵉ", "e"}, SmallLetter{"ⁱ", "i"},
    SmallLetter{"ᵏ", "k"}, SmallLetter{"ˡ", "l"}, SmallLetter{"ᵐ", "m"}, SmallLetter{"ⁿ", "n"},
    SmallLetter{"ᵒ", "o"}, SmallLetter{"ᵖ", "p"}, SmallLetter{"ʳ", "r"}, SmallLetter{"ˢ", "s"},
    SmallLetter{"ᵗ", "t"}, SmallLetter{"ᵘ", "u"}, SmallLetter{"ˣ", "x"}, SmallLetter{"ʸ", "y"}};
constexpr std::array kLowered = {
    SmallLetter{"₀", "0"}, SmallLetter{"₁", "1"}, SmallLetter{"₂", "2"}, SmallLetter{"₃", "3"},
    SmallLetter{"₄", "4"}, SmallLetter{"₅", "5"}, SmallLetter{"₆", "6"}, SmallLetter{"₇", "7"},
    SmallLetter{"₈", "8"}, SmallLetter{"₉", "9"}, SmallLetter{"₋", "-"}, SmallLetter{"₋", "−"},
    SmallLetter{"ₐ", "a"}, SmallLetter{"ₑ", "e"}, SmallLetter{"ₕ", "h"}, SmallLetter{"ᵢ", "i"},
    SmallLetter{"ⱼ", "j"}, SmallLetter{"ₖ", "k"}, SmallLetter{"ₗ", "l"}, SmallLetter{"ₘ", "m"},
    SmallLetter{"ₙ", "n"}, SmallLetter{"ₒ", "o"}, SmallLetter{"ₚ", "p"}, SmallLetter{"ᵣ", "r"},
    SmallLetter{"ₛ", "s"}, SmallLetter{"ₜ", "t"}, SmallLetter{"ᵤ", "u"}, SmallLetter{"ᵥ", "v"},
    SmallLetter{"ₓ", "x"}};

std::size_t letter_bytes(const std::string& text, std::size_t at) {
  std::size_t bytes = 1;
  while (at + bytes < text.size() && !begins_character(text[at + bytes])) ++bytes;
  return bytes;
}

bool is_ascii_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

template <std::size_t Count>
std::optional<std::string> small_text(const std::string& text,
                                      const std::array<SmallLetter, Count>& letters) {
  std::string small;
  for (std::size_t at = 0; at < text.size(); at += letter_bytes(text, at)) {
    const std::string_view letter = std::string_view(text).substr(at, letter_bytes(text, at));
    bool is_found = false;
    for (const SmallLetter& known : letters) {
      if (is_found || letter != known.letter) continue;
      small += known.small;
      is_found = true;
    }
    if (!is_found) return std::nullopt;
  }
  return small.empty() ? std::nullopt : std::optional(small);
}

/// An index or exponent: from `base`, a letter, to `end`.
struct MathPart {
  std::size_t base, sign, end;
  std::string index;
  bool is_raised;
};

/// The next part at or after `from`.
std::optional<MathPart> next_math(const std::string& text, std::size_t from) {
  for (std::size_t at = text.find_first_of("_^", from); at != std::string::npos;
       at = text.find_first_of("_^", at + 1)) {
    if (at == 0 || at + 1 >= text.size()) continue;
    std::size_t base = at - 1;
    while (base > 0 && !begins_character(text[base])) --base;
    const bool is_letter = std::isalpha(static_cast<unsigned char>(text[base])) != 0 || at - base > 1;
    if (!is_letter || base < from || (base > 0 && is_ascii_word(text[base - 1]))) continue;
    MathPart part{base, at, 0, "", text[at] == '^'};
    if (text[at + 1] == '{') {
      const std::size_t close = text.find('}', at);
      if (close == std::string::npos) continue;
      part.index = text.substr(at + 2, close - at - 2);
      part.end = close + 1;
    } else {
      const auto end_of_digits = [&](std::size_t from_digit) {
        return std::min(text.find_first_not_of("0123456789", from_digit), text.size());
      };
      const std::size_t first = at + (part.is_raised && text[at + 1] == '-' ? 2 : 1);
      part.end = end_of_digits(first);
      const bool is_number = part.end > first;
      if (!is_number) part.end = at + 1 + letter_bytes(text, at + 1);
      // A power such as −1/2 is a fraction.
      if (is_number && first > at + 1 && part.end < text.size() && text[part.end] == '/' &&
          end_of_digits(part.end + 1) > part.end + 1)
        part.end = end_of_digits(part.end + 1);
      part.index = text.substr(at + 1, part.end - at - 1);
      if ((!is_number && !is_ascii_word(part.index.front())) ||
          (part.end < text.size() && is_ascii_word(text[part.end])))
        continue;
    }
    return part;
  }
  return std::nullopt;
}

/// Signs and letters as TeX's math, without the dollars.
const std::map<std::string, std::string, std::less<>>& math_signs() {
  static const std::map<std::string, std::string, std::less<>> signs = {
      {"±", "\\pm"},     {"×", "\\times"}, {"÷", "\\div"},        {"−", "-"},
      {"≤", "\\le"},     {"≥", "\\ge"},    {"≠", "\\ne"},         {"≈", "\\approx"},
      {"∞", "\\infty"},  {"‖", "\\|"},     {"·", "\\cdot"},       {"√", "\\surd"},
      {"∈", "\\in"},     {"∑", "\\sum"},   {"→", "\\to"},         {"<", "<"},
      {">", ">"},        {"|", "|"},       {"α", "\\alpha"},      {"β", "\\beta"},
      {"γ", "\\gamma"},  {"δ", "\\delta"}, {"ε", "\\varepsilon"}, {"η", "\\eta"},
      {"θ", "\\theta"},  {"κ", "\\kappa"}, {"λ", "\\lambda"},     {"μ", "\\mu"},
      {"π", "\\pi"},     {"ρ", "\\rho"},   {"σ", "\\sigma"},      {"τ", "\\tau"},
      {"φ", "\\varphi"}, {"ψ", "\\psi"},   {"ω", "\\omega"},      {"Δ", "\\Delta"},
      {"Σ", "\\Sigma"},  {"Ω", "\\Omega"}};
  return signs;
}

const std::map<char, std::string>& escaped_letters() {
  static const std::map<char, std::string> escapes = {{'&', "\\&"},
                                                      {'%', "\\%"},
                                                      {'$', "\\$"},
                                                      {'#', "\\#"},
                                                      {'_', "\\_"},
                                                      {'{', "\\{"},
                                                      {'}', "\\}"},
                                                      {'~', "\\textasciitilde{}"},
                                                      {'^', "\\textasciicircum{}"},
                                                      {'\\', "\\textbackslash{}"}};
  return escapes;
}

/// "^{-5}" of "⁻⁵" and so on from `at`, which then is behind it; empty if no small letter is there.
std::string latex_index(const std::string& text, std::size_t& at) {
  std::string index;
  char sign = 0;
  while (at < text.size()) {
    const std::string_view letter = std::string_view(text).substr(at, letter_bytes(text, at));
    const char* found = nullptr;
    char own = 0;
    for (const SmallLetter& known : kRaised)
      if (!found && letter == known.small) found = known.letter, own = '^';
    for (const SmallLetter& known : kLowered)
      if (!found && letter == known.small) found = known.letter, own = '_';
    if (!found || (sign != 0 && own != sign)) break;
    sign = own;
    index += found;
    at += letter.size();
  }
  return index.empty() ? "" : fmt::format("{}{{{}}}", sign, index);
}

/// Texts without indices.
std::string latex_plain(const std::string& text) {
  std::string escaped;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::string index = latex_index(text, at); !index.empty()) {
      escaped += "$" + index + "$";
      continue;
    }
    const std::string letter = text.substr(at, letter_bytes(text, at));
    at += letter.size();
    const auto sign = math_signs().find(letter);
    const auto escape = escaped_letters().find(letter.front());
    if (sign != math_signs().end())
      escaped += "$" + sign->second + "$";
    else
      escaped += letter.size() == 1 && escape != escaped_letters().end() ? escape->second : letter;
  }
  return escaped;
}

}  // namespace

std::vector<std::string> split_text(const std::string& text, const std::string& at) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t end; (end = text.find(at, start)) != std::string::npos; start = end + at.size())
    parts.push_back(text.substr(start, end - start));
  parts.push_back(text.substr(start));
  return parts;
}

std::string with_replaced(std::string text, const std::string& part, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += by.size())
    text.replace(at, part.size(), by);
  return text;
}

std::string signed_text(const std::string& number) {
  if (!number.starts_with('-')) return number;
  const bool is_zero = number.find_first_not_of("-0.") == std::string::npos;
  return (is_zero ? "" : "−") + number.substr(1);
}

std::string with_minus_signs(const std::string& text) {
  constexpr std::string_view kNumber = "0123456789.";
  std::string set;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t end = std::min(text.find_first_not_of(kNumber, at + 1), text.size());
    const bool is_start = at == 0 || std::string_view(" [(").find(text[at - 1]) != std::string_view::npos ||
                          static_cast<unsigned char>(text[at - 1]) >= 0x80;
    if (text[at] != '-' || !is_start || end == at + 1) {
      set += text[at];
      continue;
    }
    set += signed_text(text.substr(at, end - at));
    at = end - 1;
  }
  return set;
}

std::string math_text(const std::string& text) {
  std::string set;
  std::size_t from = 0;
  while (const std::optional<MathPart> part = next_math(text, from)) {
    const std::optional<std::string> small =
        part->is_raised ? small_text(part->index, kRaised) : small_text(part->index, kLowered);
    set += text.substr(from, part->sign - from) +
           small.value_or(text.substr(part->sign, part->end - part->sign));
    from = part->end;
  }
  return set + text.substr(from);
}

std::string fixed_spaces(const std::string& text) {
  std::string fixed = text;
  for (const char* sign : {"=", "±", "<", ">", "≤", "≥"})
    fixed = with_replaced(fixed, fmt::format(" {} ", sign), fmt::format("{0}{1}{0}", kFixedSpace, sign));
  return with_replaced(fixed, " %", std::string(kFixedSpace) + "%");
}

std::string with_plain_spaces(const std::string& text) {
  return with_replaced(text, kFixedSpace, " ");
}

std::string latex_text(const std::string& text) {
  std::string set;
  std::size_t from = 0;
  while (const std::optional<MathPart> part = next_math(text, from)) {
    const auto math = [](const std::string& own) { return with_replaced(latex_plain(own), "$", ""); };
    set += latex_plain(text.substr(from, part->base - from)) +
           fmt::format("${}{}{{{}}}$", math(text.substr(part->base, part->sign - part->base)),
                       part->is_raised ? '^' : '_', math(part->index));
    from = part->end;
  }
  return set + latex_plain(text.substr(from));
}

std::string latex_caption(const std::string& caption, const std::string& id) {
  return fmt::format("\\caption{{{}}}\n\\label{{fig:{}}}\n",
                     with_replaced(latex_text(fixed_spaces(caption)), kFixedSpace, "~"), id);
}

}  // namespace moelab
