#pragma once

/// The recorded results of a run directory, and their summaries for users and programs.

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
#include "plots/report/table.h"

namespace moelab {

/// The results of a plan: the plan itself and the records of its cells.
struct RunResults {
  std::string id = {};  ///< of the plan
  PlanHead head = {};
  std::vector<std::string> metrics = {};  ///< that the plan names
  std::map<std::string, int> builds;  ///< number of planned cells that each build recorded, by build_name()
  double seconds = 0;  ///< elapsed, summed over the recorded planned cells; 0 if times are left out
  /// Processor time, summed over the same cells. Empty if an earlier build recorded one of them.
  std::optional<double> processor_seconds = 0;
  double told_seconds = 0;  ///< sum over the cells whose records have TimeSpent
  TimeSpent spent = {};     ///< sum over the same cells
  /// Every planned cell; `missing` if it has no record. The cells of arms that do not sweep a path stand at
  /// every value of it.
  ResultTable table;
  std::filesystem::path outputs = {};   ///< folder of claims and figures, relative to the run directory
  std::vector<std::string> notes = {};  ///< notes on the plan that was read
  /// Checksums of the bytes of the planned cells' saved arrays, by cell and array name.
  std::map<std::string, std::map<std::string, std::string>> arrays = {};
};

/// Reads the plan of `address` and its results. Fields of the records beyond `part` are left out. Throws
/// UserError if there is no plan.
RunResults load_results(const RunAddress& address, RecordPart part = RecordPart::all);
/// Reads the results of a scenario whose plan has this id in the directory.
RunResults load_results(const std::filesystem::path& directory, const Scenario& scenario,
                        const std::string& id);

/// Returns "Cells come from 2 builds of moelab: 0.1.0 (…) 12, …", because builds may differ in numbers. Empty
/// for one build.
std::string builds_text(const RunResults& results);

/// Returns " Cells come from 2 builds of moelab." for a figure's caption, or an empty string.
std::string builds_footnote(const RunResults& results);

/// Prints the notes and builds_text, each as a line on stderr.
void print_notes(const RunResults& results);

// Parts of answers

/// Returns null for no value.
template <class Value>
Json optional_json(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

/// Returns {"below", "above", "ties", "undecided"}.
Json signs_json(const SignCounts& signs);

/// Returns "1 refuted, 3 reproduced".
std::string counts_text(const std::map<std::string, int>& counts);

// Summary: the main metric by arm and sweep point

/// The statistic over seeds.
/// - Geometric mean: for a metric that is declared positive, if all of its values are positive.
/// - Median: for a metric that may be right-censored.
/// - Mean: otherwise.
enum class Statistic { mean, geometric_mean, median };

/// The median over seeds. Its interval comes from order statistics (median_point) or from a sign sequence.
struct SeedMedian {
  Median median;
  std::optional<Interval> interval;  ///< censored values count with their lower ends; none with too few seeds
  bool is_interval_open = false;     ///< the true upper end is censored: it lies above the interval's
};

struct SummaryEntry {
  std::string arm;
  SweepPoint point;
  int planned = 0;                       ///< planned cells of the arm at this point
  std::optional<MeanEstimate> estimate;  ///< over the finished cells that have the metric
  Statistic statistic = Statistic::mean;
  std::optional<SeedMedian> median = {};  ///< replaces `estimate`
};

/// Whether an interval of a sequence still contains every value: (−∞, ∞), or [0, ∞) for a geometric mean.
bool excludes_nothing(const Interval& interval);

/// Returns [low, high]. An infinite end is null. Returns null for no interval and for one that excludes
/// nothing.
Json interval_json(const std::optional<Interval>& interval);
/// The interval of an estimate.
Json interval_json(const std::optional<MeanEstimate>& estimate);

/// Returns one entry per arm and sweep point, in the order of the plan. The estimate is seed_estimate, as in
/// figures, or the median.
std::vector<SummaryEntry> summarize(const ResultTable& table, const std::string& metric);

/// Returns mean ± half of the 95 % interval, "0.41 ± 0.03". Returns "0.41 [-]" if the interval excludes
/// nothing, and "-" without an estimate.
std::string estimate_text(const std::optional<MeanEstimate>& estimate);

/// Returns a geometric mean with its interval: "0.41 [0.38, 0.44]".
std::string geometric_estimate_text(const MeanEstimate& estimate);

/// Returns the text of an entry: estimate_text or geometric_estimate_text, or for a median "80 [60, above
/// 300] (1 of 7 censored)" or "above 300 (7 of 10 censored)". If some cells lack the metric, "(3 of 5)"
/// follows.
std::string entry_text(const SummaryEntry& entry);

/// Returns the text of an entry with a mean rounded as its interval is: "0.91 ± 0.53", "0.410 [0.383,
/// 0.442]".
std::string rounded_entry_text(const SummaryEntry& entry);

/// Returns {"count", "mean", "interval", "statistic"}. A median has a null mean and the additional fields
/// "median" and "censored". If the median is only known to be above a value, "above" replaces "median". An
/// unknown end is null, and an interval that excludes nothing is null.
Json entry_json(const SummaryEntry& entry);

/// Explains the entries of a metric: "mean over seeds ± half of the 95 % interval", "geometric mean over
/// seeds [95 % interval]" or "median over seeds [95 % interval of order statistics]". If a metric that is
/// declared positive has values that are not positive, the text also says which entries have which mean.
std::string summary_statistic(const std::vector<SummaryEntry>& entries, const std::string& metric);

/// Returns the header of a column of entries: the metric, and the statistic if it is not the usual one.
std::string column_head(const std::vector<SummaryEntry>& entries, const std::string& metric);

/// Returns "metric, summary_statistic", the caption of summary_table.
std::string summary_caption(const ResultTable& table, const std::string& metric);

/// Returns the summary as a table. summary_caption() is its caption.
Table summary_table(const ResultTable& table, const std::string& metric);

/// Formats a table with a row per sweep point and a column per arm. An entry that lacks cells gives its
/// number of cells. If the lines are longer than `most_columns`, each arm has its own rows.
std::string summary_text(const ResultTable& table, const std::string& metric,
                         std::optional<std::size_t> most_columns = {});

Json summary_json(const ResultTable& table, const std::string& metric);

// Convergence rates: tables of the figures of kind "rate_panels"

/// Returns a table for each line name of a figure of rates. Rows and columns are as in the figure. Empty if
/// the plan has no such figure. A cell contains
/// - the slope with its interval;
/// - the statements on rates that the slope is compatible with ("=") or does not exclude ("?");
/// - the law that held-out sizes prefer (compare_laws);
/// - the slope of the medians;
/// - the number of fits that did not converge;
/// - the number of fits that are worse than their oracle-started fit;
/// - the rate that the source reports.
std::vector<Table> rate_tables(const RunResults& results);

/// Formats the rate tables as text, and as Markdown.
std::string rates_text(const RunResults& results);
std::string rates_markdown(const RunResults& results);

/// Returns the rates as a list of
///
///   {figure, arm, line, metric, slope, interval, median_slope, average, window, fits, fits_not_converged,
///    fits_with_oracle, fits_worse_than_oracle (only if there are oracle starts),
///    repetitions, missing, statements: {name: verdict},
///    laws: {name: {excluded, against_best, against_best_interval, tau}}, law, told_apart_at, reported}
Json rates_json(const RunResults& results);

/// Returns the file of a cell's array. In a stack of layers it is the file of `layer`, such as <name>_layer0.
/// Throws UserError if the bytes in the file differ from the record.
std::filesystem::path saved_file(const RunResults& results, const std::filesystem::path& directory,
                                 const std::string& cell, const std::string& name, int layer = 0);

}  // namespace moelab
