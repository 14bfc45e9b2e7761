#include "plots/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// Advance widths of the letters from space to tilde in thousandths of the size.
constexpr std::array<int, 95> kAdvance = {
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838};

bool begins_letter(char byte) {
  return (byte & 0xC0) != 0x80;
}

double letter_width(char byte) {
  if (byte >= ' ' && byte <= '~') return kAdvance[static_cast<std::size_t>(byte - ' ')];
  return begins_letter(byte) ? 1000 : 0;
}

/// The first part of `word` that is not longer than `width`, at least one letter.
std::size_t fitting_bytes(const std::string& word, double font_size, double width) {
  std::size_t bytes = 0;
  double used = 0;
  while (bytes < word.size()) {
    used += letter_width(word[bytes]) * font_size / 1000;
    if (used > width && bytes > 0 && begins_letter(word[bytes])) break;
    ++bytes;
  }
  return bytes;
}

}  // namespace

double text_width(const std::string& text, double font_size) {
  double thousandths = 0;
  for (const char byte : visible_line(text)) thousandths += letter_width(byte);
  return thousandths * font_size / 1000;
}

double widest(const std::vector<std::string>& texts, double font_size) {
  double most = 0;
  for (const std::string& text : texts) most = std::max(most, text_width(text, font_size));
  return most;
}

