#include "plots/embedding.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "plots/csv_cell.h"
#include "plots/page.h"
#include "plots/style.h"

namespace moelab {
namespace {

constexpr std::size_t kColumns = 2;
constexpr double kMargin = 4, kPanelName = 11, kPointSize = 0.14;
constexpr double kPanelSize = (kWidth - (kColumns + 1) * kMargin) / kColumns;
/// Share of the range that is left free around the points.
constexpr double kPadding = 0.03;

/// "[low:high]" around all points of one coordinate.
std::string range_of(const Embedding& embedding, double EmbeddingPoint::*coordinate) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const EmbeddingPanel& panel : embedding.panels) {
    for (const EmbeddingPoint& point : panel.points) {
      low = std::min(low, point.*coordinate);
      high = std::max(high, point.*coordinate);
    }
  }
  if (!(low < high)) return "[-1:1]";
  const double padding = kPadding * (high - low);
  return fmt::format("[{:.6g}:{:.6g}]", low - padding, high + padding);
}

}  // namespace

std::string embedding_csv(const Embedding& embedding) {
  std::string text = fmt::format("panel,x,y,{},colour\n", embedding.label);
  for (const EmbeddingPanel& panel : embedding.panels) {
    for (const EmbeddingPoint& point : panel.points) {
      text += fmt::format("{},{},{},{},{}\n", gnuplot_csv_cell(panel.name), point.x, point.y, point.label,
                          point.colour);
    }
  }
  return text;
}

std::string embedding_script(const Embedding& embedding) {
  const std::vector<std::string> title = wrapped(embedding.title, kFontSize + 1, kWidth - 10);
  const std::vector<std::string> caption = wrapped(embedding.caption, kSmallFontSize, kWidth - 10);
  const double bottom = caption_height(caption) + kMargin, step = kPanelSize + kPanelName + kMargin;
  const std::size_t lines = (embedding.panels.size() + kColumns - 1) / kColumns;
  const double height =
      bottom + step * static_cast<double>(lines) + kTitleLine * static_cast<double>(title.size());

  std::string text = script_head(embedding.id, embedding.title);
  text += fmt::format("data = {}\nset datafile separator comma\n", quoted(embedding.id + ".csv"));
  text += "set border 15 lw 0.6 lc rgb '#999999'\nunset tics\nunset key\n";
  text += fmt::format("set xrange {}\nset yrange {}\n", range_of(embedding, &EmbeddingPoint::x),
                      range_of(embedding, &EmbeddingPoint::y));
  std::string plot = "set multiplot\n";
  std::size_t first = 1;  // row 0 of the CSV is its header
  for (std::size_t p = 0; p < embedding.panels.size(); ++p) {
    const std::size_t points = embedding.panels[p].points.size();
    const double left = kMargin + static_cast<double>(p % kColumns) * (kPanelSize + kMargin);
    const double low = bottom + step * static_cast<double>(lines - 1 - p / kColumns);
    plot += fmt::format("set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\n", left / kWidth,
                        (left + kPanelSize) / kWidth);
    plot += fmt::format("set bmargin at screen {:.5f}\nset tmargin at screen {:.5f}\nunset label\n",
                        low / height, (low + kPanelSize) / height);
    plot +=
        fmt::format("set label {} at screen {:.5f}, screen {:.5f} left\n", quoted(embedding.panels[p].name),
                    left / kWidth, (low + kPanelSize + 0.5 * kPanelName) / height);
    if (p == 0) plot += title_and_caption(title, caption, height);
    for (int colour = -1; colour < static_cast<int>(kColours.size()); ++colour) {
      plot += fmt::format(
          "{} data every ::{}::{} using 2:($5=={} ? $3 : NaN) with points pt 7 ps {} lc rgb '#{}'",
          colour < 0 ? "plot" : ", \\\n    ", first, first + points - 1, colour, kPointSize,
          colour < 0 ? "D0D0D0" : kColours[static_cast<std::size_t>(colour)]);
    }
    plot += "\n";
    first += points;
  }
  plot += "unset multiplot";
  return text + on_terminals(embedding.id, height, plot, plot);  // replot knows no multiplot
}

std::vector<std::filesystem::path> render(const Embedding& embedding,
                                          const std::filesystem::path& directory) {
  return write_figure(embedding.id, embedding_csv(embedding), embedding_script(embedding), directory);
}

}  // namespace moelab
