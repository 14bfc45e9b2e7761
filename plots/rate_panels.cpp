#include "plots/rate_panels.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "plots/report/table.h"

namespace moelab {
namespace {

// Lengths in points (1/72 inch).
constexpr double kRatePanelHeight = 92, kRateGap = 8, kRateRightMargin = 16, kNameGap = 2.5, kAxisRoom = 30;
/// Lines of the names of rows and columns.
constexpr std::size_t kRateNameLines = 2;
/// The axis extends below the data by this share of the data's decades, for the slopes.
constexpr double kSlopeRoom = 0.3;
constexpr double kLeftMargin = 46, kSlopeLine = 8.5, kInset = 4;
/// Dashes of the reference slopes, in turn.
constexpr std::array<const char*, 2> kRateReferenceDashes = {"(8,4)", "(12,4,3,4)"};

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

/// Small panels have room for the labels of decades alone. All are written as powers of ten if one
/// is distant, since numbers of neighbouring panels would touch. With fewer than two decades, every label
/// stays.
void use_decades(Axis& axis) {
  std::vector<std::pair<double, std::string>> decades = axis.ticks;
  std::vector<std::pair<std::size_t, int>> labelled;  // ticks and their exponents
  for (std::size_t i = 0; i < decades.size(); ++i) {
    const double exponent = std::log10(decades[i].first), nearest = std::round(exponent);
    if (std::abs(exponent - nearest) > 1e-9) decades[i].second.clear();
    if (!decades[i].second.empty()) labelled.emplace_back(i, static_cast<int>(nearest));
  }
  if (labelled.size() < 2) return;
  axis.ticks = decades;
  const bool has_distant = std::any_of(labelled.begin(), labelled.end(), [](const auto& tick) {
    return std::abs(tick.second) >= kDistantExponent;
  });
  if (!has_distant) return;
  for (const auto& [tick, exponent] : labelled) axis.ticks[tick].second = power_of_ten(exponent);
}

/// Of the axes x and y, which all panels share.
void fit_axes(const RatePanels& figure, double panel_width, double panel_height, PageLayout& layout) {
  std::vector<double> places, values;
  for (const std::vector<RateLine>& panel : figure.panels)
    for (const RateLine& line : panel)
      for (const RatePoint& point : line.points) {
        places.push_back(point.x);
        for (const std::optional<double>& value : {point.mean, point.low, point.high})
          if (value) values.push_back(*value);
      }
  layout.x = fit_axis(places, true);
  const Axis data = fit_axis(values, true);
  values.push_back(data.low * std::pow(data.low / data.high, kSlopeRoom));
  layout.y = fit_axis(values, true);
  use_decades(layout.x);
  use_decades(layout.y);
  keep_labels_apart(layout.x, panel_width);
  keep_labels_apart(layout.y, panel_height, true);
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

RateLayout::RateLayout(const RatePanels& figure) {
  set_page(figure.style, kTwoColumns);
  for (const std::vector<RateLine>& panel : figure.panels)
    for (const RateLine& line : panel)
      if (!line.points.empty() && std::none_of(looks.begin(), looks.end(), [&](const SeriesStyle& known) {
            return known.name == line.name;
          }))
        looks.push_back(style_of(looks.size(), line.name));
  for (SeriesStyle& look : looks) look.dash = "1";
  for (const auto& [slope, name] : figure.references)
    references.push_back(
        {name, kReferenceColour, kRateReferenceDashes[references.size() % kRateReferenceDashes.size()], 0});
  arrange(figure, kRatePanelHeight);
  const std::optional<double> wanted = height_of(figure.style);
  if (!wanted) return;
  constexpr double kLeastPanel = 20;
  double panel_height = kRatePanelHeight;
  for (int round = 0; round < 3; ++round) {
    panel_height += (*wanted - height) / static_cast<double>(figure.rows.size());
    arrange(figure, std::max(panel_height, kLeastPanel));
  }
}

void RateLayout::arrange(const RatePanels& figure, double panel_height) {
  panels.clear();
  const FittedNames row_names =
      fitted_names(figure.rows, kFontSize, panel_height + kRateGap - 2, kRateNameLines, "R");
  std::size_t row_lines = 1, column_lines = 1;
  for (const std::vector<std::string>& lines : row_names.lines) row_lines = std::max(row_lines, lines.size());
  const double right_margin = kRateRightMargin + kLabelLine * static_cast<double>(row_lines - 1);
  const double panel_width =
      (width - kLeftMargin - right_margin) / static_cast<double>(figure.columns.size()) - kRateGap;
  const FittedNames column_names = fitted_names(figure.columns, kFontSize, panel_width, kRateNameLines, "C");
  for (const std::vector<std::string>& lines : column_names.lines)
    column_lines = std::max(column_lines, lines.size());
  const double column_name = kNameGap + kLabelLine * static_cast<double>(column_lines);
  fit_axes(figure, panel_width, panel_height, *this);
  reference_height = std::pow(y.high, 0.9) * std::pow(y.low, 0.1);

  std::vector<SeriesStyle> entries = looks;
  entries.insert(entries.end(), references.begin(), references.end());
  const Legend legend(std::move(entries), width);
  const double rows = static_cast<double>(figure.rows.size());
  const double all = rows * (panel_height + kRateGap);
  const FittedNames x_names = fitted_names({figure.x_label}, kFontSize, width - 10, 6, "X");
  const std::vector<std::string>& x_label = x_names.lines.front();
  const FittedNames y_label = fitted_names({figure.y_label}, kFontSize, all, 2, "Y");
  caption = figure.caption + row_names.key + column_names.key + legend.key() + y_label.key + x_names.key;
  const Heading heading(figure.style, figure.title, caption, width);
  const double bottom = heading.caption_height() + 4 + legend.height() + kAxisRoom +
                        kLabelLine * static_cast<double>(x_label.empty() ? 0 : x_label.size() - 1);
  height = bottom + all + column_name + heading.title_height();
  for (std::size_t p = 0; p < figure.panels.size(); ++p) {
    const std::size_t row = p / figure.columns.size(), column = p % figure.columns.size();
    PanelPlace panel{kLeftMargin + static_cast<double>(column) * (panel_width + kRateGap),
                     bottom + (rows - 1 - static_cast<double>(row)) * (panel_height + kRateGap),
                     panel_width,
                     panel_height,
                     row + 1 == figure.rows.size(),
                     column == 0};
    if (row == 0)
      place_centred(panel.marks, TextRole::panel, column_names.lines[column], panel.left + panel_width / 2,
                    panel.bottom + panel_height + 0.5 * column_name, false, column_names.size);
    if (column + 1 == figure.columns.size()) {
      // Rotated clockwise: the first line is the outermost.
      const std::vector<std::string>& lines = row_names.lines[row];
      for (std::size_t line = 0; line < lines.size(); ++line)
        panel.marks.push_back({TextRole::row, lines[line],
                               panel.left + panel_width + 0.7 * kRateRightMargin +
                                   kLabelLine * static_cast<double>(lines.size() - 1 - line),
                               panel.bottom + panel_height / 2, true, -90, row_names.size});
    }
    const std::vector<RateLine>& lines = figure.panels[p];
    for (std::size_t l = 0; l < lines.size(); ++l)
      if (!lines[l].points.empty())
        panel.marks.push_back(
            {TextRole::slope, lines[l].slope, panel.left + kInset,
             panel.bottom + kInset + kSlopeLine * (static_cast<double>(lines.size() - l) - 0.5), false, 0,
             kSmallFontSize, readable_colour(look_of(lines[l].name).colour)});
    if (p == 0) {
      place_centred(panel.marks, TextRole::x_label, x_label, (kLeftMargin + width - right_margin) / 2,
                    bottom - 22 - kLabelLine * (static_cast<double>(x_label.size()) - 1) / 2, false,
                    x_names.size);
      place_centred(panel.marks, TextRole::y_label, y_label.lines.front(),
                    8 + kLabelLine * (static_cast<double>(y_label.lines.front().size()) - 1) / 2,
                    bottom + all / 2, true, y_label.size);
      heading.place(panel.marks, width, height);
      legend.place(panel.marks, heading.caption_height() + 4);
    }
    panels.push_back(std::move(panel));
  }
}

const SeriesStyle& RateLayout::look_of(const std::string& name) const {
  return *std::find_if(looks.begin(), looks.end(),
                       [&](const SeriesStyle& style) { return style.name == name; });
}

nlohmann::ordered_json data_json(const RatePanels& figure) {
  const RateLayout layout(figure);
  nlohmann::ordered_json panels = nlohmann::ordered_json::array(),
                         references = nlohmann::ordered_json::array(),
                         styles = nlohmann::ordered_json::object();
  for (const std::vector<RateLine>& panel : figure.panels) {
    nlohmann::ordered_json lines = nlohmann::ordered_json::array();
    for (const RateLine& line : panel) {
      nlohmann::ordered_json points = nlohmann::ordered_json::array();
      for (const RatePoint& point : line.points)
        points.push_back({{"x", point.x},
                          {"mean", number_json(point.mean)},
                          {"low", number_json(point.low)},
                          {"high", number_json(point.high)},
                          {"fitted", number_json(point.fitted)}});
      lines.push_back({{"name", line.name}, {"slope", line.slope}, {"points", std::move(points)}});
    }
    panels.push_back(std::move(lines));
  }
  for (const auto& [slope, name] : figure.references) {
    nlohmann::ordered_json ends = nlohmann::ordered_json::array();
    for (const double x : {layout.x.low, layout.x.high})
      ends.push_back(
          {x, layout.reference_height * std::pow(x / (slope > 0 ? layout.x.high : layout.x.low), slope)});
    references.push_back({{"slope", slope}, {"name", name}, {"ends", std::move(ends)}});
  }
  for (const std::vector<SeriesStyle>* looks : {&layout.looks, &layout.references})
    for (const SeriesStyle& style : *looks) styles[style.name] = style_json(style);
  return {{"kind", "rate_panels"},
          {"id", figure.id},
          {"title", figure.title},
          {"caption", layout.caption},
          {"x_label", figure.x_label},
          {"y_label", figure.y_label},
          {"rows", figure.rows},
          {"columns", figure.columns},
          {"references", std::move(references)},
          {"panels", std::move(panels)},
          {"styles", std::move(styles)},
          {"layout", layout_json(layout)}};
}

nlohmann::ordered_json page_json(const RatePanels& figure) {
  return page_json(page_figure(figure));
}

}  // namespace moelab
