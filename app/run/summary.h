#pragma once

/// The main metric of a run at a glance: arms × sweep points.

#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/intervals.h"
#include "app/run/results.h"

namespace moelab {

struct SummaryEntry {
  std::string arm;
  SweepPoint point;
  int planned = 0;                       ///< cells of the arm at this point
  std::optional<MeanEstimate> estimate;  ///< over the cells that are done and have the metric
};

/// What the first figure shows (y, or the value of a heat map); where none shows a metric test_nmse_top1, or
/// test_loss_eval of a model trained on classes.
std::string main_metric(const RunResults& results);

/// The mean of values, of their logarithms where they are `positive`, with its interval as a confidence
/// sequence (sequences.h), whose ends may be infinite: of a run that was decided, whose seeds are as many as
/// its claims asked for.
MeanEstimate sequential_estimate(const std::vector<double>& values, bool positive);

/// One entry per arm and sweep point, in the order of the plan: figure_estimate, as figures show it, or
/// sequential_estimate.
std::vector<SummaryEntry> summarize(const ResultTable& table, const std::string& metric,
                                    bool is_sequential = false);

/// "0.41 ± 0.03", half of the 95 % interval; "-" without an estimate.
std::string estimate_text(const std::optional<MeanEstimate>& estimate);

/// The same, of a metric that is declared positive "0.41 [0.38, 0.44]"; "(3 of 5)" behind it where cells lack
/// it.
std::string entry_text(const SummaryEntry& entry, const std::string& metric);

/// "mean over seeds ± half of the 95 % interval", or of a metric that is declared positive "geometric mean
/// over seeds [95 % interval]".
std::string summary_statistic(const std::string& metric);

/// The rows of summary_text(), its head first.
std::vector<std::vector<std::string>> summary_table(const ResultTable& table, const std::string& metric);

/// A table with a row per sweep point and a column per arm; entries that lack cells say how many they hold.
std::string summary_text(const ResultTable& table, const std::string& metric);

Json summary_json(const ResultTable& table, const std::string& metric);

/// Left-aligned columns, two spaces apart. Widths count characters, not bytes.
std::string aligned_columns(const std::vector<std::vector<std::string>>& rows);

}  // namespace moelab
