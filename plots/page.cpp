#include "plots/page.h"

#include <fmt/core.h>

#include "sim/base/visible_text.h"

namespace moelab {
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
