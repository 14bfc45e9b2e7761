#include "plots/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "plots/texts.h"
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

/// The width of the letter that begins at `at` in thousandths of the size; 0 for bytes that continue one.
double letter_width(const std::string& text, std::size_t at) {
  constexpr double kSmall = 530, kGreek = 840, kEm = 1000;
  const char byte = text[at];
  if (byte >= ' ' && byte <= '~') return kAdvance[static_cast<std::size_t>(byte - ' ')];
  if (!begins_character(byte)) return 0;
  const std::string_view pair = std::string_view(text).substr(at, 2),
                         three = std::string_view(text).substr(at, 3);
  if (pair == "\u00B9" || pair == "\u00B2" || pair == "\u00B3" || three == "\u141F") return kSmall;
  // U+2070 to U+209F, and the phonetic extensions.
  const auto last = static_cast<unsigned char>(three.size() == 3 ? three[2] : 0);
  if ((three.starts_with("\xE2\x81") && last >= 0xB0) || (three.starts_with("\xE2\x82") && last < 0xA0) ||
      three.starts_with("\xE1\xB4") || three.starts_with("\xE1\xB5") || pair.starts_with("\xCA"))
    return kSmall;
  return pair.starts_with("\xCE") || pair.starts_with("\xCF") || three == "\u2212" ? kGreek : kEm;
}

/// The first part of `word` that is not longer than `width`: up to the last letter after which a word may
/// break, else at least one letter. `is_broken` says whether a word is broken inside.
std::size_t fitting_bytes(const std::string& word, double font_size, double width, bool& is_broken) {
  std::size_t bytes = 0, soft = 0;
  double used = 0;
  while (bytes < word.size()) {
    used += letter_width(word, bytes) * font_size / 1000;
    if (used > width && bytes > 0 && begins_character(word[bytes])) break;
    if (std::string_view("_/-.,").find(word[bytes]) != std::string_view::npos) soft = bytes + 1;
    ++bytes;
  }
  if (bytes == word.size()) return bytes;
  is_broken = is_broken || soft == 0;
  return soft > 0 ? soft : bytes;
}

