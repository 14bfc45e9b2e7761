#pragma once

/// Panels of errors against n with fitted and reference slopes.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plots/figure.h"

namespace moelab {

struct RatePoint {
  double x = 0;
  std::optional<double> mean, low, high;
  std::optional<double> fitted;  ///< the value of the fitted line; absent outside its window
};

struct RateLine {
  std::string name;  ///< legend entry; lines of equal name look alike in all panels
  std::vector<RatePoint> points;
  std::string slope;  ///< written into the panel: "−0.49 ± 0.02"
};

/// `rows` × `columns` panels, row by row, with common logarithmic axes.
struct RatePanels {
  std::string id;
  std::string title;
  std::string caption;
  std::string x_label, y_label;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<RateLine>> panels;
  std::vector<std::pair<double, std::string>> references;  ///< slopes with their names: dashed grey lines
  FigureStyle style = {};
};

/// Columns `row,column,series,x,mean,low,high,fitted`.
std::string rate_panels_csv(const RatePanels& figure);

/// Two columns wide without a style.
struct RateLayout : PageLayout {
  std::vector<SeriesStyle> looks;       ///< of the lines by name
  std::vector<SeriesStyle> references;  ///< of the reference slopes
  /// A reference slope s is y = reference_height · (x / x₀)^s. x₀ is the left end of the axis, and the right
  /// end if s > 0.
  double reference_height = 1;

  explicit RateLayout(const RatePanels& figure);
  const SeriesStyle& look_of(const std::string& name) const;

 private:
  void arrange(const RatePanels& figure, double panel_height);
};

/// The figure as data of the kind "rate_panels". It has the fields of RatePanels, "styles" and "layout".
/// A reference has "slope", "name" and "ends". A line of a panel has "name", "slope" and "points".
nlohmann::ordered_json data_json(const RatePanels& figure);

/// The report's page shows each panel as a figure of lines, with the power laws among them.
nlohmann::ordered_json page_json(const RatePanels& figure);

}  // namespace moelab
