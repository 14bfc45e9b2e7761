#include "plots/page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "plots/gnuplot.h"
#include "sim/base/error.h"
#include "sim/base/visible_text.h"

namespace moelab {
namespace {

std::string centred_lines(const std::vector<std::string>& lines, double top, double step, double height,
                          const std::string& font) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += fmt::format("set label {} at screen 0.5, screen {:.5f} center font {}\n", quoted(lines[i]),
                        (top - step * (static_cast<double>(i) + 0.5)) / height, quoted(font));
  return text;
}

void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream << text << std::flush;
  if (!stream)
    throw EnvironmentError(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
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

std::size_t letters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

std::vector<std::string> wrapped(const std::string& text, double font_size, double width) {
  const auto limit = static_cast<std::size_t>(width / (kLetterWidth * font_size));
  std::vector<std::string> lines;
  std::string line;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find_first_of(" \n", start), text.size());
    const std::string word = text.substr(start, end - start);
    if (!line.empty() && letters(line) + 1 + letters(word) > limit) {
      lines.push_back(line);
      line.clear();
    }
    if (!word.empty()) line += (line.empty() ? "" : " ") + word;
    start = end + 1;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

std::string script_head(const std::string& id, const std::string& title) {
  return fmt::format("# {}\n# Run `gnuplot {}.gp` in this folder.\nreset\nset encoding utf8\n", quoted(title),
                     id);
}

double caption_height(const std::vector<std::string>& caption) {
  return 4 + kCaptionLine * static_cast<double>(caption.size());
}

std::string title_and_caption(const std::vector<std::string>& title, const std::vector<std::string>& caption,
                              double page_height) {
  return centred_lines(title, page_height - 2, kTitleLine, page_height, fmt::format(",{}", kFontSize + 1)) +
         centred_lines(caption, caption_height(caption), kCaptionLine, page_height,
                       fmt::format(",{}", kSmallFontSize));
}

std::string on_terminals(const std::string& id, double height, const std::string& plot,
                         const std::string& again, double width) {
  std::string script;
  // Each terminal's unit is its own: pixels of 1/96 inch, inches, pixels of 1/300 inch.
  script += fmt::format(
      "\nset terminal svg noenhanced size {:.0f},{:.0f} font 'DejaVu Sans,Helvetica,{:.2f}' "
      "background rgb 'white'\n",
      width * 96 / 72, height * 96 / 72, kFontSize * 96 / 72);
  script += fmt::format("set output {}\n{}\n", quoted(id + ".svg"), plot);
  script +=
      fmt::format("\nset terminal pdfcairo noenhanced size {:.4f}in,{:.4f}in font 'Sans,{}' fontscale 1\n",
                  width / 72, height / 72, kFontSize);
  script += fmt::format("set output {}\n{}\n", quoted(id + ".pdf"), again);
  script += fmt::format(
      "\nset terminal pngcairo noenhanced size {:.0f},{:.0f} font 'Sans,{}' fontscale {:.4f} "
      "linewidth 3 pointscale 3 background rgb 'white'\n",
      width * 300 / 72, height * 300 / 72, kFontSize, 300.0 / 96);
  script += fmt::format("set output {}\n{}\nset output\n", quoted(id + ".png"), again);
  return script;
}

std::vector<std::filesystem::path> write_figure(const std::string& id, const std::string& csv,
                                                const std::string& script,
                                                const std::filesystem::path& directory) {
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure)
    throw EnvironmentError(fmt::format("cannot create {}: {}", directory.string(), failure.message()));
  write_text(directory / (id + ".csv"), csv);
  write_text(directory / (id + ".gp"), script);
  run_gnuplot(directory, id + ".gp");
  std::vector<std::filesystem::path> paths;
  for (const char* ending : {".csv", ".gp", ".svg", ".pdf", ".png"})
    paths.push_back(directory / (id + ending));
  return paths;
}

}  // namespace moelab
