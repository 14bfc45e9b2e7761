#pragma once

/// A figure ready to be drawn, whatever its kind: as files by gnuplot, and in the report's page.

#include <filesystem>
#include <string>
#include <vector>

namespace moelab {

struct Drawing {
  std::string id;         ///< file name without ending
  std::string title;      ///< may be empty
  std::string caption;    ///< what is shown, with its seeds and intervals
  std::string csv;        ///< the data, tidy: shortest exact decimals, a gap is an empty field
  std::string script;     ///< of gnuplot; names its files relatively and needs only <id>.csv beside it
  std::string html;       ///< what the page shows, see page_data(); empty: the SVG as it was drawn
  std::string note = {};  ///< ends the caption on the page, which then does not hold the CSV: too large
};

/// Writes <id>.csv and <id>.gp into `directory` and by running `gnuplot <id>.gp` there also <id>.svg,
/// <id>.pdf and <id>.png; the five paths. CSV, script and SVG are equal to the byte for equal drawings.
/// Throws EnvironmentError when a file cannot be written, or gnuplot is missing or fails (with its message).
std::vector<std::filesystem::path> render(const Drawing& drawing, const std::filesystem::path& directory);

}  // namespace moelab
