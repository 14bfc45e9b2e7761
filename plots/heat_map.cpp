#include "plots/heat_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "plots/csv_cell.h"
#include "plots/page.h"

namespace moelab {
namespace {

/// Of compact maps: between panels, and right of the last.
constexpr double kCompactGap = 6, kCompactLeft = 14;
constexpr double kRowHeight = 15, kPanelName = 12, kRightMargin = 34, kBetweenPanels = 8;
/// Below the last panel: its ticks and the label of x.
constexpr double kAxisRoom = 30, kXLabelDepth = 20;
constexpr double kCompactAxisRoom = 14, kCompactXLabelDepth = 7;
/// Cells narrower than this have no number in them.
constexpr double kNumberRoom = 17;

/// Viridis, dark to bright: even steps of lightness, told apart by every common kind of colour vision.
constexpr const char* kPalette =
    "0 '#440154', 1 '#414487', 2 '#2A788E', 3 '#22A884', 4 '#7AD151', 5 '#FDE725'";
/// Orange over white at 0 to blue, for scales from −a to a.
constexpr const char* kSignedPalette = "0 '#B35806', 1 '#F1A340', 2 '#FFFFFF', 3 '#67A9CF', 4 '#08306B'";
/// More would make the file large for no visible gain; odd, so that 0 has a colour of its own.
constexpr int kColourSteps = 33;
/// Above this share of the scale a cell is too bright for white numbers.
constexpr double kBright = 0.6;

double longest(const std::vector<std::string>& names) {
  std::size_t most = 1;
  for (const std::string& name : names) most = std::max(most, letters(name));
  return static_cast<double>(most);
}

std::string tick_list(const std::vector<std::string>& names) {
  std::string text = "(";
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}{} {}", i ? ", " : "", quoted(names[i]), i);
  return text + fmt::format(") font ',{}'\n", kTickFontSize);
}

}  // namespace

std::string heat_map_csv(const HeatMap& map) {
  std::string text = "panel,x,y,value\n";
  for (const HeatMapPanel& panel : map.panels) {
    for (std::size_t i = 0; i < panel.values.size(); ++i) {
      const std::optional<double>& value = panel.values[i];
      text += fmt::format("{},{},{},{}\n", gnuplot_csv_cell(panel.name),
                          gnuplot_csv_cell(map.x_names[i % map.x_names.size()]),
                          gnuplot_csv_cell(map.y_names[i / map.x_names.size()]),
                          value ? fmt::format("{}", *value) : "");
    }
  }
  return text;
}

