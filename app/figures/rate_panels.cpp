#include "app/figures/rate_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/figures/shown_arms.h"
#include "app/metrics/labels.h"
#include "app/scenario/claim_reader.h"
#include "app/scenario/references.h"
#include "sim/base/error.h"

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

bool has_errors(const RateData& data) {
  for (const auto& repetition : data.errors) {
    for (const std::optional<double>& error : repetition) {
      if (error) return true;
    }
  }
  return false;
}

/// The point of one n, with the value of the fitted line inside the window.
RatePoint point_at(const RateEntry& entry, std::size_t size) {
  RatePoint point{entry.data.samples[size], {}, {}, {}, {}};
  const bool of_squares = entry.query.average == RateAverage::squares;
  std::vector<double> values;
  for (const auto& repetition : entry.data.errors) {
    if (const auto error = repetition[size])
      values.push_back(of_squares ? *error * *error : std::log(*error));
  }
  if (!values.empty()) {
    const MeanEstimate mean = mean_estimate(values);
    point.mean = of_squares ? std::sqrt(mean.mean) : std::exp(mean.mean);
    if (mean.interval) {
      // Of the root of a mean: ln √m ± h / 2m.
      const double scale = of_squares ? 2 * mean.mean : 1;
      point.low = *point.mean * std::exp((mean.interval->low - mean.mean) / scale);
      point.high = *point.mean * std::exp((mean.interval->high - mean.mean) / scale);
    }
  }
  if (entry.query.reads(point.x) && entry.estimate.slope)
    point.fitted = std::exp(entry.estimate.intercept) * std::pow(point.x, entry.estimate.slope->mean);
  return point;
}

void check_rate_panels(const References& references, const Json& figure, const std::string& path) {
  const std::vector<std::string> arms = checked_arms(references, figure, path);
  const std::size_t panels = figure.at("rows").size() * figure.at("columns").size();
  if (panels != arms.size()) {
    throw UserError(
        join_path(path, "rows"),
        fmt::format("and columns make {} panels, needs one for each of {} arms", panels, arms.size()));
  }
  const std::string x = figure.at("x"), series = figure.at("series");
  references.check_swept(series, "arm", join_path(path, "series"));
  const Json& y = figure.at("y");
  for (const Json& metric : y.is_array() ? y : Json::array({y})) {
    for (const std::string& arm : arms) references.check_metric(arm, metric, join_path(path, "y"));
  }
  const Json reported = figure.value("reported", Json::object());
  for (const auto& [arm, rate] : reported.items())
    references.check_arm(arm, join_path(join_path(path, "reported"), arm));
  references.check_sizes(figure, x, {x, series}, path, join_path(path, "x"));
}

Drawing draw_rate_panels(const Json& figure, const FigureSource& source) {
  return drawing_of(build_rate_panels(figure, source));
}

}  // namespace

FigureKind rate_panels_kind() {
  return {
      "rate_panels",
      "a panel for each arm with slopes of ln y on ln x",
      {{"x", Shape::text(), "the swept path whose values are n"},
       {"y", Shape::either({Shape::text(), Shape::list(Shape::text(), 1)}), "a metric or several: errors"},
       {"rows", Shape::list(Shape::text(), 1), "names of the rows, whose panels are arms in order"},
       {"columns", Shape::list(Shape::text(), 1), "names of the columns"},
       {"series", Shape::text(), "arm, or a swept path: one line for each", "arm"},
       {"window", Shape::list(Shape::positive_real(), 2), "[least x, most x] of the slopes (default: all)",
        kOptional},
       rate_average_field(),
       {"reported", Shape::map(Shape::text()), "arm → the rate that the source gives", kOptional},
       {"x_label", Shape::text(), "label of the x axis", kOptional},
       {"y_label", Shape::text(), "label of the y axis", kOptional}},
      check_rate_panels,
      draw_rate_panels,
      "y"};
}

std::vector<RateEntry> rate_entries(const Json& description, const ResultTable& table) {
  const std::string x = description.at("x"), series = description.value("series", "arm");
  const Json& y = description.at("y");
  const Json metrics = y.is_array() ? y : Json::array({y});
  std::vector<RateEntry> entries;
  for (const std::string& arm : own_shown_arms(description, table)) {
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

RatePanels build_rate_panels(const Json& description, const FigureSource& source) {
  const std::vector<std::string> arms = own_shown_arms(description, source.table);
  RatePanels figure;
  figure.id = description.at("id");
  figure.x_label = description.value("x_label", axis_label(description.at("x")));
  figure.y_label = description.value("y_label", "error");
  figure.title = figure_title(description, source, figure.y_label + " over " + figure.x_label);
  figure.rows = description.at("rows").get<std::vector<std::string>>();
  figure.columns = description.at("columns").get<std::vector<std::string>>();
  figure.references = {{-0.5, "slope −1/2"}, {-0.25, "slope −1/4"}};
  figure.panels.resize(arms.size());
  std::size_t repetitions = 0;
  for (const RateEntry& entry : rate_entries(description, source.table)) {
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
  figure.caption = scenario_sentences(figure.title, source);
  figure.caption +=
      description.value("average", "logarithms") == "squares"
          ? fmt::format(
                "Roots of mean squares of {} repetitions with 95 % intervals; lines and numbers: slope of "
                "their "
                "ln on ln n, 95 % interval of the jackknife over repetitions.",
                repetitions)
          : fmt::format(
                "Geometric means of {} repetitions with 95 % intervals; lines and numbers: mean slope of ln "
                "error on ln n, 95 % Student-t interval over repetitions.",
                repetitions);
  int left_out = 0;
  for (const ResultRow& row : source.table.rows) left_out += row.state != "done" ? 1 : 0;
  if (left_out > 0) figure.caption += fmt::format(" Cells left out: {}.", left_out);
  figure.caption += source.footnote;
  return figure;
}

}  // namespace moelab
