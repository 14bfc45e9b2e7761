#pragma once

/// Forest plots. Each claim and point has a row with its interval. A line marks no effect.

#include <optional>
#include <string>
#include <vector>

#include "plots/layout.h"

namespace moelab {

struct ForestRow {
  std::string claim, point;                    ///< the id and the name of the point; either may be empty
  std::string verdict;                         ///< "reproduced"; says the mark
  std::optional<double> mean, low, high = {};  ///< the effect with its interval
  double level = 0.95;                         ///< of the interval
  std::vector<double> limits = {};             ///< of a tolerance or of the smallest effect that matters
  /// The point in two parts for columns that are narrower than its name: "samples, experts" and "640, 8".
  std::string paths = {}, values = {};
};

/// Rows with one scale.
struct ForestPanel {
  std::string label;  ///< of the axis
  bool is_log = false;
  double no_effect = 0;
  std::optional<std::pair<double, double>> range = {};  ///< of the axis; absent: fitted to the rows
  std::string heading = {};                             ///< above the names of the rows: what the points are
  std::vector<ForestRow> rows = {};
};

struct Forest {
  std::string id;       ///< file name without ending
  std::string title;    ///< above the panels; may be empty
  std::string caption;  ///< below the panels
  std::string csv;      ///< the data as a table
  std::vector<ForestPanel> panels;
  std::string limits_name = "bounds of the claims";  ///< legend entry of the dotted lines
  FigureStyle style = {};
};

/// Columns axis,claim,point,mean,low,high,verdict.
std::string forest_csv(const Forest& forest);

inline constexpr const char *kNoEffectDash = "(8,5)", *kLimitDash = "(2,3)";

/// The mark of a verdict. Marks differ in shape and colour.
SeriesStyle verdict_style(const std::string& verdict);

/// A row where it is painted in the panel's axis. Its height is counted in rows from below.
struct ForestMark {
  double place = 0;
  std::optional<double> mean, low, high;         ///< within the axis
  bool leaves_low = false, leaves_high = false;  ///< the interval goes on outside the axis
  std::vector<double> limits;                    ///< within the axis
  SeriesStyle look;
};

struct ForestLayout : PageLayout {
  /// The report's page sets title, caption and legend itself.
  enum class Texts { all, axes };

  std::vector<std::vector<ForestMark>> marks;  ///< by panel

  explicit ForestLayout(const Forest& forest, Texts texts = Texts::all);

 private:
  void arrange(const Forest& forest, Texts texts, double row_height);
};

/// The figure as data: {"kind": "forest", "id", "title", "caption", "panels": [{"label", "log", "no_effect",
/// "rows": [{"claim", "point", "verdict", "mean", "low", "high", "limits"}]}], "marks": [[{"place", "mean",
/// "low", "high", "leaves_low", "leaves_high", "limits", "verdict"}]], "styles": {verdict: style}, "layout"}.
nlohmann::ordered_json data_json(const Forest& forest);

/// The same for the report's page.
nlohmann::ordered_json page_json(const Forest& forest);

}  // namespace moelab