std::vector<std::string> lines_of(const std::string& text, double font_size, double width, bool& is_broken) {
  const std::string all = fixed_spaces(visible_line(math_text(text)));
  std::vector<std::string> lines;
  std::string line;
  // Words that belong together stay together while they fit on a line.
  const auto add = [&](const std::string& word) {
    if (!line.empty() && text_width(line + " " + word, font_size) <= width) {
      line += " " + word;
      return;
    }
    if (!line.empty()) lines.push_back(line);
    line = word;
    while (text_width(line, font_size) > width) {
      const std::size_t bytes = fitting_bytes(line, font_size, width, is_broken);
      if (bytes >= line.size()) break;
      lines.push_back(line.substr(0, bytes));
      line.erase(0, bytes);
    }
  };
  for (const std::string& group : split_text(all, " ")) {
    if (group.empty()) continue;
    const std::string joined = with_plain_spaces(group);
    if (text_width(joined, font_size) <= width)
      add(joined);
    else
      for (const std::string& word : split_text(joined, " ")) add(word);
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

/// The names without the words that all share at their beginning and end, as long as each keeps a word.
std::vector<std::string> without_shared_words(const std::vector<std::string>& names, std::string& left_out) {
  std::vector<std::vector<std::string>> words;
  for (const std::string& name : names) words.push_back(split_text(name, " "));
  if (names.size() < 2) return names;
  std::vector<std::string> shared;
  for (const bool at_end : {false, true}) {
    const auto end_of = [&](const std::vector<std::string>& own) {
      return at_end ? own.back() : own.front();
    };
    while (std::all_of(words.begin(), words.end(), [&](const std::vector<std::string>& own) {
      return own.size() > 1 && end_of(own) == end_of(words.front());
    })) {
      shared.push_back(end_of(words.front()));
      for (std::vector<std::string>& own : words) own.erase(at_end ? own.end() - 1 : own.begin());
    }
    if (at_end) break;
    left_out = fmt::format("{}", fmt::join(shared, " "));
    shared.clear();
  }
  std::reverse(shared.begin(), shared.end());
  if (!shared.empty()) left_out += fmt::format("{}{}", left_out.empty() ? "" : " … ", fmt::join(shared, " "));
  std::vector<std::string> shortened;
  for (const std::vector<std::string>& own : words)
    shortened.push_back(fmt::format("{}", fmt::join(own, " ")));
  return shortened;
}

}  // namespace

double text_width(const std::string& text, double font_size) {
  double thousandths = 0;
  const std::string line = visible_line(text);
  for (std::size_t at = 0; at < line.size(); ++at) thousandths += letter_width(line, at);
  return thousandths * font_size / 1000;
}

double widest(const std::vector<std::string>& texts, double font_size) {
  double most = 0;
  for (const std::string& text : texts) most = std::max(most, text_width(text, font_size));
  return most;
}

std::vector<std::string> wrapped(const std::string& text, double font_size, double width) {
  bool is_broken = false;
  return lines_of(text, font_size, width, is_broken);
}

FittedNames fitted_names(const std::vector<std::string>& names, double font_size, double width,
                         std::size_t most_lines, const std::string& letter) {
  FittedNames fitted;
  const auto fits = [&](const std::vector<std::string>& shown, double size) {
    fitted.lines.clear();
    fitted.size = size;
    for (const std::string& name : shown) {
      bool is_broken = false;
      fitted.lines.push_back(lines_of(name, size, width, is_broken));
      if (is_broken || fitted.lines.back().size() > most_lines) return false;
    }
    return true;
  };
  if (fits(names, font_size)) return fitted;
  std::string left_out;
  const std::vector<std::string> shortened = without_shared_words(names, left_out);
  for (double size = font_size; size >= kLeastFontSize; size -= 0.5)
    if (fits(shortened, size)) {
      if (!left_out.empty()) fitted.key = fmt::format(" Names leave out “{}”.", left_out);
      return fitted;
    }
  std::vector<std::string> letters, key;
  for (std::size_t i = 0; i < names.size(); ++i) {
    letters.push_back(names.size() > 1 ? fmt::format("{}{}", letter, i + 1) : letter);
    key.push_back(letters.back() + ": " + names[i]);
  }
  // A letter stays on one line, however narrow the place is.
  fitted.lines.clear();
  fitted.size = font_size;
  for (const std::string& name : letters) fitted.lines.push_back({name});
  fitted.has_letters = true;
  fitted.key = fmt::format(" {}.", fmt::join(key, "; "));
  return fitted;
}

namespace {

/// Red, green and blue of six hexadecimal digits, from 0 to 1.
std::array<double, 3> parts_of(const std::string& colour) {
  const unsigned long all = std::stoul(colour, nullptr, 16);
  std::array<double, 3> parts{};
  for (std::size_t i = 0; i < 3; ++i) parts[i] = static_cast<double>((all >> (16 - 8 * i)) & 0xFF) / 255;
  return parts;
}

double luminance(const std::string& colour) {
  constexpr std::array<double, 3> kWeights = {0.2126, 0.7152, 0.0722};
  const std::array<double, 3> parts = parts_of(colour);
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i)
    sum += kWeights[i] * (parts[i] <= 0.04045 ? parts[i] / 12.92 : std::pow((parts[i] + 0.055) / 1.055, 2.4));
  return sum;
}

}  // namespace

double contrast(const std::string& colour, const std::string& other) {
  const double own = luminance(colour), another = luminance(other);
  return (std::max(own, another) + 0.05) / (std::min(own, another) + 0.05);
}

std::string readable_colour(const std::string& colour) {
  std::string readable = colour;
  for (double share = 1; contrast(readable, "FFFFFF") < kLeastContrast; share *= 0.95) {
    readable.clear();
    for (const double part : parts_of(colour))
      readable += fmt::format("{:02X}", static_cast<int>(std::lround(255 * share * part)));
  }
  return readable;
}

SeriesStyle style_of(std::size_t index, std::string name) {
  return {std::move(name), kColours[index % kColours.size()], kDashes[index % kDashes.size()],
          kMarkers[index % kMarkers.size()]};
}

std::string power_of_ten(int exponent) {
  static const std::vector<std::string> digits = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char digit : std::to_string(std::abs(exponent)))
    text += digits[static_cast<std::size_t>(digit - '0')];
  return text;
}

