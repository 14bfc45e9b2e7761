#pragma once

/// The results of a run directory, as recorded so far.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/intervals.h"
#include "analysis/stats/result_table.h"
#include "app/scenario/json.h"
#include "app/store/record.h"
#include "app/store/run_folder.h"

namespace moelab {

/// What a plan and the journals of a run directory say.
struct RunResults {
  Json plan;  ///< {"id", "name", "title", "source", "profile", "scenario", "claims", …} without the cells
  std::map<std::string, int> builds;  ///< programs that recorded the planned cells (build_name), with counts
  double seconds = 0;                 ///< of the recorded cells of the plan; 0 where their times are left out
  double told_seconds = 0;            ///< of those cells whose records tell what they were spent on
  TimeSpent spent = {};               ///< of these
  ResultTable table;                  ///< every planned cell, `missing` where no journal holds it
  std::filesystem::path outputs = {};   ///< where claims and figures go, below the run directory
  std::vector<std::string> notes = {};  ///< on the plan that was read
  /// The arrays that the planned cells saved, by cell and name, with the checksum of their bytes.
  std::map<std::string, std::map<std::string, std::string>> arrays = {};
};

/// The plan that is asked for. Throws UserError when there is none. What lies behind `part` of the records is
/// left out.
RunResults load_results(const RunAddress& address, RecordPart part = RecordPart::all);
/// The results of a scenario whose plan has that id in the directory.
RunResults load_results(const std::filesystem::path& directory, const Scenario& scenario,
                        const std::string& id);

/// "Cells come from 2 builds of moelab: 0.1.0 (…) 12, …", which may differ in numbers; empty for one build.
std::string builds_text(const RunResults& results);

/// For a figure's caption: " Cells come from 2 builds of moelab.", or nothing.
std::string builds_footnote(const RunResults& results);

/// The notes and builds_text, a line each on stderr.
void print_notes(const RunResults& results);

// The main metric of a run at a glance: arms × sweep points.

/// What stands for the seeds. A metric that is declared positive has the geometric mean where all of its
/// values are above 0, one that may be right-censored the median.
enum class Statistic { mean, geometric_mean, median };

/// The median over seeds with the interval of order statistics (bands.h), or of a sign sequence.
struct SeedMedian {
  Median median;
  std::optional<Interval> interval;  ///< what is censored stands at its lower end; none with too few seeds
  bool is_interval_open = false;  ///< its upper end is such a one: it is above it, by how much is not known
};

struct SummaryEntry {
  std::string arm;
  SweepPoint point;
  int planned = 0;                       ///< cells of the arm at this point
  std::optional<MeanEstimate> estimate;  ///< over the cells that are done and have the metric
  Statistic statistic = Statistic::mean;
  std::optional<SeedMedian> median = {};  ///< in place of `estimate`
};

/// Whether an interval, of a sequence, leaves no value out yet: (−∞, ∞), or [0, ∞) of a geometric mean.
bool excludes_nothing(const Interval& interval);

/// [low, high]. An end that is not known, ±∞, is null, and so is no interval or one that excludes nothing.
Json interval_json(const std::optional<Interval>& interval);

/// What the first figure of a plan {"figures", "scenario"} shows (y, or the value of a heat map); where none
/// shows a metric test_nmse_top1, or test_loss_eval of a model trained on classes.
std::string main_metric(const Json& plan);

/// One entry per arm and sweep point, in the order of the plan: seed_estimate, as figures show it, or the
/// median.
std::vector<SummaryEntry> summarize(const ResultTable& table, const std::string& metric);

/// "0.41 ± 0.03", half of the 95 % interval; "0.41 [-]" where that excludes nothing, "-" without an estimate.
std::string estimate_text(const std::optional<MeanEstimate>& estimate);

/// The same of a geometric mean: "0.41 [0.38, 0.44]".
std::string geometric_estimate_text(const MeanEstimate& estimate);

/// The one or the other, of a median "80 [60, above 300] (1 of 7 censored)" or
/// "above 300 (7 of 10 censored)"; "(3 of 5)" behind it where cells lack the metric.
std::string entry_text(const SummaryEntry& entry);

/// {"count", "mean", "interval", "statistic"}; of a median, whose mean is null, also {"median", "censored"}
/// and "above" in place of the median that is only known to be above it. An end that is not known is null,
/// and so is an interval that excludes nothing.
Json entry_json(const SummaryEntry& entry);

/// How entries of the metric are to be read: "mean over seeds ± half of the 95 % interval", "geometric mean
/// over seeds [95 % interval]", "median over seeds [95 % interval of order statistics]"; where a metric that
/// is declared positive has values that are not, which mean stands where.
std::string summary_statistic(const std::vector<SummaryEntry>& entries, const std::string& metric);

/// The head of a column of entries: the metric, with what a reader would not take its entries for.
std::string column_head(const std::vector<SummaryEntry>& entries, const std::string& metric);

/// "metric, summary_statistic", for summary_table.
std::string summary_caption(const ResultTable& table, const std::string& metric);

/// The rows of summary_text(), its head first.
std::vector<std::vector<std::string>> summary_table(const ResultTable& table, const std::string& metric);

/// A table with a row per sweep point and a column per arm; entries that lack cells say how many they hold.
std::string summary_text(const ResultTable& table, const std::string& metric);

Json summary_json(const ResultTable& table, const std::string& metric);

/// Left-aligned columns, two spaces apart. Widths count characters, not bytes.
std::string aligned_columns(const std::vector<std::vector<std::string>>& rows);

// Rates of convergence as tables: what the figures of kind "rate_panels" show.

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

/// The file of a cell's array; of a stack of layers the first layer's, <name>_layer0. Throws UserError where
/// it holds other bytes than were recorded.
std::filesystem::path saved_file(const RunResults& results, const std::filesystem::path& directory,
                                 const std::string& cell, const std::string& name);

}  // namespace moelab
