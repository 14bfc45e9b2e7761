#include "app/run/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "analysis/stats/bands.h"
#include "analysis/stats/observation.h"
#include "app/figures/figure_kind.h"
#include "app/metrics/metric_groups.h"
#include "app/scenario/sweep_values.h"

namespace moelab {
namespace {

std::size_t character_count(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// Of a mean: an interval as narrow as rounding, as of a count that all seeds share, is not printed.
constexpr double kNoWidth = 1e-12;

/// What stands for an interval that excludes nothing.
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
  if (result.interval) result.is_interval_open = interval_of(high)->high != result.interval->high;
  return result;
}

std::string median_entry_text(const SeedMedian& seeds, int planned) {
  const Median& median = seeds.median;
  std::string text = fmt::format("{}{:.4g}", median.is_open ? "above " : "", median.value);
  // The interval of a median that is not known says no more than how many are censored.
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

/// Half of an interval to two digits, or to whole numbers where these are more, as of a mean with four.
std::string half_width_text(double half) {
  constexpr double kWholeFrom = 99.5, kWholeBelow = 9999.5;
  return half >= kWholeFrom && half < kWholeBelow ? fmt::format("{:.0f}", half) : fmt::format("{:.2g}", half);
}

const char* statistic_name(Statistic statistic) {
  if (statistic == Statistic::median) return "median";
  return statistic == Statistic::geometric_mean ? "geometric mean" : "mean";
}

/// Whether some, and whether all of the entries of a metric that is declared positive have the geometric
/// mean.
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

bool excludes_nothing(const Interval& interval) {
  return std::isinf(interval.high) && (std::isinf(interval.low) || interval.low == 0);
}

Json interval_json(const std::optional<Interval>& interval) {
  if (!interval || excludes_nothing(*interval)) return nullptr;
  const auto end = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  return Json::array({end(interval->low), end(interval->high)});
}

std::string main_metric(const Json& plan) {
  const Json& figures = plan.at("figures");
  if (figures.is_array() && !figures.empty()) {
    const char* const field = kind_of(figures.front()).metric;
    const Json y = field ? figures.front().value(field, Json()) : Json();
    for (const Json& metric : y.is_array() ? y : Json::array({y}))
      if (metric.is_string() && find_metric(metric.get<std::string>())) return metric.get<std::string>();
  }
  const std::string task = plan.value("/scenario/loss/task"_json_pointer, "mse");
  return task_loss_kind(task).needs_classes ? "test_loss_eval" : "test_nmse_top1";
}

std::vector<SummaryEntry> summarize(const ResultTable& table, const std::string& metric) {
  std::vector<SummaryEntry> entries;
  std::vector<std::vector<Interval>> observations;
  const bool positive = is_declared_positive(metric), is_median = may_be_censored(metric);
  for (const ResultRow& row : table.rows) {
    // Rows of an arm at a point stand together.
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

std::string aligned_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], character_count(row[i]));
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - character_count(row[i]) + 2, ' ');
    }
    text += '\n';
  }
  return text;
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
    json["interval"] = interval_json(entry.estimate->interval);
  }
  return json;
}

std::string summary_statistic(const std::vector<SummaryEntry>& entries, const std::string& metric) {
  const std::string mean = "mean over seeds ± half of the 95 % interval",
                    geometric = "geometric mean over seeds [95 % interval]";
  if (may_be_censored(metric)) return "median over seeds [95 % interval of order statistics]";
  if (!is_declared_positive(metric)) return mean;
  const GeometricEntries found = geometric_entries(entries);
  if (found.all) return geometric;
  return found.any ? geometric + "; where a value is not above 0, mean ± half of the interval"
                   : mean + ", since values are not above 0";
}

std::string column_head(const std::vector<SummaryEntry>& entries, const std::string& metric) {
  const bool is_plain =
      !may_be_censored(metric) && (!is_declared_positive(metric) || geometric_entries(entries).all);
  return is_plain ? metric : fmt::format("{} ({})", metric, summary_statistic(entries, metric));
}

std::vector<std::vector<std::string>> summary_table(const ResultTable& table, const std::string& metric) {
  const std::vector<SummaryEntry> entries = summarize(table, metric);
  std::vector<std::vector<std::string>> rows(1, table.sweep_paths);
  rows[0].insert(rows[0].end(), table.arms.begin(), table.arms.end());
  std::map<std::string, std::size_t> lines;  // of the points
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
  return rows;
}

std::string summary_caption(const ResultTable& table, const std::string& metric) {
  return fmt::format("{}, {}{}", metric, summary_statistic(summarize(table, metric), metric),
                     table.is_decided ? "; of confidence sequences" : "");
}

std::string summary_text(const ResultTable& table, const std::string& metric) {
  const std::string caption = summary_caption(table, metric);
  return fmt::format("{} ({})\n{}", metric, caption.substr(metric.size() + 2),
                     aligned_columns(summary_table(table, metric)));
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

}  // namespace moelab
