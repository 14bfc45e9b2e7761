#include "plots/axis.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "plots/page.h"

namespace moelab {
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

std::string axis_script(char name, const Axis& axis, bool with_labels) {
  std::string text = axis.logarithmic ? fmt::format("set logscale {}\n", name) : "";
  text += fmt::format("set {0}range [{1:.8g}:{2:.8g}]\nset {0}tics (", name, axis.low, axis.high);
  for (std::size_t i = 0; i < axis.ticks.size(); ++i) {
    const auto& [place, label] = axis.ticks[i];
    // The last number is the level: 1 for a minor tick.
    text += fmt::format("{}{} {:.8g} {}", i ? ", " : "", quoted(with_labels ? label : ""), place,
                        label.empty() ? 1 : 0);
  }
  return text + fmt::format(") font ',{}'{}\n", kTickFontSize, axis.upright ? " rotate by 90 right" : "");
}

}  // namespace moelab
