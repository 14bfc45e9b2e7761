#include "app/commands/check_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace moelab {
namespace {

/// "first.row.column.last"; what is missing is empty.
struct Place {
  std::string figure, row, column;

  explicit Place(const std::string& id) {
    const std::size_t first = id.find('.'), last = id.rfind('.');
    figure = id.substr(0, first) + "-" + id.substr(last + 1);
    if (last <= first) return;
    const std::string between = id.substr(first + 1, last - first - 1);
    const std::size_t dot = between.find('.');
    row = between.substr(0, dot);
    if (dot != std::string::npos) column = between.substr(dot + 1);
  }
};

/// Where a name stands in a list, to which it is added.
std::size_t index_of(const std::string& name, std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

/// The curve, and the power law of the slope that the check found through its first point.
RateLine line_of(const CheckFinding& finding) {
  const auto [first_x, first_y] = finding.curve.points.front();
  RateLine line{finding.curve.name, {}, fmt::format("{:.2f}", finding.measured)};
  for (const auto& [x, y] : finding.curve.points)
    line.points.push_back({x, y, {}, {}, first_y * std::pow(x / first_x, finding.measured)});
  return line;
}

}  // namespace

std::vector<RatePanels> check_figures(const std::vector<const Check*>& chosen,
                                      const std::vector<CheckFinding>& findings) {
  std::vector<RatePanels> figures;
  std::vector<std::vector<std::pair<Place, const CheckFinding*>>> places;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const CheckFinding& finding = findings[i];
    if (finding.curve.points.empty()) continue;
    const Place place(chosen[i]->id);
    auto figure = std::find_if(figures.begin(), figures.end(),
                               [&](const RatePanels& known) { return known.id == place.figure; });
    if (figure == figures.end()) {
      figure = figures.insert(figures.end(), RatePanels{});
      figure->id = place.figure;
      figure->title = finding.curve.title;
      figure->caption =
          "Numbers in the panels: the slope that the check found, drawn through the first point.";
      figure->x_label = finding.curve.x_label;
      figure->y_label = finding.curve.y_label;
      figure->references = {{1, "slope 1"}, {2, "slope 2"}};
      places.emplace_back();
    }
    index_of(place.row, figure->rows);
    index_of(place.column, figure->columns);
    places[static_cast<std::size_t>(figure - figures.begin())].emplace_back(place, &finding);
  }
  for (std::size_t f = 0; f < figures.size(); ++f) {
    RatePanels& figure = figures[f];
    figure.panels.resize(figure.rows.size() * figure.columns.size());
    for (const auto& [place, finding] : places[f]) {
      const std::size_t row = index_of(place.row, figure.rows),
                        column = index_of(place.column, figure.columns);
      figure.panels[row * figure.columns.size() + column].push_back(line_of(*finding));
    }
  }
  return figures;
}

}  // namespace moelab
