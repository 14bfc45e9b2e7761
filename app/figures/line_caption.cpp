#include "app/figures/line_caption.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace moelab {
namespace {

/// Of an axis of metrics that share no words.
constexpr const char* kNoLabel = "value";

std::string range_text(const std::string& label, const std::pair<double, double>& range) {
  return fmt::format(" Shown: {} from {:g} to {:g}.", label, range.first, range.second);
}

/// Whether a point lies within both ranges of the axes.
bool is_shown(const FigurePoint& point, const Figure& figure) {
  return point.mean && is_within(point.x, figure.x_range) && is_within(*point.mean, figure.y_range);
}

/// " Wholly outside: …", the lines of which no mean lies within the range of y, or nothing without any.
std::string outside_text(const std::vector<NamedLine>& lines, const Figure& figure) {
  std::vector<std::string> names;
  for (const NamedLine& line : lines) {
    bool has_mean = false, is_seen = false;
    for (const FigurePoint& point : line.series.points) {
      has_mean = has_mean || (point.mean && is_within(point.x, figure.x_range));
      is_seen = is_seen || is_shown(point, figure);
    }
    if (has_mean && !is_seen) names.push_back(full_name(line));
  }
  return names.empty() ? "" : fmt::format(" Wholly outside: {}.", fmt::join(names, "; "));
}

/// A beginning of a label without what makes no sense at its end: signs, an open parenthesis.
std::string whole_label(std::string label) {
  if (std::count(label.begin(), label.end(), '(') > std::count(label.begin(), label.end(), ')'))
    label.resize(label.rfind('('));
  for (bool is_whole = false; !is_whole;) {
    is_whole = true;
    for (const std::string sign : {" ", ",", "÷", "×", "−", "+"}) {
      if (!label.ends_with(sign)) continue;
      label.resize(label.size() - sign.size());
      is_whole = false;
    }
  }
  return label;
}

}  // namespace

std::string common_label(const std::vector<PlottedValue>& values, const DisplayNames& names) {
  std::string shared = names.axis(values.front().text());
  for (const PlottedValue& value : values) {
    const std::string label = names.axis(value.text()) + " ";
    const auto is_end = [](char letter) { return letter == ' ' || letter == ','; };
    std::size_t end = 0;
    for (std::size_t i = 0; i <= shared.size() && i < label.size(); ++i) {
      const bool ends_word = is_end(label[i]) && (i == shared.size() || is_end(shared[i]));
      if (ends_word) end = i;
      if (i == shared.size() || label[i] != shared[i]) break;
    }
    shared.resize(end);
  }
  shared = whole_label(shared);
  return shared.find(' ') == std::string::npos ? kNoLabel : shared;
}

bool have_common_label(const std::vector<PlottedValue>& values, const DisplayNames& names) {
  return common_label(values, names) != kNoLabel;
}

std::string listed_metrics(const std::vector<PlottedValue>& values, const DisplayNames& names) {
  const std::string shared = common_label(values, names);
  if (shared != kNoLabel) return shared;
  if (values.size() > 2) return fmt::format("{} metrics", values.size());
  return names.axis(values.front().text()) + " and " + names.axis(values.back().text());
}

std::string not_above_zero_text(const std::vector<NamedLine>& lines) {
  std::vector<std::string> names;
  for (const NamedLine& line : lines) {
    if (std::any_of(line.series.points.begin(), line.series.points.end(),
                    [](const FigurePoint& point) { return point.mean && *point.mean <= 0; }))
      names.push_back(full_name(line));
  }
  if (names.empty()) return "";
  return fmt::format(" Not above 0, left out on the logarithmic axis: {}.", fmt::join(names, "; "));
}

std::string ranges_text(const std::vector<NamedLine>& lines, const Figure& figure) {
  std::string text;
  if (figure.x_range) text += range_text(figure.x_label, *figure.x_range);
  if (figure.y_range) text += range_text(figure.y_label, *figure.y_range);
  if (text.empty()) return text;
  const bool shows_any = std::any_of(lines.begin(), lines.end(), [&](const NamedLine& line) {
    return std::any_of(line.series.points.begin(), line.series.points.end(),
                       [&](const FigurePoint& point) { return is_shown(point, figure); });
  });
  if (!shows_any) return text + " Nothing lies within.";
  return figure.y_range ? text + outside_text(lines, figure) : text;
}

std::string lines_caption(const std::string& title, const FigureSource& source,
                          const std::vector<LineGroup>& groups, const std::vector<ShownValue>& values) {
  std::set<int> seeds;
  std::map<std::string, int> left_out;
  for (const LineGroup& group : groups)
    for (const ResultRow* row : group.rows) {
      seeds.insert(row->seed);
      if (row->state != "done") ++left_out[row->state];
    }
  std::string text = scenario_sentences(title, source);
  text += seeds.size() > 1 ? statistic_text(values, seeds.size(), source.table.is_decided)
                           : "One seed: no interval.";
  std::vector<std::string> counts;
  for (const auto& [state, count] : left_out) counts.push_back(fmt::format("{} {}", count, state));
  if (!counts.empty()) text += fmt::format(" Cells left out: {}.", fmt::join(counts, ", "));
  return text;
}

}  // namespace moelab