std::vector<std::string> wrapped(const std::string& text, double font_size, double width) {
  std::vector<std::string> lines;
  std::string line;
  const std::string all = visible_line(text);
  std::size_t start = 0;
  while (start < all.size()) {
    const std::size_t end = std::min(all.find(' ', start), all.size());
    std::string word = all.substr(start, end - start);
    start = end + 1;
    if (!line.empty() && text_width(line + " " + word, font_size) > width) {
      lines.push_back(line);
      line.clear();
    }
    while (line.empty() && text_width(word, font_size) > width) {
      const std::size_t bytes = fitting_bytes(word, font_size, width);
      if (bytes >= word.size()) break;
      lines.push_back(word.substr(0, bytes));
      word.erase(0, bytes);
    }
    if (!word.empty()) line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

std::string fitted_line(const std::string& text, double font_size, double width) {
  if (text_width(text, font_size) <= width) return text;
  const std::vector<std::string> lines = wrapped(text, font_size, width - text_width("…", font_size));
  return lines.empty() ? "" : lines.front() + "…";
}

std::vector<std::string> fitted_lines(const std::string& text, double font_size, double width,
                                      std::size_t most) {
  std::vector<std::string> lines = wrapped(text, font_size, width);
  if (lines.size() <= most) return lines;
  lines.resize(most);
  lines.back() = fitted_line(lines.back() + " …", font_size, width);
  return lines;
}

SeriesStyle style_of(std::size_t index, std::string name) {
  return {std::move(name), kColours[index % kColours.size()], kDashes[index % kDashes.size()],
          kMarkers[index % kMarkers.size()]};
}

namespace {

/// Room between the outermost data and the frame, as a share of the axis.
constexpr double kAxisMargin = 0.05;

/// Letters of a number that a tick may stand at: 1048576, but not what was searched or computed.
constexpr std::size_t kLongestLabel = 7;
/// And where powers of ten could be short: 100000.
constexpr std::size_t kLongestPlain = 6;

double forward(double value, bool logarithmic) {
  return logarithmic ? std::log10(value) : value;
}
double backward(double value, bool logarithmic) {
  return logarithmic ? std::pow(10, value) : value;
}

std::string power_of_ten(int exponent) {
  static const std::vector<std::string> digits = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char digit : std::to_string(std::abs(exponent)))
    text += digits[static_cast<std::size_t>(digit - '0')];
  return text;
}

Axis range_of(const std::vector<double>& values, bool logarithmic) {
  Axis axis;
  axis.logarithmic = logarithmic;
  std::vector<double> shown;
  for (const double value : values)
    if (std::isfinite(value) && (!logarithmic || value > 0)) shown.push_back(forward(value, logarithmic));
  if (shown.empty()) shown = {0, 1};
  auto [low, high] = std::minmax(
      {*std::min_element(shown.begin(), shown.end()), *std::max_element(shown.begin(), shown.end())});
  // A single value still needs an interval around it.
  const double least = logarithmic ? 0.3 : std::max(1e-12, 0.1 * std::abs(high));
  const double extra = std::max(kAxisMargin * (high - low), (least - (high - low)) / 2);
  axis.low = backward(low - extra, logarithmic);
  if (logarithmic) axis.low = std::max(axis.low, std::numeric_limits<double>::min());
  axis.high = backward(high + extra, logarithmic);
  return axis;
}

/// Decades, or 1-2-5 steps where there are few of them; unlabelled ticks in between.
void add_log_ticks(Axis& axis) {
  const double low = std::log10(axis.low), high = std::log10(axis.high);
  const int labelled_every = static_cast<int>(std::ceil((high - low) / 7));
  for (int exponent = static_cast<int>(std::floor(low)); exponent <= static_cast<int>(std::ceil(high));
       ++exponent)
    for (int digit = 1; digit <= 9; ++digit) {
      const double place = digit * std::pow(10, exponent);
      if (place < axis.low || place > axis.high) continue;
      const bool labelled = high - low < 0.7 ? digit <= 6 || digit == 8
                            : high - low < 2 ? digit == 1 || digit == 2 || digit == 5
                                             : digit == 1 && exponent % labelled_every == 0;
      if (labelled || high - low < 5) axis.ticks.emplace_back(place, labelled ? tick_label(place, true) : "");
    }
}

/// Multiples of 1, 2 or 5 times a power of ten, four to eight of them.
void add_linear_ticks(Axis& axis) {
  const double range = axis.high - axis.low;
  const double power = std::pow(10, std::floor(std::log10(range / 4)));
  double step = power;
  for (const double digit : {2.0, 5.0})
    if (range / (digit * power) >= 4) step = digit * power;
  // An end may be a tick, to rounding.
  for (double count = std::ceil(axis.low / step - 1e-9); count * step <= axis.high + 1e-9 * step; ++count)
    axis.ticks.emplace_back(count * step, tick_label(count * step + 0.0, false));  // + 0: not −0
}

bool is_power_label(const std::string& label) {
  return label.starts_with("10") && label.size() > 2 && (label[2] < '0' || label[2] > '9') && label[2] != '.';
}

/// "2×10⁵", or the power alone.
std::string scientific_label(double value) {
  const double exponent = std::floor(std::log10(value) + 1e-9);
  const double digits = value / std::pow(10, exponent);
  const std::string power = power_of_ten(static_cast<int>(exponent));
  return std::abs(digits - 1) < 1e-9 ? power : fmt::format("{:.4g}×{}", digits, power);
}

/// Labels of a logarithmic axis that are in part powers of ten, in part not, as numbers where these are
/// short, else as products with powers.
void use_one_form(Axis& axis) {
  bool any_power = false, any_number = false, is_short = true;
  for (const auto& [place, label] : axis.ticks) {
    if (label.empty()) continue;
    (is_power_label(label) ? any_power : any_number) = true;
    is_short = is_short && place >= 0.999e-4 && fmt::format("{:.7g}", place).size() <= kLongestPlain;
  }
  if (!any_power || !any_number) return;
  for (auto& [place, label] : axis.ticks)
    if (!label.empty()) label = is_short ? fmt::format("{:.7g}", place) : scientific_label(place);
}

}  // namespace

std::string tick_label(double value, bool logarithmic) {
  const double exponent = logarithmic && value > 0 ? std::log10(value) : 0;
  const double nearest = std::round(exponent);
  if (std::abs(exponent) >= 4 && std::abs(exponent - nearest) < 1e-9)
    return power_of_ten(static_cast<int>(nearest));
  if (value != 0 && (std::abs(value) >= 1e7 || std::abs(value) < 1e-4)) return fmt::format("{:.3g}", value);
  return fmt::format("{:.7g}", value);
}

Axis fit_axis(const std::vector<double>& values, bool logarithmic) {
  Axis axis = range_of(values, logarithmic);
  if (logarithmic)
    add_log_ticks(axis);
  else
    add_linear_ticks(axis);
  if (logarithmic) use_one_form(axis);
  return axis;
}

Axis fit_axis_at(std::vector<double> places, bool logarithmic) {
  const auto is_long = [&](double place) { return tick_label(place, logarithmic).size() > kLongestLabel; };
  if (std::any_of(places.begin(), places.end(), is_long)) return fit_axis(places, logarithmic);
  Axis axis = range_of(places, logarithmic);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  for (const double place : places)
    if (!logarithmic || place > 0) axis.ticks.emplace_back(place, tick_label(place, logarithmic));
  if (logarithmic) use_one_form(axis);
  return axis;
}

Axis axis_between(double low, double high) {
  Axis axis;
  axis.low = low;
  axis.high = high;
  add_linear_ticks(axis);
  return axis;
}

void keep_labels_apart(Axis& axis, double width) {
  const double low = forward(axis.low, axis.logarithmic), high = forward(axis.high, axis.logarithmic);
  struct Label {
    std::size_t tick;
    double middle, half;
  };
  std::vector<Label> labels;
  for (std::size_t i = 0; i < axis.ticks.size(); ++i) {
    const auto& [place, label] = axis.ticks[i];
    if (label.empty()) continue;
    labels.push_back({i, (forward(place, axis.logarithmic) - low) / (high - low) * width,
                      0.5 * text_width(label, kTickFontSize) + 2});
  }
  if (labels.empty()) return;
  const auto run_together = [](const Label& left, const Label& right) {
    return left.middle + left.half > right.middle - right.half;
  };
  // All from the last one back that are `every` apart.
  const auto fits = [&](std::size_t every) {
    for (std::size_t i = labels.size() - 1; i >= every; i -= every)
      if (run_together(labels[i - every], labels[i])) return false;
    return true;
  };
  bool is_even = true;
  const double step = labels.size() > 1 ? labels[1].middle - labels[0].middle : 0;
  for (std::size_t i = 1; i < labels.size(); ++i)
    is_even = is_even && std::abs(labels[i].middle - labels[i - 1].middle - step) < 0.01 * step;
  std::size_t every = 1;
  while (is_even && !fits(every)) ++every;
  // Of others both ends, and between them what has room beside the one to its right.
  const Label* right = &labels.back();
  for (std::size_t back = 1; back < labels.size(); ++back) {
    const Label& label = labels[labels.size() - 1 - back];
    const bool is_first = back + 1 == labels.size();
    const bool has_room =
        !run_together(label, *right) && (is_even || is_first || !run_together(labels[0], label));
    if (back % every == 0 && has_room)
      right = &label;
    else
      axis.ticks[label.tick].second.clear();
  }
}

void thin_upright_labels(Axis& axis, double room) {
  const auto every = static_cast<std::size_t>(std::ceil((kTickFontSize + 1) / room));
  for (std::size_t i = 0; i < axis.ticks.size(); ++i)
    if (i % every != 0) axis.ticks[i].second.clear();
}

Heading::Heading(const std::string& title_text, const std::string& caption_text, double page_width)
    : title(wrapped(title_text, kFontSize + 1, page_width - 2 * kPageMargin)),
      caption(wrapped(caption_text, kSmallFontSize, page_width - 2 * kPageMargin)) {}

void Heading::place(PageMarks& marks, double page_width, double page_height) const {
  const auto add = [&](TextRole role, const std::vector<std::string>& lines, double top, double step,
                       double size) {
    for (std::size_t i = 0; i < lines.size(); ++i)
      marks.push_back(
          {role, lines[i], page_width / 2, top - step * (static_cast<double>(i) + 0.5), true, 0, size});
  };
  add(TextRole::title, title, page_height - 2, kTitleLine, kFontSize + 1);
  add(TextRole::caption, caption, caption_height(), kCaptionLine, kSmallFontSize);
}

void place_centred(PageMarks& marks, TextRole role, const std::vector<std::string>& lines, double x, double y,
                   bool rotated) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double offset = kLabelLine * (static_cast<double>(i) - (static_cast<double>(lines.size()) - 1) / 2);
    marks.push_back(
        {role, lines[i], rotated ? x + offset : x, rotated ? y : y - offset, true, rotated ? 90 : 0});
  }
}

