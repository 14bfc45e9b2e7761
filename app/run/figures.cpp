#include "app/run/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "analysis/stats/bands.h"
#include "app/run/cluster_maps.h"
#include "app/run/drawing_folder.h"
#include "app/run/embeddings.h"
#include "app/run/heat_maps.h"
#include "app/run/rate_results.h"
#include "app/scenario/sweep_values.h"
#include "plots/labels.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr const char* kReferenceMetric = "bayes_nmse";
/// On a logarithmic axis a floor below this share of everything else would leave the figure empty.
constexpr double kDistantFloor = 0.01;

/// The rows of one arm at one value of the series path (none where arms are the series).
struct Group {
  std::string arm;
  std::optional<SweepValue> value;
  std::vector<const ResultRow*> rows;
};

std::vector<Group> group_rows(const Json& description, const ResultTable& table) {
  const std::string series = description.value("series", "arm");
  const SweepPoint where = read_point(description.value("where", Json::object()));
  const std::vector<std::string> arms =
      description.contains("arms") ? description.at("arms").get<std::vector<std::string>>() : table.arms;
  std::vector<Group> groups;
  for (const std::string& arm : arms) {
    std::unordered_map<std::string, std::size_t> places;  // of the arm's groups, by the value
    for (const ResultRow& row : table.rows) {
      if (row.arm != arm || !row.is_at(where)) continue;
      const SweepValue* const found = series == "arm" ? nullptr : row.coordinate(series);
      const auto [place, is_new] = places.try_emplace(found ? found->canonical() : "", groups.size());
      if (is_new) groups.push_back({arm, found ? std::optional(*found) : std::nullopt, {}});
      groups[place->second].rows.push_back(&row);
    }
  }
  return groups;
}

/// The places of the x axis: numbers, or names when a swept value is not a number.
class Horizontal {
 public:
  Horizontal(const std::string& path, const std::vector<Group>& groups) : path_(path) {
    std::vector<SweepValue> values;
    for (const Group& group : groups)
      for (const ResultRow* row : group.rows)
        if (const SweepValue* value = row->coordinate(path);
            value && places_.try_emplace(value->canonical(), values.size()).second)
          values.push_back(*value);
    const auto is_number = [](const SweepValue& value) { return value.number().has_value(); };
    if (std::all_of(values.begin(), values.end(), is_number)) return;
    for (const SweepValue& value : values) categories_.push_back(value_text(value));
  }

  const std::vector<std::string>& categories() const { return categories_; }

  /// (x, metrics) of a row: one pair for a swept path, one for every recorded step.
  std::vector<std::pair<double, const MetricValues*>> places(const ResultRow& row) const {
    std::vector<std::pair<double, const MetricValues*>> found;
    if (path_ == "step") {
      for (const TraceEntry& entry : row.trace)
        found.emplace_back(static_cast<double>(entry.step), &entry.metrics);
    } else if (const SweepValue* value = row.coordinate(path_)) {
      found.emplace_back(
          categories_.empty() ? value->number().value() : static_cast<double>(places_.at(value->canonical())),
          &row.metrics);
    }
    return found;
  }

 private:
  std::string path_;
  std::unordered_map<std::string, std::size_t> places_;  ///< of the values
  std::vector<std::string> categories_;
};

/// The line of one group and metric; no points when the metric does not apply to the group's cells.
std::vector<FigurePoint> line(const Group& group, const Horizontal& horizontal, const std::string& metric,
                              bool logarithmic) {
  std::size_t seeds = 0;
  for (const ResultRow* row : group.rows) seeds = std::max(seeds, static_cast<std::size_t>(row->seed) + 1);
  std::map<double, std::vector<std::optional<double>>> values;
  bool any_done = false, any_value = false;
  for (const ResultRow* row : group.rows)
    for (const auto& [x, metrics] : horizontal.places(*row)) {
      std::vector<std::optional<double>>& at_x = values.try_emplace(x, seeds).first->second;
      if (row->state != "done") continue;
      any_done = true;
      const auto value = metrics->find(metric);
      if (value == metrics->end()) continue;
      any_value = true;
      at_x[static_cast<std::size_t>(row->seed)] = value->second;
    }
  std::vector<FigurePoint> points;
  if (any_done && !any_value) return points;
  for (auto& [x, at_x] : values) {
    BandPoint band = band_point(x, std::move(at_x), logarithmic);
    points.push_back({x, band.mean, band.low, band.high, std::move(band.seeds)});
  }
  return points;
}

std::string series_name(const Group& group, const std::string& path, const std::string& metric, bool name_arm,
                        bool name_metric) {
  std::vector<std::string> parts;
  if (name_arm) parts.push_back(group.arm);
  if (group.value) parts.push_back(fmt::format("{} = {}", legend_label(path), value_text(*group.value)));
  if (name_metric) parts.push_back(legend_label(metric));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string caption(const Json& description, const RunResults& results, const std::vector<Group>& groups) {
  std::set<int> seeds;
  std::map<std::string, int> left_out;
  for (const Group& group : groups)
    for (const ResultRow* row : group.rows) {
      seeds.insert(row->seed);
      if (row->state != "done") ++left_out[row->state];
    }
  std::string text;
  const std::string title = results.plan.value("title", "");
  if (description.contains("title") && description.at("title") != title && !title.empty())
    text += title + ". ";
  if (const std::string source = results.plan.value("source", ""); !source.empty()) text += source + ". ";
  text += seeds.size() > 1 ? fmt::format("Mean of {} seeds, 95 % Student-t band{}.", seeds.size(),
                                         seeds.size() < 10 ? "; thin lines: single seeds" : "")
                           : "One seed: no interval.";
  std::vector<std::string> counts;
  for (const auto& [state, count] : left_out) counts.push_back(fmt::format("{} {}", count, state));
  if (!counts.empty()) text += fmt::format(" Cells left out: {}.", fmt::join(counts, ", "));
  return text + builds_footnote(results);
}

/// The least mean above zero; infinite without one.
double least_mean(const std::vector<FigureSeries>& series) {
  double least = std::numeric_limits<double>::infinity();
  for (const FigureSeries& line : series) {
    for (const FigurePoint& point : line.points) {
      if (point.mean && *point.mean > 0) least = std::min(least, *point.mean);
    }
  }
  return least;
}

}  // namespace