std::string heat_map_script(const HeatMap& map) {
  const std::size_t columns = map.x_names.size(), rows = map.y_names.size();
  const std::vector<std::string> title = wrapped(map.title, kFontSize + 1, kWidth - 10);
  const std::vector<std::string> caption = wrapped(map.caption, kSmallFontSize, kWidth - 10);
  const double count = static_cast<double>(map.panels.size());
  const double left =
      map.compact ? kCompactLeft : 10 + kLabelLine + 0.62 * kTickFontSize * longest(map.y_names);
  const double across = map.compact ? count : 1, down = map.compact ? 1 : count;
  const double panel_width = (kWidth - left - kRightMargin - (across - 1) * kCompactGap) / across;
  const double cell_width = panel_width / static_cast<double>(columns);
  const double panel_height = (map.compact ? cell_width : kRowHeight) * static_cast<double>(rows);
  const double step = panel_height + kPanelName + kBetweenPanels;
  const double bottom = caption_height(caption) + (map.compact ? kCompactAxisRoom : kAxisRoom);
  const double height = bottom + step * down + kTitleLine * static_cast<double>(title.size());

  std::string text = script_head(map.id, map.title);
  text += fmt::format("data = {}\nset datafile separator comma\n", quoted(map.id + ".csv"));
  text += "set border 0\nset tics scale 0,0 nomirror\nunset key\n";
  text += "set object rectangle from graph 0,0 to graph 1,1 behind fc rgb '#D9D9D9' fs solid noborder\n";
  text += fmt::format("set palette defined ({})\nset palette maxcolors {}\n",
                      map.low == -map.high ? kSignedPalette : kPalette, kColourSteps);
  text += fmt::format("set cbrange [{:.8g}:{:.8g}]\nset cbtics font ',{}' format '%g'\n", map.low, map.high,
                      kTickFontSize);
  text += fmt::format("set xrange [-0.5:{}]\nset yrange [-0.5:{}]\n", static_cast<double>(columns) - 0.5,
                      static_cast<double>(rows) - 0.5);
  text += map.compact ? "unset xtics\nunset ytics\n" : "set ytics " + tick_list(map.y_names);
  std::string plot = "set multiplot\n";
  for (std::size_t p = 0; p < map.panels.size(); ++p) {
    const double low = map.compact ? bottom : bottom + step * static_cast<double>(map.panels.size() - 1 - p);
    const double from = left + (map.compact ? static_cast<double>(p) * (panel_width + kCompactGap) : 0);
    const double middle = (from + from + panel_width) / 2 / kWidth;
    const std::size_t first = 1 + p * columns * rows;  // row 0 of the CSV is its header
    const bool is_last = p + 1 == map.panels.size();
    const auto at = [&](double points) { return points / height; };
    plot += fmt::format("set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\n", from / kWidth,
                        (from + panel_width) / kWidth);
    plot += fmt::format("set bmargin at screen {:.5f}\nset tmargin at screen {:.5f}\nunset label\n", at(low),
                        at(low + panel_height));
    plot += fmt::format("set label {} at screen {:.5f}, screen {:.5f} left\n", quoted(map.panels[p].name),
                        from / kWidth, at(low + panel_height + 0.5 * kPanelName));
    if (p == 0 || !map.compact) {
      plot += fmt::format("set label {} at screen {:.5f}, screen {:.5f} center rotate\n", quoted(map.y_label),
                          (3 + 0.5 * kLabelLine) / kWidth, at(low + 0.5 * panel_height));
    }
    plot += fmt::format(
        "set colorbox user origin screen {:.5f}, screen {:.5f} size screen 0.025, screen {:.5f}\n",
        1 - (kRightMargin - 5) / kWidth, at(low), at(panel_height));
    if (is_last && !map.compact) plot += "set xtics " + tick_list(map.x_names);
    if (!is_last) plot += map.compact ? "unset colorbox\n" : "unset colorbox\nunset xtics\n";
    if (is_last || map.compact) {
      plot += fmt::format("set label {} at screen {:.5f}, screen {:.5f} center\n", quoted(map.x_label),
                          middle, at(bottom - (map.compact ? kCompactXLabelDepth : kXLabelDepth)));
    }
    if (is_last) plot += title_and_caption(title, caption, height);
    // The place of a cell follows from its row in the file, whose names are for people.
    const std::string x = fmt::format("(int($0)%{})", columns), y = fmt::format("(int($0)/{})", columns);
    const std::string range = fmt::format("data every ::{}::{} using ", first, first + columns * rows - 1);
    if (map.compact) {  // one picture: thousands of boxes would make the file large
      plot += fmt::format("plot {}{}:{}:(valid(4) ? $4 : NaN) with image", range, x, y);
    } else {
      plot += fmt::format(
          "plot {0}{1}:{2}:({1}-0.5):({1}+0.5):({2}-0.5):({2}+0.5):4 with boxxyerror fc palette fs solid 1 "
          "noborder",
          range, x, y);
    }
    if (cell_width >= kNumberRoom && !map.compact) {
      const double limit = map.low + kBright * (map.high - map.low);
      for (const auto& [condition, colour] : {std::pair{"<", "#FFFFFF"}, {">=", "#000000"}}) {
        plot += fmt::format(
            ", \\\n     {}($4{}{:.8g} ? {} : NaN):{}:(sprintf('%.2g',$4)) with labels font ',{}' tc rgb '{}'",
            range, condition, limit, x, y, kSmallFontSize, colour);
      }
    }
    plot += "\n";
  }
  plot += "unset multiplot";
  return text + on_terminals(map.id, height, plot, plot);  // replot knows no multiplot
}

std::vector<std::filesystem::path> render(const HeatMap& map, const std::filesystem::path& directory) {
  return write_figure(map.id, heat_map_csv(map), heat_map_script(map), directory);
}

}  // namespace moelab
