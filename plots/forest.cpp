#include "plots/forest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "plots/report/table.h"
#include "plots/texts.h"

namespace moelab {
namespace {

// Lengths in points (1/72 inch).
constexpr double kForestRow = 10.5, kForestIndent = 7, kForestRight = 10, kForestLabelGap = 5;
/// Below a panel: its ticks, its label, and the gap to the next panel.
constexpr double kForestTicks = 12, kForestGap = 8, kForestTop = 6;
/// Labels of rows take at most this share of the page, and have at most so many lines.
constexpr double kMostForestLabels = 0.45;
constexpr std::size_t kMostForestLines = 4;

struct VerdictMark {
  const char* verdict;
  const char* colour;
  int marker;
};
constexpr std::array kVerdictMarks = {
    VerdictMark{"reproduced", "0072B2", 7},    VerdictMark{"refuted", "D55E00", kCross},
    VerdictMark{"equivalent", "007A5A", 5},    VerdictMark{"inconclusive", "555555", 6},
    VerdictMark{"uninformative", "555555", 4}, VerdictMark{"outside", "555555", 12}};

/// A label at the left: the claim, or the point below its claim.
struct ForestLabel {
  std::string text;
  bool is_point = false;
  const ForestRow* row = nullptr;  ///< null for the name of a claim above its points
};

/// What the values of all points of a panel are; empty if they differ.
std::string shared_paths(const ForestPanel& panel) {
  std::string paths;
  for (const ForestRow& row : panel.rows) {
    if (row.point.empty()) continue;
    if (!paths.empty() && row.paths != paths) return "";
    paths = row.paths;
  }
  return paths;
}

/// A claim with one point without a name has one label. The points of others stand below the claim. With
/// `is_short`, a label above the points says what their values are.
std::vector<ForestLabel> labels_of(const ForestPanel& panel, bool is_short) {
  std::vector<ForestLabel> labels;
  const std::string shared = is_short ? shared_paths(panel) : "", heading = is_short ? shared : panel.heading;
  if (!heading.empty()) labels.push_back({heading, false, nullptr});
  for (std::size_t i = 0; i < panel.rows.size(); ++i) {
    const ForestRow& row = panel.rows[i];
    const bool is_first = i == 0 || panel.rows[i - 1].claim != row.claim;
    const bool is_alone = row.claim.empty() || row.point.empty();
    const bool names_paths = is_short && shared.empty();
    if (is_first && !is_alone)
      labels.push_back({row.claim + (names_paths ? ": " + row.paths : ""), false, nullptr});
    const std::string& point = is_short ? row.values : row.point;
    labels.push_back({is_alone && !row.claim.empty() ? row.claim : point,
                      !is_alone || (row.claim.empty() && !heading.empty()), &row});
  }
  return labels;
}

/// Names in a column of their own: smaller letters before several lines, so that most rows have one line.
FittedNames fitted_labels(const std::vector<std::string>& names, double room) {
  std::vector<std::string> set;
  for (const std::string& name : names) set.push_back(math_text(name));
  double size = kFontSize;
  while (size > kSmallFontSize && widest(set, size) > room) size -= 0.5;
  return fitted_names(names, size, room, kMostForestLines, "C");
}

/// The axis of a panel. Intervals that reach so far that the others would be one point leave it.
Axis forest_axis(const ForestPanel& panel) {
  constexpr double kReach = 2;
  if (panel.range) return axis_between(panel.range->first, panel.range->second, panel.is_log);
  const auto forward = [&](double value) { return panel.is_log ? std::log(value) : value; };
  const auto usable = [&](double value) { return std::isfinite(value) && (!panel.is_log || value > 0); };
  double low = forward(panel.no_effect), high = low;
  std::vector<double> lengths;
  for (const ForestRow& row : panel.rows)
    if (row.low && row.high && usable(*row.low) && usable(*row.high))
      lengths.push_back(forward(*row.high) - forward(*row.low));
  std::sort(lengths.begin(), lengths.end());
  const auto widen = [&](const std::optional<double>& value) {
    if (!value || !usable(*value)) return;
    low = std::min(low, forward(*value));
    high = std::max(high, forward(*value));
  };
  for (const ForestRow& row : panel.rows) widen(row.mean);
  const double usual = lengths.empty() ? 0 : lengths[lengths.size() / 2];
  const double room = kReach * std::max(high - low, usual), least = low - room, most = high + room;
  for (const ForestRow& row : panel.rows) {
    for (const std::optional<double>& end : {row.low, row.high})
      if (end && usable(*end) && (room == 0 || (forward(*end) >= least && forward(*end) <= most))) widen(end);
    for (const double limit : row.limits)
      if (room == 0 || (usable(limit) && forward(limit) >= least && forward(limit) <= most)) widen(limit);
  }
  const auto back = [&](double value) { return panel.is_log ? std::exp(value) : value; };
  return fit_axis({back(low), back(high)}, panel.is_log);
}

double rows_of(const std::vector<std::string>& lines) {
  return static_cast<double>(std::max<std::size_t>(lines.size(), 1));
}

std::string forest_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

}  // namespace

std::string forest_csv(const Forest& forest) {
  std::string text = "axis,claim,point,mean,low,high,verdict\n";
  for (const ForestPanel& panel : forest.panels)
    for (const ForestRow& row : panel.rows)
      text += fmt::format("{},{},{},{},{},{},{}\n", gnuplot_csv_cell(panel.label),
                          gnuplot_csv_cell(row.claim), gnuplot_csv_cell(row.point), forest_number(row.mean),
                          forest_number(row.low), forest_number(row.high), gnuplot_csv_cell(row.verdict));
  return text;
}

SeriesStyle verdict_style(const std::string& verdict) {
  for (const VerdictMark& mark : kVerdictMarks)
    if (verdict == mark.verdict) return {verdict, mark.colour, "", mark.marker};
  return {verdict, kReferenceColour, "", 6};
}

ForestLayout::ForestLayout(const Forest& forest, Texts texts) {
  const bool is_whole = texts == Texts::all;
  set_page(is_whole ? forest.style : FigureStyle(), kWidth);
  arrange(forest, texts, kForestRow);
  const std::optional<double> wanted = is_whole ? height_of(forest.style) : std::nullopt;
  if (!wanted) return;
  double rows = 0;
  for (const PanelPlace& panel : panels) rows += panel.own_y->high;
  arrange(forest, texts, std::max(kForestRow + (*wanted - height) / std::max(rows, 1.0), kLeastFontSize));
}

void ForestLayout::arrange(const Forest& forest, Texts texts, double row_height) {
  panels.clear();
  marks.clear();
  const bool is_whole = texts == Texts::all;
  std::vector<SeriesStyle> entries;
  for (const ForestPanel& panel : forest.panels)
    for (const ForestRow& row : panel.rows) {
      const SeriesStyle look = verdict_style(row.verdict);
      if (row.mean && std::none_of(entries.begin(), entries.end(),
                                   [&](const SeriesStyle& own) { return own.name == look.name; }))
        entries.push_back(look);
    }
  std::vector<std::vector<ForestLabel>> labels;
  FittedNames fitted;
  for (const bool is_short : {false, true}) {
    std::vector<std::string> names;
    labels.clear();
    for (const ForestPanel& panel : forest.panels)
      for (const ForestLabel& label : labels.emplace_back(labels_of(panel, is_short)))
        names.push_back(label.text);
    fitted = fitted_labels(names, kMostForestLabels * width - kForestIndent);
    const auto is_split = [](const ForestRow& row) { return row.point.empty() || !row.values.empty(); };
    if (std::ranges::all_of(fitted.lines, [](const auto& lines) { return lines.size() < 2; }) ||
        !std::ranges::all_of(forest.panels, [&](const ForestPanel& panel) {
          return !panel.rows.empty() && std::ranges::all_of(panel.rows, is_split);
        }))
      break;
  }
  // A label has a row for each of its lines.
  std::vector<double> panel_rows;
  for (std::size_t p = 0, name = 0; p < labels.size(); ++p) {
    double& rows = panel_rows.emplace_back(0);
    for (std::size_t i = 0; i < labels[p].size(); ++i) rows += rows_of(fitted.lines[name++]);
  }
  double longest = 0;
  for (const std::vector<std::string>& lines : fitted.lines)
    longest = std::max(longest, widest(lines, fitted.size));
  const double left = kPageMargin + longest + kForestIndent + kForestLabelGap;
  const double panel_width = width - left - kForestRight;
  std::vector<FittedNames> axis_labels;
  std::string key = fitted.key;
  for (const ForestPanel& panel : forest.panels) {
    axis_labels.push_back(fitted_names({panel.label}, kFontSize, panel_width + kForestRight, 2, "X"));
    key += axis_labels.back().key;
  }
  entries.push_back({"no effect", kReferenceColour, kNoEffectDash, 0});
  const auto has_limits = [](const ForestRow& row) { return !row.limits.empty(); };
  if (std::ranges::any_of(forest.panels, [&](const ForestPanel& panel) {
        return std::ranges::any_of(panel.rows, has_limits);
      }))
    entries.push_back({forest.limits_name, kReferenceColour, kLimitDash, 0});
  const Legend legend(is_whole ? entries : std::vector<SeriesStyle>(), width);
  caption = forest.caption + key + legend.key();
  const Heading heading = is_whole ? Heading(forest.style, forest.title, caption, width) : Heading();
  const double bottom = is_whole ? heading.caption_height() + kForestGap + legend.height() : 0;
  const auto below = [&](std::size_t p) {
    return kForestTicks + kLabelLine * static_cast<double>(axis_labels[p].lines.front().size());
  };
  height = bottom + kForestTop + heading.title_height();
  for (std::size_t p = 0; p < forest.panels.size(); ++p)
    height += below(p) + row_height * panel_rows[p] + (p == 0 ? 0 : kForestGap);

  double top = height - heading.title_height() - kForestTop;
  std::size_t name = 0;
  for (std::size_t p = 0; p < forest.panels.size(); ++p) {
    double rows = panel_rows[p];
    PanelPlace place{left, top - row_height * rows, panel_width, row_height * rows};
    place.own_x = forest_axis(forest.panels[p]);
    place.own_y = Axis{};
    place.own_y->high = rows;
    keep_labels_apart(*place.own_x, panel_width);
    std::vector<ForestMark>& own = marks.emplace_back();
    for (const ForestLabel& label : labels[p]) {
      const std::vector<std::string>& lines = fitted.lines[name++];
      const double middle = rows - rows_of(lines) / 2;
      for (std::size_t line = 0; line < lines.size(); ++line)
        place.marks.push_back({TextRole::row, lines[line], kPageMargin + (label.is_point ? kForestIndent : 0),
                               place.bottom + row_height * (rows - static_cast<double>(line) - 0.5), false, 0,
                               fitted.size});
      rows -= rows_of(lines);
      if (label.row == nullptr) continue;
      const ForestRow& row = *label.row;
      const Axis& axis = *place.own_x;
      const auto within = [&](double value) { return value >= axis.low && value <= axis.high; };
      ForestMark mark{middle, {}, {}, {}, false, false, {}, verdict_style(row.verdict)};
      if (row.mean && within(*row.mean)) mark.mean = row.mean;
      if (row.low && row.high) {
        mark.leaves_low = *row.low < axis.low;
        mark.leaves_high = *row.high > axis.high;
        mark.low = std::clamp(*row.low, axis.low, axis.high);
        mark.high = std::clamp(*row.high, axis.low, axis.high);
      }
      for (const double limit : row.limits)
        if (within(limit)) mark.limits.push_back(limit);
      own.push_back(std::move(mark));
    }
    place_centred(
        place.marks, TextRole::x_label, axis_labels[p].lines.front(),
        std::min(left + panel_width / 2,
                 width - kPageMargin - widest(axis_labels[p].lines.front(), axis_labels[p].size) / 2),
        place.bottom - kForestTicks -
            kLabelLine * static_cast<double>(axis_labels[p].lines.front().size()) / 2,
        false, axis_labels[p].size);
    if (p == 0) {
      heading.place(place.marks, width, height);
      legend.place(place.marks, (is_whole ? heading.caption_height() : 0) + 3);
    }
    top = place.bottom - below(p) - kForestGap;
    panels.push_back(std::move(place));
  }
}

namespace {

using ForestJson = nlohmann::ordered_json;

ForestJson forest_json(const Forest& forest, const ForestLayout& layout, const std::string& caption) {
  ForestJson panels = ForestJson::array(), all = ForestJson::array(), styles = ForestJson::object();
  for (const ForestPanel& panel : forest.panels) {
    ForestJson rows = ForestJson::array();
    for (const ForestRow& row : panel.rows)
      rows.push_back({{"claim", row.claim},
                      {"point", row.point},
                      {"verdict", row.verdict},
                      {"mean", number_json(row.mean)},
                      {"low", number_json(row.low)},
                      {"high", number_json(row.high)},
                      {"limits", row.limits}});
    panels.push_back({{"label", panel.label},
                      {"log", panel.is_log},
                      {"no_effect", panel.no_effect},
                      {"rows", std::move(rows)}});
  }
  for (const std::vector<ForestMark>& own : layout.marks) {
    ForestJson marks = ForestJson::array();
    for (const ForestMark& mark : own) {
      marks.push_back({{"place", mark.place},
                       {"mean", number_json(mark.mean)},
                       {"low", number_json(mark.low)},
                       {"high", number_json(mark.high)},
                       {"leaves_low", mark.leaves_low},
                       {"leaves_high", mark.leaves_high},
                       {"limits", mark.limits},
                       {"verdict", mark.look.name}});
      styles[mark.look.name] = style_json(mark.look);
    }
    all.push_back(std::move(marks));
  }
  return {{"kind", "forest"},
          {"id", forest.id},
          {"title", forest.title},
          {"caption", caption},
          {"panels", std::move(panels)},
          {"marks", std::move(all)},
          {"styles", std::move(styles)},
          {"layout", layout_json(layout)}};
}

}  // namespace

nlohmann::ordered_json data_json(const Forest& forest) {
  const ForestLayout layout(forest);
  return forest_json(forest, layout, layout.caption);
}

nlohmann::ordered_json page_json(const Forest& forest) {
  return forest_json(forest, ForestLayout(forest, ForestLayout::Texts::axes), forest.caption);
}

}  // namespace moelab
