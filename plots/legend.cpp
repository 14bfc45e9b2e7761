#include "plots/legend.h"

#include <fmt/core.h>

#include <algorithm>

#include "plots/page.h"
#include "plots/style.h"

namespace moelab {
namespace {

constexpr double kSample = 20, kSampleGap = 4, kEntryGap = 12, kLegendLine = 10;
constexpr std::size_t kMostColumns = 4;

/// The colour, or one that nobody can tell from it: gnuplot 5.4 joins lines of one colour that follow each
/// other in an SVG to one path, which has the dashes of the last.
std::string unlike(const std::string& colour, const std::string& before) {
  if (colour != before) return colour;
  const unsigned long own = std::stoul(colour, nullptr, 16);
  return fmt::format("{:06X}", (own & 0xFF) == 0xFF ? own - 1 : own + 1);
}

}  // namespace

Legend::Legend(std::vector<LegendEntry> entries, double page_width)
    : entries_(std::move(entries)), page_width_(page_width) {
  if (entries_.empty()) return;
  const double room = page_width - 2 * kPageMargin - kSample - kSampleGap;
  double longest = 0;
  for (const LegendEntry& entry : entries_) {
    names_.push_back(wrapped(entry.name, kFontSize, room));
    longest = std::max(longest, widest(names_.back(), kFontSize));
  }
  entry_width_ = kSample + kSampleGap + longest;
  const double most = (page_width - 2 * kPageMargin + kEntryGap) / (entry_width_ + kEntryGap);
  columns_ = std::clamp<std::size_t>(static_cast<std::size_t>(most), 1, kMostColumns);
  const std::size_t rows = (entries_.size() + columns_ - 1) / columns_;
  // Two rows of two read better than a row of three and one of one.
  columns_ = (entries_.size() + rows - 1) / rows;
  row_lines_.resize(rows, 1);
  for (std::size_t i = 0; i < names_.size(); ++i)
    row_lines_[i / columns_] = std::max(row_lines_[i / columns_], names_[i].size());
  for (const std::size_t lines : row_lines_) height_ += kLegendLine * static_cast<double>(lines);
}

std::string Legend::script(double bottom, double page_height) const {
  std::string text;
  if (entries_.empty()) return text;
  const auto across = [&](double points) { return points / page_width_; };
  const auto up = [&](double points) { return points / page_height; };
  const double width = static_cast<double>(columns_) * (entry_width_ + kEntryGap) - kEntryGap;
  double top = bottom + height_;
  std::string colour_before;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (i > 0 && i % columns_ == 0) top -= kLegendLine * static_cast<double>(row_lines_[i / columns_ - 1]);
    const LegendEntry& entry = entries_[i];
    const double left =
        (page_width_ - width) / 2 + static_cast<double>(i % columns_) * (entry_width_ + kEntryGap);
    const double middle = up(top - kLegendLine / 2);
    if (!entry.dash.empty()) {
      colour_before = unlike(entry.colour, colour_before);
      text += fmt::format(
          "set arrow from screen {:.5f}, screen {:.5f} to screen {:.5f}, screen {:.5f} nohead lw 1.3 dt {} "
          "lc rgb '#{}'\n",
          across(left), middle, across(left + kSample), middle, entry.dash, colour_before);
    }
    if (entry.marker != 0) {
      text += fmt::format("set label '' at screen {:.5f}, screen {:.5f} point pt {} ps {} lc rgb '#{}'\n",
                          across(left + kSample / 2), middle, entry.marker, kMarkerSize, entry.colour);
    }
    for (std::size_t line = 0; line < names_[i].size(); ++line)
      text += fmt::format("set label {} at screen {:.5f}, screen {:.5f} left\n", quoted(names_[i][line]),
                          across(left + kSample + kSampleGap),
                          up(top - kLegendLine * (static_cast<double>(line) + 0.5)));
  }
  return text;
}

}  // namespace moelab