namespace {

constexpr double kSampleGap = 4, kEntryGap = 12, kLegendLine = 10;
constexpr std::size_t kMostColumns = 4;

}  // namespace

Legend::Legend(std::vector<SeriesStyle> entries, double page_width)
    : entries_(std::move(entries)), page_width_(page_width) {
  if (entries_.empty()) return;
  const double room = page_width - 2 * kPageMargin - kSample - kSampleGap;
  double longest = 0;
  for (const SeriesStyle& entry : entries_) {
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

void Legend::place(PageMarks& marks, double bottom) const {
  const double width = static_cast<double>(columns_) * (entry_width_ + kEntryGap) - kEntryGap;
  double top = bottom + height_;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (i > 0 && i % columns_ == 0) top -= kLegendLine * static_cast<double>(row_lines_[i / columns_ - 1]);
    const double left =
        (page_width_ - width) / 2 + static_cast<double>(i % columns_) * (entry_width_ + kEntryGap);
    PageMark sample{TextRole::legend, "", left, top - kLegendLine / 2};
    sample.sample = entries_[i];
    marks.push_back(std::move(sample));
    for (std::size_t line = 0; line < names_[i].size(); ++line)
      marks.push_back({TextRole::legend, names_[i][line], left + kSample + kSampleGap,
                       top - kLegendLine * (static_cast<double>(line) + 0.5), false});
  }
}

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 9> kRoleNames = {"title",   "caption", "panel",       "row",   "slope",
                                                   "x_label", "y_label", "value_label", "legend"};

/// A length to a hundredth of a point, which no eye can tell from the exact one.
double rounded_length(double points) {
  return std::round(points * 100) / 100;
}

Json axis_json(const Axis& axis) {
  Json ticks = Json::array();
  for (const auto& [place, label] : axis.ticks) ticks.push_back(Json::array({place, label}));
  return {{"log", axis.logarithmic},
          {"low", axis.low},
          {"high", axis.high},
          {"upright", axis.upright},
          {"ticks", std::move(ticks)}};
}

Json mark_json(const PageMark& mark) {
  Json json = {{"role", kRoleNames[static_cast<std::size_t>(mark.role)]},
               {"text", mark.text},
               {"x", rounded_length(mark.x)},
               {"y", rounded_length(mark.y)},
               {"centred", mark.is_centred},
               {"rotation", mark.rotation},
               {"size", mark.size},
               {"colour", mark.colour}};
  if (mark.sample) json["sample"] = style_json(*mark.sample);
  return json;
}

/// matplotlib's name of one of gnuplot's markers, and whether it is filled.
std::pair<std::string, bool> marker_of(int marker) {
  if (marker == kCross) return {"x", true};
  static const std::array<const char*, 6> names = {"o", "s", "^", "v", "D", "p"};
  const auto place =
      static_cast<std::size_t>(std::find(kMarkers.begin(), kMarkers.end(), marker) - kMarkers.begin());
  return {names[place % names.size()], place < names.size()};
}

/// "(8,4)" as numbers; a solid line has none.
Json dash_json(const std::string& dash) {
  if (dash.empty()) return nullptr;
  Json lengths = Json::array();
  if (dash.front() != '(') return lengths;
  std::istringstream parts(dash.substr(1));
  for (double length = 0; parts >> length; parts.get()) lengths.push_back(length);
  return lengths;
}

}  // namespace

