#pragma once

/// Paints laid-out figures with gnuplot.

#include <filesystem>
#include <string>
#include <vector>

#include "plots/embedding.h"
#include "plots/figure.h"
#include "plots/forest.h"
#include "plots/heat_map.h"
#include "plots/rate_panels.h"

namespace moelab {

/// Grows with every change of what figures look like. The title of an SVG carries the number.
inline constexpr int kLayoutVersion = 4;

/// The scripts. A script reads `<id>.csv` from its own folder and nothing else.
std::string gnuplot_script(const Figure& figure);
std::string gnuplot_script(const HeatMap& map);
std::string gnuplot_script(const RatePanels& figure);
std::string gnuplot_script(const Embedding& embedding);
std::string gnuplot_script(const Forest& forest);

/// A figure of any kind, ready to be painted: as files by gnuplot, and on the report's page.
struct Drawing {
  std::string id;         ///< file name without ending
  std::string title;      ///< may be empty
  std::string caption;    ///< what is shown, with its seeds and intervals
  std::string csv;        ///< the data, tidy: shortest exact decimals; a gap is an empty field
  std::string script;     ///< for gnuplot
  std::string html;       ///< data for the page's script; empty: the page shows the SVG
  std::string note = {};  ///< ends the caption on the page; set when the CSV is too large for the page
  std::vector<std::string> formats = {"svg", "pdf", "png"};
  std::string caption_file = {};  ///< text of `<id>.tex` and `<id>.txt`; empty: no such files
};

Drawing drawing_of(const Figure& figure);
Drawing drawing_of(const HeatMap& map);
Drawing drawing_of(const RatePanels& figure);
Drawing drawing_of(const Embedding& embedding);
Drawing drawing_of(const Forest& forest);

/// Writes `<id>.csv` and `<id>.gp` into `directory` and runs `gnuplot <id>.gp` there. gnuplot writes
/// `<id>.svg`, `<id>.pdf` and `<id>.png`. A style may ask for the caption as `<id>.tex` and `<id>.txt`.
/// Returns the paths. Equal drawings give equal bytes in CSV, script and SVG. Throws EnvironmentError when a
/// file cannot be written, or when gnuplot is missing or fails.
std::vector<std::filesystem::path> render(const Drawing& drawing, const std::filesystem::path& directory);

/// Runs `gnuplot -d script` in `directory` without a shell; `script` is relative to it. Throws
/// EnvironmentError when the program is missing or fails, with the text of its error stream.
void run_gnuplot(const std::filesystem::path& directory, const std::string& script);

/// `text` on one line as a string of gnuplot's language, with control characters written out. A script quotes
/// every text. The terminals run without markup, so `^ _ @ { }` have no special meaning.
std::string quoted(const std::string& text);

}  // namespace moelab
