#include "app/run/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <iostream>
#include <limits>
#include <map>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/intervals.h"
#include "analysis/stats/rates.h"
#include "analysis/stats/result_table.h"
#include "app/scenario/overrides.h"
#include "app/store/imported_arms.h"
#include "app/store/store.h"
#include "plots/kinds/figure_kind.h"
#include "plots/kinds/lines.h"
#include "plots/texts.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Throws UserError if `directory` is the folder plans/<id> of a run directory, because it has no cells.
void check_not_of_plan(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(directory / ".", error);
  const fs::path own = whole.has_filename() ? whole : whole.parent_path();
  const fs::path plans = own.parent_path(), run = plans.parent_path();
  const auto has_store = [](const fs::path& folder) {
    return fs::is_directory(folder / "journal") || fs::is_directory(folder / "sessions");
  };
  if (plans.filename() != "plans" || !has_store(run) || has_store(own)) return;
  throw UserError(directory.string(), fmt::format("is the folder of a plan of '{0}'; give {0}@{1}",
                                                  run.string(), own.filename().string()));
}

RunResults results_of(Plan plan, Records records) {
  RunResults results;
  results.id = std::move(plan.id);
  results.head = std::move(plan.head);
  results.metrics = std::move(plan.metrics);
  results.table.arms = results.head.arms;
  results.table.sweep_paths = results.head.sweep_paths;
  results.table.fixed = std::move(plan.fixed);
  if (results.head.crossing) results.table.searched_path = results.head.crossing->path;
  results.table.is_decided = results.head.decided.has_value();
  std::vector<ResultRow>& rows = results.table.rows = std::move(plan.cells);
  std::unordered_map<const Record*, const ResultRow*> first_rows;  // two arms may have the same cell
  for (ResultRow& row : rows) {
    const auto found = records.find(row.cell);
    if (found == records.end()) continue;
    Record& record = found->second;
    row.state = record.state;
    if (!record.arrays.empty()) results.arrays[row.cell] = record.arrays;
    const auto [first, is_first] = first_rows.try_emplace(&record, &row);
    if (!is_first) {
      row.metrics = first->second->metrics;
      row.trace = first->second->trace;
      continue;
    }
    ++results.builds[*record.build];
    results.seconds += record.seconds;
    const double processor = record.spent ? record.spent->total : 0;
    if (processor > 0 && results.processor_seconds) {
      *results.processor_seconds += processor;
    } else {
      results.processor_seconds.reset();
    }
    if (record.spent) {
      results.told_seconds += processor > 0 ? processor : record.seconds;
      results.spent.training += record.spent->training;
      results.spent.measuring += record.spent->measuring;
    }
    row.metrics = std::move(record.metrics);
    row.trace = std::move(record.trace);
  }
  repeat_unswept(results.table);
  return results;
}

}  // namespace

RunResults load_results(const RunAddress& address, RecordPart part) {
  check_not_of_plan(address.directory());
  // Reads the records in parallel with the plan, or after it if no thread can be started.
  std::future<Records> recorded = std::async([&] { return read_records(address.directory(), part); });
  FoundPlan found = find_plan(address);
  RunResults results = results_of(std::move(found.plan), recorded.get());
  results.outputs = std::move(found.outputs);
  results.notes = std::move(found.notes);
  add_imported_arms(results, address.directory());
  return results;
}

RunResults load_results(const std::filesystem::path& directory, const Scenario& scenario,
                        const std::string& id) {
  RunResults results = results_of(plan_of(scenario, id), read_records(directory));
  results.outputs = outputs_of(directory, id);
  add_imported_arms(results, directory);
  return results;
}

std::string builds_text(const RunResults& results) {
  if (results.builds.size() < 2) return "";
  std::vector<std::string> builds;
  for (const auto& [name, cells] : results.builds)
    builds.push_back(fmt::format("{} ({} cells)", name, cells));
  return fmt::format("Cells come from {} builds of moelab: {}.", builds.size(), fmt::join(builds, ", "));
}

std::string builds_footnote(const RunResults& results) {
  return results.builds.size() < 2
             ? ""
             : fmt::format(" Cells come from {} builds of moelab.", results.builds.size());
}

void print_notes(const RunResults& results) {
  print_notes(results.notes);
  if (const std::string text = builds_text(results); !text.empty())
    std::cerr << "moelab: note: " << text << '\n';
}