nlohmann::ordered_json style_json(const SeriesStyle& style) {
  const auto [marker, is_filled] = marker_of(style.marker);
  return {{"colour", style.colour},
          {"dash", dash_json(style.dash)},
          {"marker", style.marker == 0 ? Json() : Json(marker)},
          {"filled", is_filled}};
}

nlohmann::ordered_json layout_json(const PageLayout& layout) {
  Json panels = Json::array();
  for (const PanelPlace& panel : layout.panels) {
    Json texts = Json::array();
    for (const PageMark& mark : panel.marks) texts.push_back(mark_json(mark));
    panels.push_back({{"left", rounded_length(panel.left)},
                      {"bottom", rounded_length(panel.bottom)},
                      {"width", rounded_length(panel.width)},
                      {"height", rounded_length(panel.height)},
                      {"x_labels", panel.has_x_labels},
                      {"y_labels", panel.has_y_labels},
                      {"texts", std::move(texts)}});
  }
  return {{"sample", kSample},
          {"width", rounded_length(layout.width)},
          {"height", rounded_length(layout.height)},
          {"x", axis_json(layout.x)},
          {"y", axis_json(layout.y)},
          {"panels", std::move(panels)}};
}

nlohmann::ordered_json number_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

nlohmann::ordered_json pair_json(const std::optional<std::pair<double, double>>& pair) {
  return pair ? Json::array({pair->first, pair->second}) : Json();
}

}  // namespace moelab
