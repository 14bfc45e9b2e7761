#include "plots/page.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"

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

std::string html_text(std::string_view text) {
  std::string html;
  for (const char letter : visible_text(text)) {
    switch (letter) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += letter;
    }
  }
  return html;
}

std::string script_text(std::string_view json) {
  std::string text;
  for (const char letter : visible_text(json))
    text += letter == '<' ? std::string("\\u003c") : std::string(1, letter);
  return text;
}

using Json = nlohmann::ordered_json;

std::string page_data(const Json& data) {
  return "<script type=\"application/json\">" +
         script_text(data.dump(-1, ' ', false, Json::error_handler_t::replace)) + "</script>";
}

Json number_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

namespace {

std::string heading_lines(const std::vector<std::string>& lines, double top, double step, double height,
                          double font_size) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += fmt::format("set label {} at screen 0.5, screen {:.5f} center font ',{}'\n", quoted(lines[i]),
                        (top - step * (static_cast<double>(i) + 0.5)) / height, font_size);
  return text;
}

}  // namespace

std::string quoted(const std::string& text) {
  const std::string line = visible_line(text);
  // Between single quotes nothing is special, but gnuplot misreads a quote at the beginning and two in a row.
  if (line.find('\'') == std::string::npos) return "'" + line + "'";
  std::string result = "\"";
  for (const char letter : line) {
    if (letter == '`') {
      result += "\\140";  // otherwise it would begin a command of the shell
    } else {
      if (letter == '"' || letter == '\\') result += '\\';
      result += letter;
    }
  }
  return result + "\"";
}

std::string script_head(const std::string& id, const std::string& title) {
  return fmt::format("# {}\n# Run `gnuplot {}.gp` in this folder.\nreset\nset encoding utf8\n", quoted(title),
                     id);
}

Heading::Heading(const std::string& title_text, const std::string& caption_text, double page_width)
    : title(wrapped(title_text, kFontSize + 1, page_width - 2 * kPageMargin)),
      caption(wrapped(caption_text, kSmallFontSize, page_width - 2 * kPageMargin)) {}

std::string Heading::script(double page_height) const {
  return heading_lines(title, page_height - 2, kTitleLine, page_height, kFontSize + 1) +
         heading_lines(caption, caption_height(), kCaptionLine, page_height, kSmallFontSize);
}

std::string centred_label(const std::vector<std::string>& lines, double x, double y, double page_width,
                          double page_height, bool rotated) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double offset = kLabelLine * (static_cast<double>(i) - (static_cast<double>(lines.size()) - 1) / 2);
    text += fmt::format("set label {} at screen {:.5f}, screen {:.5f} center{}\n", quoted(lines[i]),
                        (rotated ? x + offset : x) / page_width, (rotated ? y : y - offset) / page_height,
                        rotated ? " rotate" : "");
  }
  return text;
}

std::string panel_margins(double left, double right, double bottom, double top, double page_width,
                          double page_height) {
  return fmt::format(
      "set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\nset bmargin at screen {:.5f}\nset tmargin "
      "at screen {:.5f}\n",
      left / page_width, right / page_width, bottom / page_height, top / page_height);
}

std::string fitted_line(const std::string& text, double font_size, double width) {
  if (text_width(text, font_size) <= width) return text;
  const std::vector<std::string> lines = wrapped(text, font_size, width - text_width("…", font_size));
  return lines.empty() ? "" : lines.front() + "…";
}

std::vector<std::string> fitted_lines(const std::string& text, double font_size, double width,
                                      std::size_t most) {
  std::vector<std::string> lines = wrapped(text, font_size, width);
  if (lines.size() <= most) return lines;
  lines.resize(most);
  lines.back() = fitted_line(lines.back() + " …", font_size, width);
  return lines;
}

std::string on_terminals(const std::string& id, double height, const std::string& plot, double width) {
  std::string script;
  // Each terminal's unit is its own: pixels of 1/96 inch, inches, pixels of 1/300 inch. `fontscale` makes
  // points of what each takes a size for, of the sizes that a script gives, too.
  script += fmt::format(
      "\nset terminal svg noenhanced size {:.0f},{:.0f} font 'DejaVu Sans,{}' fontscale {:.4f} "
      "background rgb 'white'\n",
      width * 96 / 72, height * 96 / 72, kFontSize, 96.0 / 72);
  script += fmt::format("set output {}\n{}\n", quoted(id + ".svg"), plot);
  script += fmt::format(
      "\nset terminal pdfcairo noenhanced size {:.4f}in,{:.4f}in font 'DejaVu Sans,{}' fontscale {}\n",
      width / 72, height / 72, kFontSize, 72.0 / 96);
  script += fmt::format("set output {}\n{}\n", quoted(id + ".pdf"), plot);
  script += fmt::format(
      "\nset terminal pngcairo noenhanced size {:.0f},{:.0f} font 'DejaVu Sans,{}' fontscale {:.4f} "
      "linewidth 3 pointscale 3 background rgb 'white'\n",
      width * 300 / 72, height * 300 / 72, kFontSize, 300.0 / 96);
  script += fmt::format("set output {}\n{}\nset output\n", quoted(id + ".png"), plot);
  return script;
}

}  // namespace moelab