namespace {

/// Formats a slope: "−0.49 [−0.52, −0.46]", with a true minus sign.
std::string slope_text(const RateEstimate& estimate) {
  if (!estimate.slope) return "no slope";
  std::string text = fmt::format("{:.2f}", estimate.slope->mean);
  if (const auto& interval = estimate.slope->interval)
    text += fmt::format(" [{:.2f}, {:.2f}]", interval->low, interval->high);
  return with_minus_signs(text);
}

/// Returns "as n^-1/2", "may be n^-1/2, n^-1/4", or "as no stated rate".
std::string statements_text(const RateEstimate& estimate) {
  std::string compatible;
  std::vector<std::string> open;
  for (const RateStatement& statement : rate_statements()) {
    const RateVerdict verdict = judge_rate(estimate, statement.range);
    if (verdict == RateVerdict::compatible) compatible = "as " + statement.name;
    if (verdict == RateVerdict::inconclusive) open.push_back(statement.name);
  }
  if (!compatible.empty()) return compatible;
  return open.empty() ? "as no stated rate" : fmt::format("may be {}", fmt::join(open, ", "));
}

/// Returns "n^-1/2", or "not told apart (n^-1/4, 1/log^τ n; at 4e+09 samples)".
std::string law_text(const LawComparison& comparison) {
  if (comparison.laws.empty()) return "too few errors";
  std::vector<std::string> left;
  for (const LawScore& law : comparison.laws) {
    if (!law.excluded) left.push_back(law.name);
  }
  if (left.size() == 1) return left.front();
  const std::string where = comparison.told_apart_at
                                ? fmt::format("at {:.0e} samples", *comparison.told_apart_at)
                                : "at no n up to 10^15";
  return fmt::format("{} ({}; {})", comparison.law, fmt::join(left, ", "), where);
}

struct FitCounts {
  int fits = 0, not_converged = 0;
  int with_oracle = 0, worse_than_oracle = 0;
};

/// Counts the fits in the cells that a slope uses.
FitCounts count_fits(const RateQuery& query, const ResultTable& table) {
  FitCounts counts;
  for (const ResultRow& row : table.rows) {
    const SweepValue* const along = row.coordinate(query.along);
    if (row.arm != query.arm || !row.is_at(query.where) || !along || !query.reads(along->number())) continue;
    const auto converged = row.metrics.find("fit_converged");
    if (row.state != "done" || converged == row.metrics.end()) continue;
    ++counts.fits;
    counts.not_converged += converged->second == 0;
    const auto worse = row.metrics.find("fit_worse_than_oracle");
    if (worse == row.metrics.end()) continue;
    ++counts.with_oracle;
    counts.worse_than_oracle += worse->second != 0;
  }
  return counts;
}

std::string cell_text(const RateEntry& entry, const ResultTable& table,
                      const NamedValues<std::string>& reported) {
  const LawComparison laws = compare_laws(rate_data(table, entry.query));
  const FitCounts counts = count_fits(entry.query, table);
  std::string text = fmt::format("{}, {}; law: {}", slope_text(entry.estimate),
                                 statements_text(entry.estimate), law_text(laws));
  if (const auto& median = entry.estimate.median_slope)
    text += "; slope of the medians " + signed_text(fmt::format("{:.2f}", *median));
  if (counts.not_converged > 0)
    text += fmt::format("; {} of {} fits not converged", counts.not_converged, counts.fits);
  if (counts.worse_than_oracle > 0)
    text += fmt::format("; {} of {} fits worse than their oracle-started fit", counts.worse_than_oracle,
                        counts.with_oracle);
  if (entry.estimate.left_out > 0) text += fmt::format("; {} left out", entry.estimate.left_out);
  for (const auto& [arm, rate] : reported)
    if (arm == entry.arm) text += fmt::format(" ({})", rate);
  return text;
}

std::string caption_text(const RateOptions& figure) {
  std::string text = ": slope of ln error on ln n (95 % interval";
  if (figure.average == RateAverage::squares) text += ", of the roots of mean squares";
  if (!figure.window.empty())
    text += fmt::format(", n from {} to {}", CrossingSearch::value(figure.window[0]).dump(),
                        CrossingSearch::value(figure.window[1]).dump());
  return text +
         "), the stated rate that it has or may have, law by held-out sizes, slope of the medians (the "
         "source)";
}

std::vector<RateOptions> rate_figures(const RunResults& results) {
  std::vector<RateOptions> figures;
  for (const FigureOptions& figure : results.head.figures) {
    if (const RateOptions* const rates = figure.as<RateOptions>()) figures.push_back(*rates);
  }
  return figures;
}

}  // namespace

