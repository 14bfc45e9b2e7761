#pragma once

/// From a run's results to rates of convergence.

#include "analysis/stats/rates.h"
#include "app/figures/figure_kind.h"
#include "plots/rate_panels.h"

namespace moelab {

/// One line of a panel: a metric of one arm at one value of the series path.
struct RateEntry {
  std::string arm;
  std::string name;  ///< of the line, without the arm
  RateQuery query;
  RateData data;  ///< at all n, those outside the window too
  RateEstimate estimate;
};

/// The entries of one figure, arm by arm; metrics that no cell has are left out.
std::vector<RateEntry> rate_entries(const Json& description, const ResultTable& table);

/// {id, kind: "rate_panels", x, y, series, where, window, arms, rows, columns, reported, title, x_label,
/// y_label}. A panel is an arm; points are geometric means over repetitions with the 95 % interval of the
/// mean logarithm, lines the power law of the mean slope and intercept over the window.
RatePanels build_rate_panels(const Json& description, const FigureSource& source);

}  // namespace moelab
