#pragma once

/// How a figure is set on a page: size, font, title, caption, legend and formats.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/options.h"

namespace moelab {

enum class CaptionPlace { none, below, file };
enum class LegendPlace { inside, below, right, direct };

/// The figure's kind chooses each field without a value. The defaults are sans serif letters of 7.5 points, a
/// title and a caption on the page, and the legend below.
struct FigureStyle {
  std::optional<double> width, height;  ///< of the page, in inches
  std::optional<std::string> font;      ///< "sans", "serif" or a family
  std::optional<double> size;           ///< of labels, in points; ticks and captions are smaller
  std::optional<bool> title;
  std::optional<CaptionPlace> caption;
  std::optional<LegendPlace> legend;
  std::vector<std::string> format;  ///< of "svg", "pdf" and "png"; empty: all
  void bind(Fields& fields);

  /// This style, with the fields of `base` where it has none.
  FigureStyle over(const FigureStyle& base) const;
  /// Throws UserError below `path` for a font that no script can name.
  void check(const std::string& path) const;
};

/// The name of the font's family.
std::string font_family(const FigureStyle& style);

/// The styles of `plot --style`: of journals and conferences, of slides, and of screens.
const std::vector<std::pair<std::string, FigureStyle>>& style_presets();
std::vector<std::string> style_names();
/// The preset of this name. Throws UserError at `path` for an unknown one.
const FigureStyle& style_preset(const std::string& name, const std::string& path);

}  // namespace moelab