std::vector<Table> rate_tables(const RunResults& results) {
  std::vector<Table> tables;
  for (const RateOptions& options : rate_figures(results)) {
    const std::vector<RateEntry> entries = rate_entries(options, results.table);
    const std::vector<std::string>&rows = options.rows, &columns = options.columns;
    const std::vector<std::string> arms = own_shown_arms(options.arms, results.table);
    std::vector<std::string> names;
    for (const RateEntry& entry : entries) {
      if (std::find(names.begin(), names.end(), entry.name) == names.end()) names.push_back(entry.name);
    }
    for (const std::string& name : names) {
      Table table{columns, {}, name + caption_text(options)};
      table.head.insert(table.head.begin(), "");
      for (std::size_t r = 0; r < rows.size(); ++r) {
        table.rows.push_back({rows[r]});
        for (std::size_t c = 0; c < columns.size(); ++c) {
          const auto entry = std::find_if(entries.begin(), entries.end(), [&](const RateEntry& candidate) {
            return candidate.name == name && candidate.arm == arms[r * columns.size() + c];
          });
          table.rows.back().push_back(
              entry == entries.end() ? "-" : cell_text(*entry, results.table, options.reported));
        }
      }
      tables.push_back(std::move(table));
    }
  }
  return tables;
}

std::string rates_text(const RunResults& results) {
  std::string text;
  for (const Table& table : rate_tables(results))
    text += fmt::format("{}\n{}\n", table.caption, text_table(table));
  return text;
}

std::string rates_markdown(const RunResults& results) {
  std::string text;
  for (const Table& table : rate_tables(results))
    text += fmt::format("{}{}\n\n{}", text.empty() ? "" : "\n", markdown_text(table.caption),
                        markdown_table(table));
  return text;
}

Json rates_json(const RunResults& results) {
  Json list = Json::array();
  for (const RateOptions& options : rate_figures(results)) {
    for (const RateEntry& entry : rate_entries(options, results.table)) {
      const RateEstimate& estimate = entry.estimate;
      Json json = {
          {"figure", options.id}, {"arm", entry.arm}, {"line", entry.name}, {"metric", entry.query.metric}};
      json["slope"] = estimate.slope ? Json(estimate.slope->mean) : Json();
      json["interval"] = interval_json(estimate.slope);
      json["median_slope"] = optional_json(estimate.median_slope);
      json["average"] = options.average == RateAverage::squares ? "squares" : "logarithms";
      Json window = Json::array();
      for (const double end : options.window) window.push_back(CrossingSearch::value(end));
      json["window"] = window.empty() ? Json() : std::move(window);
      const FitCounts counts = count_fits(entry.query, results.table);
      json["fits"] = counts.fits;
      json["fits_not_converged"] = counts.not_converged;
      if (counts.with_oracle > 0) {
        json["fits_with_oracle"] = counts.with_oracle;
        json["fits_worse_than_oracle"] = counts.worse_than_oracle;
      }
      json["repetitions"] = estimate.slope ? estimate.slope->count : 0;
      json["missing"] = estimate.missing;
      json["statements"] = Json::object();
      for (const RateStatement& statement : rate_statements())
        json["statements"][statement.name] = to_string(judge_rate(estimate, statement.range));
      const LawComparison laws = compare_laws(rate_data(results.table, entry.query));
      json["laws"] = Json::object();
      for (const LawScore& law : laws.laws) {
        Json score = {{"excluded", law.excluded},
                      {"against_best", law.against_best ? Json(law.against_best->mean) : Json()},
                      {"against_best_interval", interval_json(law.against_best)}};
        if (law.tau > 0) score["tau"] = law.tau;
        json["laws"][law.name] = std::move(score);
      }
      json["law"] = laws.law;
      json["told_apart_at"] = optional_json(laws.told_apart_at);
      json["reported"] = nullptr;
      for (const auto& [arm, rate] : options.reported)
        if (arm == entry.arm) json["reported"] = rate;
      list.push_back(std::move(json));
    }
  }
  return list;
}

