#include "app/run/rate_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/run/summary.h"
#include "app/scenario/claim_reader.h"
#include "plots/labels.h"

namespace moelab {
namespace {

/// The values of a swept path in the order of the table; one that is none where arms are the series.
std::vector<std::optional<SweepValue>> series_values(const std::string& path, const ResultTable& table) {
  if (path == "arm") return {std::nullopt};
  std::vector<std::optional<SweepValue>> values;
  for (const ResultRow& row : table.rows) {
    const SweepValue* const value = row.coordinate(path);
    if (value && std::find(values.begin(), values.end(), *value) == values.end()) values.push_back(*value);
  }
  return values;
}

std::vector<std::string> arms_of(const Json& description, const ResultTable& table) {
  if (description.contains("arms")) return description.at("arms").get<std::vector<std::string>>();
  return table.arms;
}

bool has_errors(const RateData& data) {
  for (const auto& repetition : data.errors) {
    for (const std::optional<double>& error : repetition) {
      if (error) return true;
    }
  }
  return false;
}

/// "−0.49 [−0.52, −0.46]", with a true minus.
std::string slope_text(const RateEstimate& estimate) {
  if (!estimate.slope) return "no slope";
  std::string text = fmt::format("{:.2f}", estimate.slope->mean);
  if (const auto& interval = estimate.slope->interval)
    text += fmt::format(" [{:.2f}, {:.2f}]", interval->low, interval->high);
  return text;
}

std::string statements_text(const RateEstimate& estimate) {
  std::string compatible, open;
  for (const RateStatement& statement : rate_statements()) {
    const RateVerdict verdict = judge_slope(estimate.slope, statement.range);
    if (verdict == RateVerdict::compatible) compatible = "= " + statement.name;
    if (verdict == RateVerdict::inconclusive) open += (open.empty() ? "? " : " ? ") + statement.name;
  }
  if (!compatible.empty()) return compatible;
  return open.empty() ? "none" : open;
}

std::string cell_text(const RateEntry& entry, const Json& reported) {
  std::string text = fmt::format("{} {}; law: {}", slope_text(entry.estimate),
                                 statements_text(entry.estimate), better_law(entry.estimate));
  if (entry.estimate.left_out > 0) text += fmt::format("; {} left out", entry.estimate.left_out);
  if (reported.contains(entry.arm)) text += fmt::format(" ({})", reported.at(entry.arm).get<std::string>());
  return text;
}

/// The point of one n, with the value of the fitted line inside the window.
RatePoint point_at(const RateEntry& entry, std::size_t size) {
  RatePoint point{entry.data.samples[size], {}, {}, {}, {}};
  std::vector<double> logs;
  for (const auto& repetition : entry.data.errors) {
    if (repetition[size]) logs.push_back(std::log(*repetition[size]));
  }
  if (!logs.empty()) {
    const MeanEstimate mean = mean_estimate(logs);
    point.mean = std::exp(mean.mean);
    if (mean.interval) {
      point.low = std::exp(mean.interval->low);
      point.high = std::exp(mean.interval->high);
    }
  }
  const auto& window = entry.query.window;
  const bool inside = !window || (point.x >= window->low && point.x <= window->high);
  if (inside && entry.estimate.slope)
    point.fitted = std::exp(entry.estimate.intercept) * std::pow(point.x, entry.estimate.slope->mean);
  return point;
}

const std::vector<Json> rate_figures(const RunResults& results) {
  std::vector<Json> figures;
  for (const Json& description : results.plan.at("figures")) {
    if (description.value("kind", "lines") == "rate_panels") figures.push_back(description);
  }
  return figures;
}

Json interval_json(const std::optional<MeanEstimate>& estimate) {
  if (!estimate || !estimate->interval) return nullptr;
  return Json::array({estimate->interval->low, estimate->interval->high});
}

}  // namespace

std::vector<RateEntry> rate_entries(const Json& description, const ResultTable& table) {
  const std::string x = description.at("x"), series = description.value("series", "arm");
  const Json& y = description.at("y");
  const Json metrics = y.is_array() ? y : Json::array({y});
  std::vector<RateEntry> entries;
  for (const std::string& arm : arms_of(description, table)) {
    for (const std::optional<SweepValue>& value : series_values(series, table)) {
      for (const Json& metric : metrics) {
        RateEntry entry{arm, legend_label(metric), read_rate_query(description, arm, metric, x), {}, {}};
        if (value) {
          entry.query.where.emplace_back(series, *value);
          entry.name = fmt::format("{} {}, {}", value->text(), legend_label(series), entry.name);
        }
        entry.estimate = estimate_rate(rate_data(table, entry.query));
        RateQuery everywhere = entry.query;
        everywhere.window.reset();
        entry.data = rate_data(table, everywhere);
        if (has_errors(entry.data)) entries.push_back(std::move(entry));
      }
    }
  }
  return entries;
}

RatePanels build_rate_panels(const Json& description, const RunResults& results) {
  const std::vector<std::string> arms = arms_of(description, results.table);
  RatePanels figure;
  figure.id = description.at("id");
  figure.title = description.value("title", results.plan.value("title", ""));
  figure.x_label = description.value("x_label", axis_label(description.at("x")));
  figure.y_label = description.value("y_label", "error");
  figure.rows = description.at("rows").get<std::vector<std::string>>();
  figure.columns = description.at("columns").get<std::vector<std::string>>();
  figure.references = {{-0.5, "slope −1/2"}, {-0.25, "slope −1/4"}};
  figure.panels.resize(arms.size());
  std::size_t repetitions = 0;
  for (const RateEntry& entry : rate_entries(description, results.table)) {
    RateLine line{entry.name, {}, ""};
    for (std::size_t s = 0; s < entry.data.samples.size(); ++s) line.points.push_back(point_at(entry, s));
    if (const auto& slope = entry.estimate.slope) {
      line.slope = fmt::format("{:.2f}", slope->mean);
      if (slope->interval)
        line.slope += fmt::format(" ± {:.2f}", (slope->interval->high - slope->interval->low) / 2);
    }
    repetitions = std::max(repetitions, entry.data.errors.size());
    const auto arm = std::find(arms.begin(), arms.end(), entry.arm);
    figure.panels[static_cast<std::size_t>(arm - arms.begin())].push_back(std::move(line));
  }
  if (const std::string source = results.plan.value("source", ""); !source.empty())
    figure.caption = source + ". ";
  figure.caption += fmt::format(
      "Geometric means of {} repetitions with 95 % intervals; lines and numbers: mean "
      "slope of ln error on ln n, 95 % Student-t interval over repetitions.",
      repetitions);
  int left_out = 0;
  for (const ResultRow& row : results.table.rows) left_out += row.state != "done" ? 1 : 0;
  if (left_out > 0) figure.caption += fmt::format(" Cells left out: {}.", left_out);
  figure.caption += builds_footnote(results);
  return figure;
}

std::string rates_text(const RunResults& results) {
  std::string text;
  for (const Json& description : rate_figures(results)) {
    const std::vector<RateEntry> entries = rate_entries(description, results.table);
    const std::vector<std::string> arms = arms_of(description, results.table),
                                   rows = description.at("rows").get<std::vector<std::string>>(),
                                   columns = description.at("columns").get<std::vector<std::string>>();
    const Json reported = description.value("reported", Json::object());
    std::vector<std::string> names;
    for (const RateEntry& entry : entries) {
      if (std::find(names.begin(), names.end(), entry.name) == names.end()) names.push_back(entry.name);
    }
    for (const std::string& name : names) {
      std::vector<std::vector<std::string>> table(1, columns);
      table[0].insert(table[0].begin(), "");
      for (std::size_t r = 0; r < rows.size(); ++r) {
        table.push_back({rows[r]});
        for (std::size_t c = 0; c < columns.size(); ++c) {
          const auto entry = std::find_if(entries.begin(), entries.end(), [&](const RateEntry& candidate) {
            return candidate.name == name && candidate.arm == arms[r * columns.size() + c];
          });
          table.back().push_back(entry == entries.end() ? "-" : cell_text(*entry, reported));
        }
      }
      text += fmt::format(
          "{}: slope of ln error on ln n (95 % interval), = rate or ? rates not excluded, law that "
          "fits better (the source)\n{}\n",
          name, aligned_columns(table));
    }
  }
  return text;
}

Json rates_json(const RunResults& results) {
  Json list = Json::array();
  for (const Json& description : rate_figures(results)) {
    const Json reported = description.value("reported", Json::object());
    for (const RateEntry& entry : rate_entries(description, results.table)) {
      const RateEstimate& estimate = entry.estimate;
      Json json = {{"figure", description.at("id")},
                   {"arm", entry.arm},
                   {"line", entry.name},
                   {"metric", entry.query.metric}};
      json["slope"] = estimate.slope ? Json(estimate.slope->mean) : Json();
      json["interval"] = interval_json(estimate.slope);
      json["repetitions"] = estimate.slope ? estimate.slope->count : 0;
      json["missing"] = estimate.missing;
      for (const RateStatement& statement : rate_statements())
        json["statements"][statement.name] = to_string(judge_slope(estimate.slope, statement.range));
      json["log_against_power"] =
          estimate.log_against_power ? Json(estimate.log_against_power->mean) : Json();
      json["log_against_power_interval"] = interval_json(estimate.log_against_power);
      json["law"] = better_law(estimate);
      json["reported"] = reported.value(entry.arm, Json());
      list.push_back(std::move(json));
    }
  }
  return list;
}

}  // namespace moelab