Figure build_figure(const Json& description, const RunResults& results) {
  const std::string x = description.at("x").get<std::string>();
  const std::string path = description.value("series", "arm");
  const Json& y = description.at("y");
  const std::vector<std::string> metrics =
      y.is_array() ? y.get<std::vector<std::string>>() : std::vector<std::string>{y.get<std::string>()};
  const std::vector<Group> groups = group_rows(description, results.table);
  const Horizontal horizontal(x, groups);

  Figure figure;
  figure.id = description.at("id").get<std::string>();
  figure.title = description.value("title", results.plan.value("title", ""));
  figure.x_log = horizontal.categories().empty() && description.value("x_scale", "linear") == "log";
  figure.y_log = description.value("y_scale", "linear") == "log";
  figure.x_label = description.value("x_label", axis_label(x));
  figure.x_categories = horizontal.categories();

  const auto is_reference = [&](const std::string& metric) {
    return metrics.size() > 1 && metric == kReferenceMetric;
  };
  std::vector<std::string> measured;
  std::copy_if(metrics.begin(), metrics.end(), std::back_inserter(measured), std::not_fn(is_reference));
  if (measured.empty()) measured = {kReferenceMetric};
  figure.y_label = description.value("y_label", axis_label(measured.front()));
  std::set<std::string> arms;
  for (const Group& group : groups) arms.insert(group.arm);
  const bool name_metric = measured.size() > 1;
  const bool name_arm = arms.size() > 1 || (path == "arm" && !name_metric);
  for (const Group& group : groups)
    for (const std::string& metric : measured) {
      std::vector<FigurePoint> points = line(group, horizontal, metric, figure.y_log);
      if (!points.empty())
        figure.series.push_back(
            {series_name(group, path, metric, name_arm, name_metric), std::move(points), false});
    }
  // Of each value of the series path, the first arm that knows the floor draws it.
  std::vector<std::optional<SweepValue>> drawn;
  const double least = least_mean(figure.series);
  std::string below;
  for (const Group& group : groups) {
    if (measured.size() == metrics.size() ||
        std::find(drawn.begin(), drawn.end(), group.value) != drawn.end())
      continue;
    std::vector<FigurePoint> points = line(group, horizontal, kReferenceMetric, figure.y_log);
    const auto has_mean = [](const FigurePoint& point) { return point.mean.has_value(); };
    if (std::none_of(points.begin(), points.end(), has_mean)) continue;
    drawn.push_back(group.value);
    FigureSeries floor{series_name(group, path, kReferenceMetric, false, true), std::move(points), true};
    if (const double height = least_mean({floor}); figure.y_log && height < kDistantFloor * least) {
      below += fmt::format(" {}: {:.1g}, below the figure.", floor.name, height);
    } else {
      figure.series.push_back(std::move(floor));
    }
  }
  figure.caption = caption(description, results, groups) + below;
  return figure;
}

std::vector<std::filesystem::path> draw_figures(const RunResults& results,
                                                const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const Json& description : results.plan.at("figures")) {
    const std::filesystem::path figures = directory / results.outputs / "figures";
    const DrawingFolder drawing(directory);
    const std::filesystem::path& folder = drawing.path();
    // Runs from before there were heat maps name no kind.
    const std::string kind = description.value("kind", "lines");
    const auto draw = [&] {
      return kind == "heat_map"      ? render(build_heat_map(description, results), folder)
             : kind == "rate_panels" ? render(build_rate_panels(description, results), folder)
             : kind == "cluster_map" ? render(build_cluster_map(description, results, directory), folder)
             : kind == "embedding"   ? render(build_embedding(description, results, directory), folder)
                                     : render(build_figure(description, results), folder);
    };
    try {
      for (const std::filesystem::path& file : drawing.publish(draw(), figures)) files.push_back(file);
    } catch (const EnvironmentError&) {
      // The data and the script, with which the figure can be drawn by hand.
      drawing.publish(drawing.files_ending({".csv", ".gp"}), figures);
      throw;
    }
  }
  return files;
}

std::string figures_text(const std::vector<std::filesystem::path>& files) {
  std::string text;
  for (const std::filesystem::path& file : files) {
    if (file.extension() != ".svg") continue;
    std::vector<std::string> others;
    for (const std::filesystem::path& other : files) {
      if (other != file && other.parent_path() == file.parent_path() && other.stem() == file.stem())
        others.push_back(other.extension().string());
    }
    text += fmt::format("{} ({})\n", file.string(), fmt::join(others, " "));
  }
  return text;
}

}  // namespace moelab
