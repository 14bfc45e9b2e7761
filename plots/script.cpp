#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "plots/axis.h"
#include "plots/figure.h"
#include "plots/page.h"
#include "plots/style.h"

namespace moelab {
namespace {

// Lengths in points (1/72 inch).
constexpr double kPanelHeight = 132;
constexpr double kTickRoom = 7, kRightMargin = 10, kTopMargin = 6;
constexpr double kLegendLine = 10.5;
/// Below the panel: the middle of the x label, and the top of the legend.
constexpr double kXLabelDepth = 18, kAxisRoom = 26, kLegendGap = 5;
constexpr std::size_t kMarkersPerSeries = 12;

std::optional<double> seed_value(const FigurePoint& point, std::size_t seed) {
  return seed < point.seeds.size() ? point.seeds[seed] : std::nullopt;
}

std::size_t seed_count(const FigureSeries& series) {
  std::size_t count = 0;
  for (const FigurePoint& point : series.points) count = std::max(count, point.seeds.size());
  return count;
}

bool has_seed_lines(const FigureSeries& series) {
  return !series.reference && seed_count(series) > 1 && seed_count(series) < kSeedLinesBelow;
}

/// `characters`: how many letters of a tick label fit along the axis.
Axis x_axis(const Figure& figure, double characters) {
  std::vector<double> places;
  std::size_t most_points = 0;
  for (const FigureSeries& series : figure.series) {
    for (const FigurePoint& point : series.points) places.push_back(point.x);
    most_points = std::max(most_points, series.points.size());
  }
  if (!figure.x_categories.empty()) {
    Axis axis;
    axis.low = -0.5;
    axis.high = static_cast<double>(figure.x_categories.size()) - 0.5;
    for (std::size_t i = 0; i < figure.x_categories.size(); ++i)
      axis.ticks.emplace_back(static_cast<double>(i), figure.x_categories[i]);
    return axis;
  }
  return most_points <= 10 ? fit_axis_at(places, figure.x_log, characters) : fit_axis(places, figure.x_log);
}

Axis y_axis(const Figure& figure) {
  std::vector<double> values;
  for (const FigureSeries& series : figure.series)
    for (const FigurePoint& point : series.points) {
      if (point.mean) values.push_back(*point.mean);
      if (series.reference) continue;
      for (const std::optional<double>& value : {point.low, point.high})
        if (value) values.push_back(*value);
      if (has_seed_lines(series))
        for (const std::optional<double>& value : point.seeds)
          if (value) values.push_back(*value);
    }
  return fit_axis(values, figure.y_log);
}

/// Lengths from the left and bottom edges: caption, legend, axis labels, panel, title.
struct Layout {
  Axis x, y;
  std::vector<std::string> title, caption, y_label;
  std::size_t legend_columns = 1;
  double left_margin = 0, height = 0, panel_bottom = 0, panel_top = 0, legend_middle = 0, caption_top = 0;

