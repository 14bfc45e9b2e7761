#pragma once

/// Rates of convergence as tables: what the figures of kind "rate_panels" show.

#include <string>
#include <vector>

#include "app/run/results.h"

namespace moelab {

/// A table of a figure of rates, whose rows and columns it has: the first row and column are their names.
struct RateTable {
  std::string caption;
  std::vector<std::vector<std::string>> rows;
};

/// For each line name a table, rows and columns as in the figure: slope with its interval, which of the
/// statements on rates it is compatible with ("=") or does not exclude ("?"), which law held-out sizes
/// prefer (compare_laws), the slope of the medians, fits that did not converge, and the source's rate. Empty
/// when the plan has no such figure.
std::vector<RateTable> rate_tables(const RunResults& results);

/// The same as text.
std::string rates_text(const RunResults& results);

/// A list of {figure, arm, line, metric, slope, interval, median_slope, average, window, fits,
/// fits_not_converged, repetitions, missing, statements: {name: verdict},
/// laws: {name: {excluded, against_best, against_best_interval, tau}}, law, told_apart_at, reported}.
Json rates_json(const RunResults& results);

}  // namespace moelab
