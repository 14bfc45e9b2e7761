#pragma once

/// Panels of errors against n with fitted and reference slopes.

#include <optional>
#include <string>
#include <vector>

#include "plots/figure.h"

namespace moelab {

struct RatePoint {
  double x = 0;
  std::optional<double> mean, low, high;
  std::optional<double> fitted;  ///< the value of the fitted line; none outside its window
};

struct RateLine {
  std::string name;  ///< legend entry; lines of equal name look alike in all panels
  std::vector<RatePoint> points;
  std::string slope;  ///< written into the panel: "−0.49 ± 0.02"
};

/// `rows` × `columns` panels, row by row, on common logarithmic axes.
struct RatePanels {
  std::string id;
  std::string title;
  std::string caption;
  std::string x_label, y_label;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<RateLine>> panels;
  std::vector<std::pair<double, std::string>> references;  ///< slopes, dashed grey, with their names
};

/// Two columns wide. The CSV is tidy: row,column,series,x,mean,low,high,fitted. The page has each panel as
/// lines of its own, the power laws among them.
Drawing drawing_of(const RatePanels& figure);

/// The texts of it.
std::string rate_panels_csv(const RatePanels& figure);
std::string rate_panels_script(const RatePanels& figure);

}  // namespace moelab
