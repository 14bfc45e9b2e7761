#include "plots/rate_panels.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "plots/figure.h"
#include "plots/gnuplot.h"
#include "plots/page.h"

namespace moelab {
namespace {

// Lengths in points (1/72 inch).
constexpr double kRatePanelHeight = 92, kBetween = 8, kRightMargin = 16, kNameGap = 2.5, kAxisRoom = 30;
/// Lines of the names of rows and columns.
constexpr std::size_t kRateNameLines = 2;
/// Share of the data's decades that the axis has besides, below them.
constexpr double kSlopeRoom = 0.3;
constexpr double kLeftMargin = 46, kSlopeLine = 8.5, kInset = 4;

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::vector<std::string> line_names(const RatePanels& figure) {
  std::vector<std::string> names;
  for (const auto& panel : figure.panels) {
    for (const RateLine& line : panel) {
      if (std::find(names.begin(), names.end(), line.name) == names.end()) names.push_back(line.name);
    }
  }
  return names;
}

/// Panels this small have room for the decades alone; where there are fewer than two, every label stays.
void use_decades(Axis& axis) {
  const auto is_decade = [](double place) {
    const double exponent = std::log10(place);
    return std::abs(exponent - std::round(exponent)) <= 1e-9;
  };
  std::vector<std::pair<double, std::string>> decades = axis.ticks;
  std::size_t labelled = 0;
  for (auto& [place, label] : decades) {
    if (!is_decade(place)) label.clear();
    labelled += label.empty() ? 0 : 1;
  }
  if (labelled > 1) axis.ticks = decades;
}

struct Axes {
  Axis x, y;
  Axes(const RatePanels& figure, double panel_width) {
    std::vector<double> places, values;
    for (const auto& panel : figure.panels) {
      for (const RateLine& line : panel) {
        for (const RatePoint& point : line.points) {
          places.push_back(point.x);
          for (const std::optional<double>& value : {point.mean, point.low, point.high})
            if (value) values.push_back(*value);
        }
      }
    }
    x = fit_axis(places, true);
    const Axis data = fit_axis(values, true);
    // Room for the slopes below the points.
    values.push_back(data.low * std::pow(data.low / data.high, kSlopeRoom));
    y = fit_axis(values, true);
    use_decades(x);
    use_decades(y);
    keep_labels_apart(x, panel_width);
  }
};

/// Dashes of the reference slopes, in turn.
constexpr std::array<const char*, 2> kRateReferenceDashes = {"(8,4)", "(2,3)"};

/// A line of the reference slope below the top, from the left edge where it falls, to the right one where it
/// rises.
std::string reference_clause(const Axes& axes, std::size_t index, double slope) {
  return fmt::format("{:.8g}*(x/{:.8g})**({}) with lines lw 0.8 dt {} lc rgb '#{}' notitle",
                     std::pow(axes.y.high, 0.9) * std::pow(axes.y.low, 0.1),
                     slope > 0 ? axes.x.high : axes.x.low, slope,
                     kRateReferenceDashes[index % kRateReferenceDashes.size()], kReferenceColour);
}

Legend legend_of(const RatePanels& figure, const std::vector<std::string>& names) {
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < names.size(); ++i)
    entries.push_back({names[i], style_of(i).colour, "1", style_of(i).marker});
  for (std::size_t i = 0; i < figure.references.size(); ++i)
    entries.push_back({figure.references[i].second, kReferenceColour,
                       kRateReferenceDashes[i % kRateReferenceDashes.size()], 0});
  return Legend(std::move(entries), kTwoColumns);
}

/// All panels with the power laws as lines, for the page.
Figure page_figure(const RatePanels& panels) {
  Figure figure;
  figure.title = panels.title;
  figure.x_label = panels.x_label;
  figure.y_label = panels.y_label;
  figure.x_log = figure.y_log = true;
  for (std::size_t place = 0; place < panels.panels.size(); ++place) {
    FigurePanel panel{
        panels.rows[place / panels.columns.size()] + ", " + panels.columns[place % panels.columns.size()],
        {}};
    for (const RateLine& line : panels.panels[place]) {
      FigureSeries measured{line.slope.empty() ? line.name : line.name + ", slope " + line.slope, {}};
      FigureSeries fitted{line.name + ", fitted", {}, SeriesLook::reference};
      for (const RatePoint& point : line.points) {
        measured.points.push_back({point.x, point.mean, point.low, point.high, {}});
        if (point.fitted) fitted.points.push_back({point.x, point.fitted, {}, {}, {}});
      }
      panel.series.push_back(std::move(measured));
      if (!fitted.points.empty()) panel.series.push_back(std::move(fitted));
    }
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

}  // namespace

std::string rate_panels_csv(const RatePanels& figure) {
  std::string text = "row,column,series,x,mean,low,high,fitted\n";
  for (std::size_t p = 0; p < figure.panels.size(); ++p) {
    for (const RateLine& line : figure.panels[p]) {
      for (const RatePoint& point : line.points) {
        text += fmt::format(
            "{},{},{},{},{},{},{},{}\n", gnuplot_csv_cell(figure.rows[p / figure.columns.size()]),
            gnuplot_csv_cell(figure.columns[p % figure.columns.size()]), gnuplot_csv_cell(line.name), point.x,
            csv_number(point.mean), csv_number(point.low), csv_number(point.high), csv_number(point.fitted));
      }
    }
  }
  return text;
}

namespace {

/// Names in lines, and the room that they take.
struct RateLayout {
  std::vector<std::vector<std::string>> rows, columns;
  double right_margin = kRightMargin, panel_width = 0, column_name = 0;

  explicit RateLayout(const RatePanels& figure) {
    std::size_t row_lines = 1, column_lines = 1;
    for (const std::string& row : figure.rows) {
      rows.push_back(fitted_lines(row, kFontSize, kRatePanelHeight + kBetween - 2, kRateNameLines));
      row_lines = std::max(row_lines, rows.back().size());
    }
    right_margin += kLabelLine * static_cast<double>(row_lines - 1);
    panel_width =
        (kTwoColumns - kLeftMargin - right_margin) / static_cast<double>(figure.columns.size()) - kBetween;
    for (const std::string& column : figure.columns) {
      columns.push_back(fitted_lines(column, kFontSize, panel_width, kRateNameLines));
      column_lines = std::max(column_lines, columns.back().size());
    }
    column_name = kNameGap + kLabelLine * static_cast<double>(column_lines);
  }
};

}  // namespace

std::string rate_panels_script(const RatePanels& figure) {
  const RateLayout layout(figure);
  const double panel_width = layout.panel_width, right_margin = layout.right_margin,
               column_name = layout.column_name;
  const Axes axes(figure, panel_width);
  const std::vector<std::string> names = line_names(figure);
  const Heading heading(figure.title, figure.caption, kTwoColumns);
  const Legend legend = legend_of(figure, names);
  const double rows = static_cast<double>(figure.rows.size());
  const std::vector<std::string> x_label = {fitted_line(figure.x_label, kFontSize, kTwoColumns - 10)};
  const double bottom = heading.caption_height() + 4 + legend.height() + kAxisRoom;
  const double height = bottom + rows * (kRatePanelHeight + kBetween) + column_name + heading.title_height();
  const auto across = [](double points) { return points / kTwoColumns; };
  const auto up = [&](double points) { return points / height; };

  std::string text = script_head(figure.id, figure.title);
  text += fmt::format("data = {}\nset datafile separator comma\n", quoted(figure.id + ".csv"));
  text += "set samples 2\n";
  std::string plot = "set multiplot\nset border 3 lw 0.6 lc rgb '#333333'\nunset key\n";
  plot += "set tics nomirror out scale 0.6\nset grid xtics ytics lw 0.4 dt 1 lc rgb '#D9D9D9'\n";
  plot += "set xtics nomirror offset 0,0.4\nset ytics nomirror offset 0.4,0\n";
  std::size_t first_row = 1;  // row 0 of the CSV is its header
  for (std::size_t p = 0; p < figure.panels.size(); ++p) {
    const std::size_t row = p / figure.columns.size(), column = p % figure.columns.size();
    const bool is_lowest = row + 1 == figure.rows.size();
    const double left = kLeftMargin + static_cast<double>(column) * (panel_width + kBetween);
    const double low = bottom + (rows - 1 - static_cast<double>(row)) * (kRatePanelHeight + kBetween);
    plot += panel_margins(left, left + panel_width, low, low + kRatePanelHeight, kTwoColumns, height) +
            "unset label\nunset arrow\n";
    plot += axis_script('x', axes.x, is_lowest) + axis_script('y', axes.y, column == 0);
    if (row == 0) {
      plot += centred_label(layout.columns[column], left + panel_width / 2,
                            low + kRatePanelHeight + 0.5 * column_name, kTwoColumns, height);
    }
    if (column + 1 == figure.columns.size()) {
      // Turned clockwise: the first line is the outermost.
      const std::vector<std::string>& lines = layout.rows[row];
      for (std::size_t line = 0; line < lines.size(); ++line)
        plot += fmt::format("set label {} at screen {:.5f}, screen {:.5f} center rotate by -90\n",
                            quoted(lines[line]),
                            across(left + panel_width + 0.7 * kRightMargin +
                                   kLabelLine * static_cast<double>(lines.size() - 1 - line)),
                            up(low + kRatePanelHeight / 2));
    }
    std::vector<std::string> clauses;
    for (std::size_t i = 0; i < figure.references.size(); ++i)
      clauses.push_back(reference_clause(axes, i, figure.references[i].first));
    for (std::size_t l = 0; l < figure.panels[p].size(); ++l) {
      const RateLine& line = figure.panels[p][l];
      const std::size_t place =
          static_cast<std::size_t>(std::find(names.begin(), names.end(), line.name) - names.begin());
      const Style style = style_of(place);
      const std::string range =
          fmt::format("data every ::{}::{} using ", first_row, first_row + line.points.size() - 1);
      first_row += line.points.size();
      if (line.points.empty()) continue;
      clauses.push_back(fmt::format("{}4:8 with lines lw 1.2 lc rgb '#{}' notitle", range, style.colour));
      clauses.push_back(fmt::format("{}4:6:(0):($7-$6) with vectors nohead lw 0.8 lc rgb '#{}' notitle",
                                    range, style.colour));
      clauses.push_back(fmt::format("{}4:5 with points lw 0.8 pt {} ps 0.4 lc rgb '#{}' notitle", range,
                                    style.marker, style.colour));
      plot += fmt::format(
          "set label {} at screen {:.5f}, screen {:.5f} left font ',{}' tc rgb '#{}'\n", quoted(line.slope),
          across(left + kInset),
          up(low + kInset + kSlopeLine * (static_cast<double>(figure.panels[p].size() - l) - 0.5)),
          kSmallFontSize, style.colour);
    }
    if (p == 0) {
      plot += centred_label(x_label, (kLeftMargin + kTwoColumns - right_margin) / 2, bottom - 22, kTwoColumns,
                            height);
      const double all = rows * (kRatePanelHeight + kBetween);
      plot += centred_label({fitted_line(figure.y_label, kFontSize, all)}, 8, bottom + all / 2, kTwoColumns,
                            height, true);
      plot += heading.script(height) + legend.script(heading.caption_height() + 4, height);
    }
    plot += "plot ";
    for (std::size_t i = 0; i < clauses.size(); ++i) plot += (i ? ", \\\n     " : "") + clauses[i];
    plot += "\n";
  }
  plot += "unset multiplot";
  return text + on_terminals(figure.id, height, plot, kTwoColumns);
}

Drawing drawing_of(const RatePanels& figure) {
  return {figure.id,
          figure.title,
          figure.caption,
          rate_panels_csv(figure),
          rate_panels_script(figure),
          figure_html(page_figure(figure))};
}

}  // namespace moelab