namespace {

/// Intervals of a mean that are narrower than this are rounding errors and are not printed. An example is a
/// count that is equal for all seeds.
constexpr double kNoWidth = 1e-12;

/// Replaces an interval that excludes nothing.
constexpr const char* kNoInterval = " [-]";

SeedMedian seed_median(const std::vector<Interval>& observations, bool is_sequential) {
  std::vector<double> low, high;
  for (const Interval& observation : observations) {
    low.push_back(observation.low);
    high.push_back(observation.high);
  }
  const auto interval_of = [&](const std::vector<double>& ends) -> std::optional<Interval> {
    std::vector<std::optional<Interval>> seeds;
    for (const double end : ends) seeds.push_back(Interval{end, end});
    const BandPoint point = median_point(0, seeds, is_sequential);
    return point.low ? std::optional(Interval{*point.low, *point.high}) : std::nullopt;
  };
  SeedMedian result{median_of(observations), interval_of(low), false};
  // A censored step may be any number above the last one, and then its end has no finite bound.
  const std::optional<Interval> of_high = interval_of(high);
  if (result.interval) result.is_interval_open = !of_high || of_high->high != result.interval->high;
  return result;
}

std::string median_entry_text(const SeedMedian& seeds, int planned) {
  const Median& median = seeds.median;
  std::string text = fmt::format("{}{:.4g}", median.is_open ? "above " : "", median.value);
  // If the median itself is censored, its interval adds nothing to the number of censored values.
  if (seeds.interval && !median.is_open && excludes_nothing(*seeds.interval)) {
    text += kNoInterval;
  } else if (seeds.interval && !median.is_open) {
    text += fmt::format(" [{:.4g}, {}{:.4g}]", seeds.interval->low, seeds.is_interval_open ? "above " : "",
                        seeds.interval->high);
  }
  if (median.censored > 0) text += fmt::format(" ({} of {} censored)", median.censored, median.count);
  if (median.count < planned) text += fmt::format(" ({} of {})", median.count, planned);
  return text;
}

/// Formats half of an interval with two digits. Larger values are whole numbers, to match a mean with four
/// digits.
std::string half_width_text(double half) {
  constexpr double kWholeFrom = 99.5, kWholeBelow = 9999.5;
  return half >= kWholeFrom && half < kWholeBelow ? fmt::format("{:.0f}", half) : fmt::format("{:.2g}", half);
}

const char* statistic_name(Statistic statistic) {
  if (statistic == Statistic::median) return "median";
  return statistic == Statistic::geometric_mean ? "geometric mean" : "mean";
}

/// Whether some entries, and whether all entries, of a metric that is declared positive are geometric means.
struct GeometricEntries {
  bool any = false, all = true;
};

GeometricEntries geometric_entries(const std::vector<SummaryEntry>& entries) {
  GeometricEntries found;
  for (const SummaryEntry& entry : entries) {
    if (!entry.estimate) continue;
    const bool is_geometric = entry.statistic == Statistic::geometric_mean;
    found.any = found.any || is_geometric;
    found.all = found.all && is_geometric;
  }
  return found;
}

}  // namespace

Json signs_json(const SignCounts& signs) {
  return {
      {"below", signs.below}, {"above", signs.above}, {"ties", signs.ties}, {"undecided", signs.undecided}};
}

