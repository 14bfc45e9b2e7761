#pragma once

/// In which panel a line stands, and what it is called there.

#include <string>
#include <vector>

#include "plots/figure.h"

namespace moelab {

/// A line by the parts of its name; those that tell nothing are empty.
struct NamedLine {
  std::string facet, arm, value, metric;
  FigureSeries series;       ///< without a name; a reference belongs to every panel of its facet and value
  std::string heading = {};  ///< of a panel of the metric, in place of its short name

  bool is_reference() const { return series.look == SeriesLook::reference; }
};

/// "20480, learned, top-1": the parts that tell something.
std::string full_name(const NamedLine& line);

/// A panel for each facet. Where one would have more than six lines, there is one for each metric, or arm, or
/// value of the series, the first of these that leaves at most six lines in each; or else one for six lines
/// each. A panel's name says what those of its lines do not, or of six lines each names them.
std::vector<FigurePanel> line_panels(const std::vector<std::string>& facets,
                                     const std::vector<NamedLine>& lines);

}  // namespace moelab