namespace {

/// Room between the outermost data and the frame, as a share of the axis.
constexpr double kAxisMargin = 0.05;
/// The least length of an axis, as a share of its values: what is as good as equal does not look different.
constexpr double kLeastSpan = 0.1;

/// Letters of a number at which a power of ten would be no shorter: 100000.
constexpr std::size_t kLongestPlain = 6;
/// Numbers between these are written without an exponent.
constexpr double kLeastPlain = 1e-4, kMostPlain = 1e7;

/// Powers of two are written as fractions from 1/16 on, down to 1/65536.
constexpr double kLeastDecimalPower = 0.125, kLeastFraction = 1.0 / 65536;

double forward(double value, bool logarithmic) {
  return logarithmic ? std::log10(value) : value;
}
double backward(double value, bool logarithmic) {
  return logarithmic ? std::pow(10, value) : value;
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
  const double least =
      logarithmic ? std::log10(1 + kLeastSpan) : std::max(1e-12, kLeastSpan * std::abs(high));
  const bool is_zero = !logarithmic && low == 0 && high == 0;
  const double extra = is_zero ? 1 : std::max(kAxisMargin * (high - low), (least - (high - low)) / 2);
  axis.low = backward(low - extra, logarithmic);
  if (logarithmic) axis.low = std::max(axis.low, std::numeric_limits<double>::min());
  axis.high = backward(high + extra, logarithmic);
  return axis;
}

/// The largest 1-2-5 step that divides a range into at least four parts, and is at least `least`.
double round_step(double range, double least) {
  const double power = std::pow(10, std::floor(std::log10(range / 4)));
  double step = power;
  for (const double digit : {2.0, 5.0})
    if (range / (digit * power) >= 4) step = digit * power;
  return std::max(step, least);
}

/// Multiples of a step of 1, 2 or 5 times a power of ten, four to eight of them. None on an axis whose length
/// is infinite.
void add_linear_ticks(Axis& axis, double least_step = 0) {
  const double step = round_step(axis.high - axis.low, least_step);
  if (!std::isfinite(step)) return;
  const bool is_plain = step >= kLeastPlain && std::max(std::abs(axis.low), std::abs(axis.high)) < kMostPlain;
  // All labels have the decimals of the step.
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  // A range has at most ten steps. In a range of a few roundings, two multiples may be the same number.
  constexpr int kMostTicks = 11;
  const double first = std::ceil(axis.low / step - 1e-9);
  for (int i = 0; i < kMostTicks; ++i) {
    const double place = (first + i) * step;
    // An end may be a tick, to rounding.
    if (!(place <= axis.high + 1e-9 * step)) break;
    const bool is_known = !axis.ticks.empty() && place <= axis.ticks.back().first;
    if (is_known || place < axis.low - step / 2) continue;
    axis.ticks.emplace_back(place, is_plain ? signed_text(fmt::format("{:.{}f}", place, decimals))
                                            : tick_label(place + 0.0, false));  // + 0: not −0
  }
}

/// Decades, or 1-2-5 steps where there are few of them; unlabelled ticks in between. An axis on which fewer
/// than two of them lie has round steps.
void add_log_ticks(Axis& axis) {
  const double low = std::log10(axis.low), high = std::log10(axis.high);
  const int labelled_every = static_cast<int>(std::ceil((high - low) / 7));
  std::size_t labels = 0;
  for (int exponent = static_cast<int>(std::floor(low)); exponent <= static_cast<int>(std::ceil(high));
       ++exponent)
    for (int digit = 1; digit <= 9; ++digit) {
      const double place = digit * std::pow(10, exponent);
      if (place < axis.low || place > axis.high) continue;
      const bool labelled = high - low < 2 ? digit == 1 || digit == 2 || digit == 5
                                           : digit == 1 && exponent % labelled_every == 0;
      labels += labelled ? 1 : 0;
      if (labelled || high - low < 5) axis.ticks.emplace_back(place, labelled ? tick_label(place, true) : "");
    }
  if (labels >= 2) return;
  axis.ticks.clear();
  add_linear_ticks(axis);
}

bool is_power_label(const std::string& label) {
  return label.starts_with("10") && label.size() > 2 && (label[2] < '0' || label[2] > '9') && label[2] != '.';
}

/// "2×10⁵", or the power alone.
std::string scientific_label(double value) {
  const double exponent = std::floor(std::log10(std::abs(value)) + 1e-9);
  const double digits = value / std::pow(10, exponent);
  const std::string power = power_of_ten(static_cast<int>(exponent));
  return std::abs(digits - 1) < 1e-9 ? power : fmt::format("{:.4g}×{}", digits, power);
}

/// Labels of an axis in one notation. Powers of ten next to numbers become numbers where these are short.
/// Otherwise all are products with powers of ten.
void use_one_form(Axis& axis) {
  bool any_power = false, any_number = false, is_short = true;
  for (const auto& [place, label] : axis.ticks) {
    if (label.empty() || place == 0) continue;
    const bool is_power = is_power_label(label) || label.find('e') != std::string::npos;
    (is_power ? any_power : any_number) = true;
    const std::string plain = fmt::format("{:.7g}", place);
    is_short = is_short && plain.find('e') == std::string::npos && plain.size() <= kLongestPlain;
  }
  const bool any_exponent = std::any_of(axis.ticks.begin(), axis.ticks.end(), [](const auto& tick) {
    return tick.second.find('e') != std::string::npos;
  });
  if (!any_exponent && (!any_power || !any_number)) return;
  for (auto& [place, label] : axis.ticks)
    if (!label.empty() && place != 0)
      label = signed_text(is_short ? fmt::format("{:.7g}", place) : scientific_label(place));
}

}  // namespace