  explicit Layout(const Figure& figure)
      : y(y_axis(figure)),
        title(wrapped(figure.title, kFontSize + 1, kWidth - 10)),
        caption(wrapped(figure.caption, kSmallFontSize, kWidth - 10)),
        y_label(wrapped(figure.y_label, kFontSize, 1.2 * kPanelHeight)) {
    std::size_t widest_tick = 1;
    for (const auto& [place, label] : y.ticks) widest_tick = std::max(widest_tick, letters(label));
    left_margin = 2 + kLabelLine * static_cast<double>(y_label.size()) + kTickRoom +
                  0.62 * kTickFontSize * static_cast<double>(widest_tick);
    x = x_axis(figure, (kWidth - left_margin - kRightMargin) / (kLetterWidth * kTickFontSize));

    std::size_t longest = 1;
    for (const FigureSeries& series : figure.series) longest = std::max(longest, letters(series.name));
    // gnuplot takes fewer columns where it reckons that they do not fit, and it reckons with wide letters.
    const double entry_width = 40 + 0.68 * kFontSize * static_cast<double>(longest);
    legend_columns = std::clamp<std::size_t>(static_cast<std::size_t>(kWidth / entry_width), 1, 4);
    const std::size_t entries = figure.series.size();
    const std::size_t rows = (entries + legend_columns - 1) / legend_columns;
    // Two rows of two read better than a row of three and one of one.
    if (rows > 0) legend_columns = (entries + rows - 1) / rows;
    caption_top = caption_height(caption);
    const double legend_height = kLegendLine * static_cast<double>(rows);
    legend_middle = caption_top + kLegendGap + legend_height / 2;
    panel_bottom = caption_top + kLegendGap + legend_height + kAxisRoom;
    panel_top = panel_bottom + kPanelHeight;
    height = panel_top + kTopMargin + kTitleLine * static_cast<double>(title.size());
  }
};

/// [first, last] rows of the CSV between which every point has a value that the axes can show.
using Run = std::pair<std::size_t, std::size_t>;

template <class Value>
std::vector<Run> runs(const Figure& figure, const FigureSeries& series, std::size_t first_row, Value value) {
  std::vector<Run> found;
  bool open = false;
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const std::optional<double> y = value(series.points[i]);
    const bool shown =
        y && std::isfinite(*y) && !(figure.y_log && *y <= 0) && !(figure.x_log && series.points[i].x <= 0);
    if (shown && open) found.back().second = first_row + i;
    if (shown && !open) found.emplace_back(first_row + i, first_row + i);
    open = shown;
  }
  return found;
}

/// The clauses of `plot`, bands below thin lines below means.
std::vector<std::string> plot_clauses(const Figure& figure) {
  std::vector<std::string> bands, thin, means;
  std::size_t first_row = 1, styled = 0;  // row 0 is the header
  for (const FigureSeries& series : figure.series) {
    const Style style = style_of(series.reference ? 0 : styled++);
    const auto clause = [&](const Run& run, const std::string& how) {
      return fmt::format("data every ::{}::{} using {}", run.first, run.second, how);
    };
    if (!series.reference)
      for (const Run& run :
           runs(figure, series, first_row, [](const FigurePoint& p) { return p.high ? p.low : p.high; }))
        bands.push_back(clause(
            run, run.first == run.second
                     ? fmt::format("2:3:4:5 with yerrorbars pt 0 lw 0.8 lc rgb '#{}' notitle", style.colour)
                     : fmt::format("2:4:5 with filledcurves fc rgb '#{}' fs transparent solid 0.18 "
                                   "noborder notitle",
                                   style.colour)));
    if (has_seed_lines(series))
      for (std::size_t seed = 0; seed < seed_count(series); ++seed)
        for (const Run& run :
             runs(figure, series, first_row, [&](const FigurePoint& p) { return seed_value(p, seed); }))
          if (run.first != run.second)
            thin.push_back(clause(
                run, fmt::format("2:{} with lines lw 0.4 lc rgb '#90{}' notitle", 6 + seed, style.colour)));
    std::string look = fmt::format("with lines lw 1 dt (8,5) lc rgb '#{}'", kReferenceColour);
    if (!series.reference) {
      const std::size_t interval = (series.points.size() + kMarkersPerSeries - 1) / kMarkersPerSeries;
      look = fmt::format("with linespoints lw 1.3 dt {} pt {} ps 0.42 pi {} lc rgb '#{}'", style.dash,
                         style.marker, std::max<std::size_t>(interval, 1), style.colour);
    }
    for (const Run& run : runs(figure, series, first_row, [](const FigurePoint& p) { return p.mean; }))
      means.push_back(clause(run, fmt::format("2:3 {} notitle", look)));
    // The legend names a series even where nothing of it can be drawn.
    means.push_back(fmt::format("keyentry {} title {}", look, quoted(series.name)));
    first_row += series.points.size();
  }
  // Without any value gnuplot still needs something to plot.
  if (means.size() == figure.series.size()) bands.emplace_back("NaN notitle");
  bands.insert(bands.end(), thin.begin(), thin.end());
  bands.insert(bands.end(), means.begin(), means.end());
  return bands;
}

}  // namespace

std::string figure_script(const Figure& figure) {
  const Layout layout(figure);
  const auto height = [&](double points) { return points / layout.height; };
  std::string text = script_head(figure.id, figure.title);
  text += fmt::format("data = {}\nset datafile separator comma\n", quoted(figure.id + ".csv"));
  text += "set border 3 lw 0.6 lc rgb '#333333'\nset tics nomirror out scale 0.6\n";
  text += "set grid xtics ytics lw 0.4 dt 1 lc rgb '#D9D9D9'\n";
  text += fmt::format("set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\n",
                      layout.left_margin / kWidth, 1 - kRightMargin / kWidth);
  text += fmt::format("set bmargin at screen {:.5f}\nset tmargin at screen {:.5f}\n",
                      height(layout.panel_bottom), height(layout.panel_top));
  text += fmt::format(
      "set xtics offset 0,0.4\nset ytics offset 0.4,0\nset label {} at screen {:.5f}, screen {:.5f} center\n",
      quoted(figure.x_label), (layout.left_margin + kWidth - kRightMargin) / 2 / kWidth,
      height(layout.panel_bottom - kXLabelDepth));
  for (std::size_t i = 0; i < layout.y_label.size(); ++i)
    text += fmt::format("set label {} at screen {:.5f}, screen {:.5f} center rotate\n",
                        quoted(layout.y_label[i]), (2 + kLabelLine * (static_cast<double>(i) + 0.5)) / kWidth,
                        height((layout.panel_bottom + layout.panel_top) / 2));
  text += axis_script('x', layout.x) + axis_script('y', layout.y);
  text += fmt::format(
      "set key at screen 0.5, screen {:.5f} center center horizontal Left reverse maxcols {} "
      "samplen 2.6 spacing 0.95 width 0 noautotitle\n",
      height(layout.legend_middle), layout.legend_columns);
  text += title_and_caption(layout.title, layout.caption, layout.height);
  std::string plot = "plot ";
  const std::vector<std::string> clauses = plot_clauses(figure);
  for (std::size_t i = 0; i < clauses.size(); ++i) plot += (i ? ", \\\n     " : "") + clauses[i];
  return text + on_terminals(figure.id, layout.height, plot);
}

}  // namespace moelab