std::string counts_text(const std::map<std::string, int>& counts) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) parts.push_back(fmt::format("{} {}", count, name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool excludes_nothing(const Interval& interval) {
  return std::isinf(interval.high) && (std::isinf(interval.low) || interval.low == 0);
}

Json interval_json(const std::optional<Interval>& interval) {
  if (!interval || excludes_nothing(*interval)) return nullptr;
  const auto end = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  return Json::array({end(interval->low), end(interval->high)});
}

Json interval_json(const std::optional<MeanEstimate>& estimate) {
  return estimate ? interval_json(estimate->interval) : Json();
}

std::vector<SummaryEntry> summarize(const ResultTable& table, const std::string& metric) {
  std::vector<SummaryEntry> entries;
  std::vector<std::vector<Interval>> observations;
  const bool positive = is_declared_positive(metric) || table.own_positive.contains(metric),
             is_median = may_be_censored(metric);
  for (const ResultRow& row : table.rows) {
    // Rows of an arm at a point are adjacent.
    if (entries.empty() || entries.back().arm != row.arm || entries.back().point != row.point) {
      entries.push_back({row.arm, row.point, 0, std::nullopt});
      observations.emplace_back();
    }
    ++entries.back().planned;
    if (row.state != "done") continue;
    if (const std::optional<Interval> seed = observed(row, row.metrics, metric))
      observations.back().push_back(*seed);
  }
  for (std::size_t index = 0; index < entries.size(); ++index) {
    SummaryEntry& entry = entries[index];
    std::vector<double> values;
    for (const Interval& seed : observations[index]) values.push_back(seed.low);
    const bool is_geometric =
        positive && std::all_of(values.begin(), values.end(), [](double value) { return value > 0; });
    entry.statistic = is_median      ? Statistic::median
                      : is_geometric ? Statistic::geometric_mean
                                     : Statistic::mean;
    if (values.empty()) continue;
    if (is_median) {
      entry.median = seed_median(observations[index], table.is_decided);
    } else {
      entry.estimate = seed_estimate(values, positive, table.is_decided);
    }
  }
  return entries;
}

std::string estimate_text(const std::optional<MeanEstimate>& estimate) {
  if (!estimate) return "-";
  if (!estimate->interval) return fmt::format("{:.4g}", estimate->mean);
  if (excludes_nothing(*estimate->interval)) return fmt::format("{:.4g}{}", estimate->mean, kNoInterval);
  return fmt::format("{:.4g} ± {}", estimate->mean,
                     half_width_text((estimate->interval->high - estimate->interval->low) / 2));
}

std::string geometric_estimate_text(const MeanEstimate& estimate) {
  if (!estimate.interval || excludes_nothing(*estimate.interval)) return estimate_text(estimate);
  return fmt::format("{:.4g} [{:.3g}, {:.3g}]", estimate.mean, estimate.interval->low,
                     estimate.interval->high);
}

std::string entry_text(const SummaryEntry& entry) {
  if (entry.median) return median_entry_text(*entry.median, entry.planned);
  std::string text = estimate_text(entry.estimate);
  if (entry.estimate && entry.estimate->interval) {
    const Interval& interval = *entry.estimate->interval;
    if (interval.high - interval.low <= kNoWidth * std::abs(entry.estimate->mean)) {
      text = fmt::format("{:.6g}", entry.estimate->mean);
    } else if (entry.statistic == Statistic::geometric_mean) {
      text = geometric_estimate_text(*entry.estimate);
    }
  }
  if (entry.estimate && entry.estimate->count < entry.planned)
    text += fmt::format(" ({} of {})", entry.estimate->count, entry.planned);
  return text;
}

std::string rounded_entry_text(const SummaryEntry& entry) {
  const std::optional<MeanEstimate>& estimate = entry.estimate;
  if (entry.median || !estimate || !estimate->interval || excludes_nothing(*estimate->interval))
    return entry_text(entry);
  const double half = (estimate->interval->high - estimate->interval->low) / 2;
  if (!std::isfinite(half) || half <= kNoWidth * std::abs(estimate->mean)) return entry_text(entry);
  // Two digits of the half width.
  const int decimals = std::clamp(1 - static_cast<int>(std::floor(std::log10(half))), 0, 12);
  std::string text = fmt::format("{:.{}f}", estimate->mean, decimals);
  text += entry.statistic == Statistic::geometric_mean
              ? fmt::format(" [{:.{}f}, {:.{}f}]", estimate->interval->low, decimals,
                            estimate->interval->high, decimals)
              : fmt::format(" ± {:.{}f}", half, decimals);
  if (estimate->count < entry.planned) text += fmt::format(" ({} of {})", estimate->count, entry.planned);
  return text;
}

Json entry_json(const SummaryEntry& entry) {
  Json json = {
      {"count", 0}, {"mean", nullptr}, {"interval", nullptr}, {"statistic", statistic_name(entry.statistic)}};
  if (entry.median) {
    const SeedMedian& seeds = *entry.median;
    json["count"] = seeds.median.count;
    json["median"] = seeds.median.is_open ? Json() : Json(seeds.median.value);
    if (seeds.median.is_open) json["above"] = seeds.median.value;
    json["censored"] = seeds.median.censored;
    std::optional<Interval> interval = seeds.interval;
    if (seeds.is_interval_open) interval->high = std::numeric_limits<double>::infinity();
    json["interval"] = interval_json(interval);
  } else if (entry.estimate) {
    json["count"] = entry.estimate->count;
    json["mean"] = entry.estimate->mean;
    json["interval"] = interval_json(entry.estimate);
  }
  return json;
}

namespace {

constexpr const char* kMeanStatistic = "mean over seeds ± half of the 95 % interval";
constexpr const char* kGeometricStatistic = "geometric mean over seeds [95 % interval]";

}  // namespace

std::string summary_statistic(const std::vector<SummaryEntry>& entries, const std::string& metric) {
  if (may_be_censored(metric)) return "median over seeds [95 % interval of order statistics]";
  const GeometricEntries found = geometric_entries(entries);
  if (!is_declared_positive(metric) && !found.any) return kMeanStatistic;
  if (found.all) return kGeometricStatistic;
  return found.any ? fmt::format("{}; where a value is not above 0, mean ± half of the interval",
                                 kGeometricStatistic)
                   : fmt::format("{}, since values are not above 0", kMeanStatistic);
}

std::string column_head(const std::vector<SummaryEntry>& entries, const std::string& metric) {
  const std::string statistic = summary_statistic(entries, metric);
  const bool is_usual = statistic == kMeanStatistic || statistic == kGeometricStatistic;
  return is_usual ? metric : fmt::format("{} ({})", metric, statistic);
}

Table summary_table(const ResultTable& table, const std::string& metric) {
  const std::vector<SummaryEntry> entries = summarize(table, metric);
  Table summary{table.sweep_paths, {}, summary_caption(table, metric)};
  summary.head.insert(summary.head.end(), table.arms.begin(), table.arms.end());
  std::vector<std::vector<std::string>>& rows = summary.rows;
  std::map<std::string, std::size_t> lines;  // lines of the points
  for (const SummaryEntry& entry : entries) {
    const auto [line, is_new] = lines.try_emplace(point_json(entry.point).dump(), rows.size());
    if (is_new) {
      std::vector<std::string>& row = rows.emplace_back();
      for (const auto& coordinate : entry.point) row.push_back(value_text(coordinate.second));
      row.resize(row.size() + table.arms.size(), "-");
    }
    const auto arm = std::find(table.arms.begin(), table.arms.end(), entry.arm) - table.arms.begin();
    rows[line->second][entry.point.size() + static_cast<std::size_t>(arm)] = entry_text(entry);
  }
  return summary;
}

namespace {

/// The characters of the longest line.
std::size_t longest_line(const std::string& text) {
  std::size_t most = 0, width = 0;
  for (const char byte : text) {
    width = byte == '\n' ? 0 : width + (begins_character(byte) ? 1 : 0);
    most = std::max(most, width);
  }
  return most;
}

}  // namespace

std::string summary_caption(const ResultTable& table, const std::string& metric) {
  return fmt::format("{}, {}{}", metric, summary_statistic(summarize(table, metric), metric),
                     table.is_decided ? "; of confidence sequences" : "");
}

std::string summary_text(const ResultTable& table, const std::string& metric,
                         std::optional<std::size_t> most_columns) {
  const Table summary = summary_table(table, metric);
  std::string text = text_table(summary);
  if (most_columns && longest_line(text) > *most_columns) {
    Table rows{{"arm"}, {}, {}};
    rows.head.insert(rows.head.end(), table.sweep_paths.begin(), table.sweep_paths.end());
    rows.head.push_back(metric);
    for (const SummaryEntry& entry : summarize(table, metric)) {
      std::vector<std::string>& row = rows.rows.emplace_back(1, entry.arm);
      for (const auto& coordinate : entry.point) row.push_back(value_text(coordinate.second));
      row.push_back(entry_text(entry));
    }
    const std::string narrow = text_table(rows);
    if (longest_line(narrow) < longest_line(text)) text = narrow;
  }
  return fmt::format("{} ({})\n{}", metric, summary.caption.substr(metric.size() + 2), text);
}

Json summary_json(const ResultTable& table, const std::string& metric) {
  Json entries = Json::array();
  for (const SummaryEntry& entry : summarize(table, metric)) {
    Json json = {{"arm", entry.arm}, {"point", point_json(entry.point)}, {"cells", entry.planned}};
    json.update(entry_json(entry));
    entries.push_back(std::move(json));
  }
  return {{"metric", metric}, {"entries", std::move(entries)}};
}

std::filesystem::path saved_file(const RunResults& results, const std::filesystem::path& directory,
                                 const std::string& cell, const std::string& name, int layer) {
  const auto recorded = results.arrays.find(cell);
  std::string own = name;
  std::filesystem::path file = array_file(directory, cell, own);
  const bool is_layered =
      recorded == results.arrays.end() ? !std::filesystem::exists(file) : !recorded->second.contains(name);
  if (is_layered) file = array_file(directory, cell, own = fmt::format("{}_layer{}", name, layer));
  if (recorded == results.arrays.end() || !recorded->second.contains(own)) return file;
  if (const std::string problem = array_problem(file, recorded->second.at(own)); !problem.empty())
    throw UserError(file.string(), problem + "; run the scenario again, which writes it anew");
  return file;
}

}  // namespace moelab