std::string tick_label(double value, bool logarithmic) {
  const double exponent = logarithmic && value > 0 ? std::log10(value) : 0;
  const double nearest = std::round(exponent);
  if (std::abs(exponent) >= kDistantExponent && std::abs(exponent - nearest) < 1e-9)
    return power_of_ten(static_cast<int>(nearest));
  if (value != 0 && (std::abs(value) >= kMostPlain || std::abs(value) < kLeastPlain))
    return signed_text(fmt::format("{:.3g}", value));
  return signed_text(fmt::format("{:.7g}", value));
}

Axis axis_between(double low, double high, bool logarithmic) {
  Axis axis;
  axis.logarithmic = logarithmic;
  axis.low = low;
  axis.high = high;
  if (logarithmic)
    add_log_ticks(axis);
  else
    add_linear_ticks(axis);
  use_one_form(axis);
  return axis;
}

Axis fit_axis(const std::vector<double>& values, bool logarithmic) {
  const Axis range = range_of(values, logarithmic);
  return axis_between(range.low, range.high, logarithmic);
}

Axis fit_axis_at(std::vector<double> places, bool logarithmic) {
  const auto is_whole = [](double place) { return place == std::round(place); };
  const auto is_power_of_two = [](double place) {
    return place > 0 && std::exp2(std::round(std::log2(place))) == place;
  };
  Axis axis = range_of(places, logarithmic);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  if (logarithmic && places.size() > 1 && std::all_of(places.begin(), places.end(), is_power_of_two)) {
    // Decimals of small powers are long: 0.00390625 is 1/256.
    const bool has_fractions = places.front() < kLeastDecimalPower && places.front() >= kLeastFraction;
    for (const double place : places)
      axis.ticks.emplace_back(
          place, has_fractions && place < 1 ? fmt::format("1/{:.0f}", 1 / place) : tick_label(place, true));
    if (has_fractions) return axis;
  } else if (!logarithmic && std::all_of(places.begin(), places.end(), is_whole)) {
    add_linear_ticks(axis, 1);
  } else {
    return axis_between(axis.low, axis.high, logarithmic);
  }
  use_one_form(axis);
  return axis;
}

