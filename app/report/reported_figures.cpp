#include "app/report/reported_figures.h"

#include "app/run/cluster_maps.h"
#include "app/run/durable_file.h"
#include "app/run/figures.h"
#include "app/run/heat_maps.h"
#include "app/run/rate_results.h"

namespace moelab {
namespace {

/// A panel as a figure of its own: the lines with their slopes, and the power laws fitted to them.
Figure panel_figure(const RatePanels& panels, std::size_t place) {
  Figure figure;
  figure.id = panels.id + "-" + std::to_string(place + 1);
  figure.title =
      panels.rows[place / panels.columns.size()] + ", " + panels.columns[place % panels.columns.size()];
  figure.caption = place + 1 == panels.panels.size() ? panels.caption : "";
  figure.x_label = panels.x_label;
  figure.y_label = panels.y_label;
  figure.x_log = figure.y_log = true;
  for (const RateLine& line : panels.panels[place]) {
    FigureSeries measured{line.slope.empty() ? line.name : line.name + ", slope " + line.slope, {}, false};
    FigureSeries fitted{line.name + ", fitted", {}, true};
    for (const RatePoint& point : line.points) {
      measured.points.push_back({point.x, point.mean, point.low, point.high, {}});
      if (point.fitted) fitted.points.push_back({point.x, point.fitted, {}, {}, {}});
    }
    figure.series.push_back(std::move(measured));
    if (!fitted.points.empty()) figure.series.push_back(std::move(fitted));
  }
  return figure;
}

}  // namespace

void add_figures(const RunResults& results, const std::filesystem::path& directory, ReportedRun& run) {
  for (const Json& figure : results.plan.at("figures")) {
    const std::string kind = figure.value("kind", "lines");
    run.drawn.push_back(directory / results.outputs / "figures" /
                        (figure.at("id").get<std::string>() + ".svg"));
    if (kind == "lines") {
      run.figures.push_back(build_figure(figure, results));
    } else if (kind == "heat_map") {
      run.heat_maps.push_back(build_heat_map(figure, results));
    } else if (kind == "cluster_map") {
      run.heat_maps.push_back(build_cluster_map(figure, results, directory));
    } else if (kind == "rate_panels") {
      const RatePanels panels = build_rate_panels(figure, results);
      for (std::size_t place = 0; place < panels.panels.size(); ++place)
        run.figures.push_back(panel_figure(panels, place));
    } else {  // thousands of points, which the page shows as they were drawn, if they were
      const std::filesystem::path& file = run.drawn.back();
      const std::string drawn = std::filesystem::exists(file) ? read_bytes(file) : "";
      run.pictures.push_back({figure.value("title", results.plan.value("title", "")), "", drawn});
    }
  }
}

}  // namespace moelab
