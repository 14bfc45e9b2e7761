#include "app/run/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/stats/bands.h"
#include "analysis/stats/sequences.h"
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

bool is_declared_positive(const std::string& metric) {
  const MetricGroup::Metric* const known = find_metric(metric);
  return known != nullptr && known->positive;
}

}  // namespace

std::string main_metric(const RunResults& results) {
  const Json& figures = results.plan.at("figures");
  if (figures.is_array() && !figures.empty()) {
    const char* const field = kind_of(figures.front()).metric;
    const Json y = field ? figures.front().value(field, Json()) : Json();
    for (const Json& metric : y.is_array() ? y : Json::array({y}))
      if (metric.is_string() && find_metric(metric.get<std::string>())) return metric.get<std::string>();
  }
  const std::string task = results.plan.value("/scenario/loss/task"_json_pointer, "mse");
  return task_loss_kind(task).needs_classes ? "test_loss_eval" : "test_nmse_top1";
}

MeanEstimate sequential_estimate(const std::vector<double>& values, bool positive) {
  const bool of_logarithms =
      positive && std::all_of(values.begin(), values.end(), [](double value) { return value > 0; });
  std::vector<double> taken = values;
  if (of_logarithms)
    std::transform(values.begin(), values.end(), taken.begin(), [](double x) { return std::log(x); });
  MeanEstimate estimate = mean_estimate(taken);
  if (taken.size() > 1) {
    double squares = 0;
    for (const double value : taken) squares += (value - estimate.mean) * (value - estimate.mean);
    estimate.interval =
        t_mixture_interval(estimate.mean, squares / static_cast<double>(taken.size() - 1), estimate.count);
  }
  if (!of_logarithms) return estimate;
  estimate.mean = std::exp(estimate.mean);
  if (estimate.interval)
    estimate.interval = {std::exp(estimate.interval->low), std::exp(estimate.interval->high)};
  return estimate;
}

std::vector<SummaryEntry> summarize(const ResultTable& table, const std::string& metric, bool is_sequential) {
  std::vector<SummaryEntry> entries;
  std::vector<std::vector<double>> values;
  const bool positive = is_declared_positive(metric);
  for (const ResultRow& row : table.rows) {
    // Rows of an arm at a point stand together.
    if (entries.empty() || entries.back().arm != row.arm || entries.back().point != row.point) {
      entries.push_back({row.arm, row.point, 0, std::nullopt});
      values.emplace_back();
    }
    ++entries.back().planned;
    const auto value = row.metrics.find(metric);
    if (row.state == "done" && value != row.metrics.end() && std::isfinite(value->second)) {
      values.back().push_back(value->second);
    }
  }
  for (std::size_t index = 0; index < entries.size(); ++index) {
    if (values[index].empty()) continue;
    entries[index].estimate = is_sequential ? sequential_estimate(values[index], positive)
                                            : figure_estimate(values[index], positive);
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
  return fmt::format("{:.4g} ± {:.2g}", estimate->mean,
                     (estimate->interval->high - estimate->interval->low) / 2);
}

std::string entry_text(const SummaryEntry& entry, const std::string& metric) {
  std::string text = estimate_text(entry.estimate);
  if (entry.estimate && entry.estimate->interval) {
    const Interval& interval = *entry.estimate->interval;
    const double mean = entry.estimate->mean;
    if (interval.high - interval.low <= kNoWidth * std::abs(mean)) {
      text = fmt::format("{:.6g}", mean);
    } else if (is_declared_positive(metric)) {
      text = fmt::format("{:.4g} [{:.3g}, {:.3g}]", mean, interval.low, interval.high);
    }
  }
  if (entry.estimate && entry.estimate->count < entry.planned)
    text += fmt::format(" ({} of {})", entry.estimate->count, entry.planned);
  return text;
}

std::string summary_statistic(const std::string& metric) {
  return is_declared_positive(metric) ? "geometric mean over seeds [95 % interval]"
                                      : "mean over seeds ± half of the 95 % interval";
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
    rows[line->second][entry.point.size() + static_cast<std::size_t>(arm)] = entry_text(entry, metric);
  }
  return rows;
}

std::string summary_text(const ResultTable& table, const std::string& metric) {
  return fmt::format("{} ({})\n{}", metric, summary_statistic(metric),
                     aligned_columns(summary_table(table, metric)));
}

Json summary_json(const ResultTable& table, const std::string& metric) {
  Json entries = Json::array();
  for (const SummaryEntry& entry : summarize(table, metric)) {
    Json json = {{"arm", entry.arm}, {"point", point_json(entry.point)}, {"cells", entry.planned}};
    json["count"] = entry.estimate ? entry.estimate->count : 0;
    json["mean"] = entry.estimate ? Json(entry.estimate->mean) : Json();
    json["interval"] = Json();
    if (entry.estimate && entry.estimate->interval) {
      json["interval"] = {entry.estimate->interval->low, entry.estimate->interval->high};
    }
    entries.push_back(std::move(json));
  }
  return {{"metric", metric}, {"entries", std::move(entries)}};
}

}  // namespace moelab