void keep_labels_apart(Axis& axis, double width, bool is_vertical) {
  const double low = forward(axis.low, axis.logarithmic), high = forward(axis.high, axis.logarithmic);
  struct Label {
    std::size_t tick;
    double middle, half;
  };
  std::vector<Label> labels;
  for (std::size_t i = 0; i < axis.ticks.size(); ++i) {
    const auto& [place, label] = axis.ticks[i];
    if (label.empty()) continue;
    labels.push_back(
        {i, (forward(place, axis.logarithmic) - low) / (high - low) * width,
         is_vertical ? 0.5 * (kTickFontSize + 2.5) : 0.5 * text_width(label, kTickFontSize) + 2});
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

void PageLayout::set_page(const FigureStyle& style, double own_width) {
  // DejaVu Serif is wider than the widths of text_width(), so all other lengths grow.
  constexpr double kSerifRoom = 1.1;
  font_scale = style.size.value_or(kFontSize) / kFontSize;
  scale = font_scale * (style.font == "serif" ? kSerifRoom : 1);
  font = font_family(style);
  width = (style.width ? *style.width * 72 : own_width) / scale;
}

std::optional<double> PageLayout::height_of(const FigureStyle& style) const {
  return style.height ? std::optional(*style.height * 72 / scale) : std::nullopt;
}

namespace {

/// Lines of `width` points without a broken word where smaller letters can do that: then the lines are longer
/// at `size`, and line_size() says the size at which they fit.
std::vector<std::string> whole_lines(const std::string& text, double size, double width) {
  for (double smaller = size; smaller >= kLeastFontSize; smaller -= 0.5) {
    bool is_broken = false;
    std::vector<std::string> lines = lines_of(text, size, width * size / smaller, is_broken);
    if (!is_broken) return lines;
  }
  return wrapped(text, size, width);
}

double line_size(const std::vector<std::string>& lines, double size, double width) {
  const double longest = widest(lines, size);
  return longest <= width ? size : std::floor(10 * size * width / longest) / 10;
}

}  // namespace

Heading::Heading(const FigureStyle& style, const std::string& title_text, const std::string& caption_text,
                 double page_width) {
  const double room = page_width - 2 * kPageMargin;
  if (style.title.value_or(true)) title = whole_lines(title_text, kFontSize + 1, room);
  if (style.caption.value_or(CaptionPlace::below) == CaptionPlace::below)
    caption = whole_lines(caption_text, kSmallFontSize, room);
}

void Heading::place(PageMarks& marks, double page_width, double page_height) const {
  const auto add = [&](TextRole role, const std::vector<std::string>& lines, double top, double step,
                       double most) {
    const double size = line_size(lines, most, page_width - 2 * kPageMargin);
    for (std::size_t i = 0; i < lines.size(); ++i)
      marks.push_back(
          {role, lines[i], page_width / 2, top - step * (static_cast<double>(i) + 0.5), true, 0, size});
  };
  add(TextRole::title, title, page_height - 2, kTitleLine, kFontSize + 1);
  add(TextRole::caption, caption, caption_height(), kCaptionLine, kSmallFontSize);
}

void place_centred(PageMarks& marks, TextRole role, const std::vector<std::string>& lines, double x, double y,
                   bool rotated, double size) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double offset = kLabelLine * (static_cast<double>(i) - (static_cast<double>(lines.size()) - 1) / 2);
    marks.push_back(
        {role, lines[i], rotated ? x + offset : x, rotated ? y : y - offset, true, rotated ? 90 : 0, size});
  }
}

namespace {

constexpr double kSampleGap = 4, kEntryGap = 12, kLegendLine = 10;

}  // namespace

Legend::Legend(std::vector<SeriesStyle> entries, double page_width, std::size_t most_columns)
    : entries_(std::move(entries)), page_width_(page_width) {
  if (entries_.empty()) return;
  constexpr std::size_t kMostLegendLines = 6;
  const double room = page_width - 2 * kPageMargin - kSample - kSampleGap;
  std::vector<std::string> names;
  for (const SeriesStyle& entry : entries_) names.push_back(entry.name);
  names_ = fitted_names(names, kFontSize, room, kMostLegendLines, "L");
  double longest = 0;
  for (const std::vector<std::string>& lines : names_.lines)
    longest = std::max(longest, widest(lines, names_.size));
  entry_width_ = kSample + kSampleGap + longest;
  const double most = (page_width - 2 * kPageMargin + kEntryGap) / (entry_width_ + kEntryGap);
  columns_ = std::clamp<std::size_t>(static_cast<std::size_t>(most), 1, most_columns);
  const std::size_t rows = (entries_.size() + columns_ - 1) / columns_;
  // Two rows of two read better than a row of three and one of one.
  columns_ = (entries_.size() + rows - 1) / rows;
  row_lines_.resize(rows, 1);
  for (std::size_t i = 0; i < names_.lines.size(); ++i)
    row_lines_[i / columns_] = std::max(row_lines_[i / columns_], names_.lines[i].size());
  for (const std::size_t lines : row_lines_) height_ += kLegendLine * static_cast<double>(lines);
}

