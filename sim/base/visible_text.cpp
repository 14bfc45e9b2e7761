#include "sim/base/visible_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace moelab {
namespace {

constexpr unsigned kDelete = 0x7F, kFirstC1 = 0x80, kLastC1 = 0x9F;

unsigned byte_at(std::string_view text, std::size_t place) {
  return static_cast<unsigned char>(text[place]);
}

/// Bytes of the UTF-8 character that begins with this one; 0 where none does.
std::size_t bytes_announced(unsigned first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

struct Utf8Character {
  unsigned code = 0;
  std::size_t bytes = 0;  ///< 0 where there is no character
};

/// The character at `place`, in its shortest form and neither a surrogate nor beyond U+10FFFF.
Utf8Character character_at(std::string_view text, std::size_t place) {
  constexpr unsigned kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned first = byte_at(text, place);
  const std::size_t bytes = bytes_announced(first);
  if (bytes == 0 || bytes > text.size() - place) return {};
  if (bytes == 1) return {first, 1};
  unsigned code = first & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const unsigned next = byte_at(text, place + i);
    if ((next & 0xC0U) != 0x80U) return {};
    code = code << 6 | (next & 0x3FU);
  }
  if (code < kLeast[bytes] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, bytes};
}

bool is_obeyed(unsigned code) {
  if (code == '\n' || code == '\t') return false;
  return code < ' ' || code == kDelete || (code >= kFirstC1 && code <= kLastC1);
}

}  // namespace

std::string visible_text(std::string_view text) {
  std::string visible;
  visible.reserve(text.size());
  for (std::size_t place = 0; place < text.size();) {
    const Utf8Character character = character_at(text, place);
    if (character.bytes == 0) {
      fmt::format_to(std::back_inserter(visible), "\\x{:02x}", byte_at(text, place));
    } else if (is_obeyed(character.code)) {
      fmt::format_to(std::back_inserter(visible), "\\u{:04x}", character.code);
    } else {
      visible.append(text.substr(place, character.bytes));
    }
    place += std::max<std::size_t>(character.bytes, 1);
  }
  return visible;
}

std::string visible_line(std::string_view text) {
  std::string line = visible_text(text);
  std::replace_if(
      line.begin(), line.end(), [](char letter) { return letter == '\n' || letter == '\t'; }, ' ');
  return line;
}

std::size_t unfinished_bytes(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(text.size(), 3); ++back) {
    const unsigned byte = byte_at(text, text.size() - back);
    if ((byte & 0xC0U) == 0x80U) continue;
    return bytes_announced(byte) > back ? back : 0;
  }
  return 0;
}

std::size_t first_byte_outside_utf8(std::string_view text) {
  std::size_t place = 0;
  while (place < text.size()) {
    const std::size_t bytes = character_at(text, place).bytes;
    if (bytes == 0) break;
    place += bytes;
  }
  return place;
}

}  // namespace moelab
