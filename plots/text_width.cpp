#include "plots/text_width.h"

#include <algorithm>
#include <array>

#include "sim/base/visible_text.h"

namespace moelab {
namespace {

/// Advance widths of the letters from space to tilde in thousandths of the size.
constexpr std::array<int, 95> kAdvance = {
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838};

bool begins_letter(char byte) {
  return (byte & 0xC0) != 0x80;
}

double letter_width(char byte) {
  if (byte >= ' ' && byte <= '~') return kAdvance[static_cast<std::size_t>(byte - ' ')];
  return begins_letter(byte) ? 1000 : 0;
}

/// The first part of `word` that is not longer than `width`, at least one letter.
std::size_t fitting_bytes(const std::string& word, double font_size, double width) {
  std::size_t bytes = 0;
  double used = 0;
  while (bytes < word.size()) {
    used += letter_width(word[bytes]) * font_size / 1000;
    if (used > width && bytes > 0 && begins_letter(word[bytes])) break;
    ++bytes;
  }
  return bytes;
}

}  // namespace

double text_width(const std::string& text, double font_size) {
  double thousandths = 0;
  for (const char byte : visible_line(text)) thousandths += letter_width(byte);
  return thousandths * font_size / 1000;
}

double widest(const std::vector<std::string>& texts, double font_size) {
  double most = 0;
  for (const std::string& text : texts) most = std::max(most, text_width(text, font_size));
  return most;
}

std::vector<std::string> wrapped(const std::string& text, double font_size, double width) {
  std::vector<std::string> lines;
  std::string line;
  const std::string all = visible_line(text);
  std::size_t start = 0;
  while (start < all.size()) {
    const std::size_t end = std::min(all.find(' ', start), all.size());
    std::string word = all.substr(start, end - start);
    start = end + 1;
    if (!line.empty() && text_width(line + " " + word, font_size) > width) {
      lines.push_back(line);
      line.clear();
    }
    while (line.empty() && text_width(word, font_size) > width) {
      const std::size_t bytes = fitting_bytes(word, font_size, width);
      if (bytes >= word.size()) break;
      lines.push_back(word.substr(0, bytes));
      word.erase(0, bytes);
    }
    if (!word.empty()) line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace moelab