double Legend::natural_width(const std::vector<SeriesStyle>& entries) {
  double longest = 0;
  for (const SeriesStyle& entry : entries)
    longest = std::max(longest, text_width(math_text(entry.name), kFontSize));
  return kSample + kSampleGap + longest + 2 * kPageMargin + 0.1;
}

void Legend::place(PageMarks& marks, double bottom, double page_left) const {
  const double width = static_cast<double>(columns_) * (entry_width_ + kEntryGap) - kEntryGap;
  double top = bottom + height_;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (i > 0 && i % columns_ == 0) top -= kLegendLine * static_cast<double>(row_lines_[i / columns_ - 1]);
    const double left = page_left + (page_width_ - width) / 2 +
                        static_cast<double>(i % columns_) * (entry_width_ + kEntryGap);
    PageMark sample{TextRole::legend, "", left, top - kLegendLine / 2};
    sample.sample = entries_[i];
    marks.push_back(std::move(sample));
    for (std::size_t line = 0; line < names_.lines[i].size(); ++line)
      marks.push_back({TextRole::legend, names_.lines[i][line], left + kSample + kSampleGap,
                       top - kLegendLine * (static_cast<double>(line) + 0.5), false, 0, names_.size});
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

Json axis_json(const Axis& axis, double font_scale) {
  Json ticks = Json::array();
  for (const auto& [place, label] : axis.ticks) ticks.push_back(Json::array({place, label}));
  return {{"log", axis.logarithmic},
          {"low", axis.low},
          {"high", axis.high},
          {"upright", axis.upright},
          {"size", rounded_length(axis.size * font_scale)},
          {"ticks", std::move(ticks)}};
}

Json mark_json(const PageMark& mark, const PageLayout& layout) {
  Json json = {{"role", kRoleNames[static_cast<std::size_t>(mark.role)]},
               {"text", mark.text},
               {"x", rounded_length(mark.x * layout.scale)},
               {"y", rounded_length(mark.y * layout.scale)},
               {"centred", mark.is_centred},
               {"rotation", mark.rotation},
               {"size", rounded_length(mark.size * layout.font_scale)},
               {"colour", mark.colour}};
  if (mark.sample) json["sample"] = style_json(*mark.sample);
  return json;
}

/// matplotlib's name of one of gnuplot's markers, and whether it is filled.
std::pair<std::string, bool> marker_of(int marker) {
  if (marker == kCross) return {"x", true};
  static const std::array<const char*, 6> names = {"o", "s", "^", "D", "v", "p"};
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
  const auto length = [&](double points) { return rounded_length(points * layout.scale); };
  Json panels = Json::array();
  for (const PanelPlace& panel : layout.panels) {
    Json texts = Json::array();
    for (const PageMark& mark : panel.marks) texts.push_back(mark_json(mark, layout));
    panels.push_back({{"left", length(panel.left)},
                      {"bottom", length(panel.bottom)},
                      {"width", length(panel.width)},
                      {"height", length(panel.height)},
                      {"x_labels", panel.has_x_labels},
                      {"y_labels", panel.has_y_labels},
                      {"texts", std::move(texts)}});
    if (panel.own_x) panels.back()["x"] = axis_json(*panel.own_x, layout.font_scale);
    if (panel.own_y) panels.back()["y"] = axis_json(*panel.own_y, layout.font_scale);
  }
  return {{"sample", length(kSample)},
          {"font", layout.font},
          {"font_scale", layout.font_scale},
          {"width", length(layout.width)},
          {"height", length(layout.height)},
          {"x", axis_json(layout.x, layout.font_scale)},
          {"y", axis_json(layout.y, layout.font_scale)},
          {"panels", std::move(panels)}};
}

nlohmann::ordered_json number_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

nlohmann::ordered_json pair_json(const std::optional<std::pair<double, double>>& pair) {
  return pair ? Json::array({pair->first, pair->second}) : Json();
}

}  // namespace moelab
