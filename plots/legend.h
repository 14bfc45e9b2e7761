#pragma once

/// What lines and markers stand for, set by moelab itself: gnuplot's own key has another size on each
/// terminal.

#include <cstddef>
#include <string>
#include <vector>

namespace moelab {

struct LegendEntry {
  std::string name;
  std::string colour;  ///< six hexadecimal digits
  std::string dash;    ///< of gnuplot, "1" or "(8,4)"; empty for no line
  int marker = 0;      ///< of gnuplot; 0 for none
};

/// Entries in columns of equal width, row by row; a name that is longer than the page is wide has several
/// lines.
class Legend {
 public:
  Legend(std::vector<LegendEntry> entries, double page_width);
  double height() const { return height_; }
  /// The gnuplot lines that draw it in the middle of the page with its lower edge at `bottom`.
  std::string script(double bottom, double page_height) const;

 private:
  std::vector<LegendEntry> entries_;
  std::vector<std::vector<std::string>> names_;  ///< in lines
  double page_width_ = 0, entry_width_ = 0, height_ = 0;
  std::size_t columns_ = 1;
  std::vector<std::size_t> row_lines_;
};

}  // namespace moelab
