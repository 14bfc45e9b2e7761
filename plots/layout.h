#pragma once

/// The layout of figures: pages, texts, axes and legends as plain data.
///
/// C++ decides where each text, frame and tick of a figure stands, and what it says. gnuplot, the report's
/// page and matplotlib paint this data. They measure no text and choose no tick. Lengths are points (1/72
/// inch) from the lower left corner of the page.

#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plots/style.h"

namespace moelab {

// The room that texts take.

/// The length of `text` in points in DejaVu Sans of this size: the sum of the advance widths of its letters.
/// Superscripts and subscripts beyond ASCII count as half an em, Greek letters as 0.84 em, others as one em.
double text_width(const std::string& text, double font_size);

/// The length of the longest text.
double widest(const std::vector<std::string>& texts, double font_size);

/// Breaks a text into lines of at most `width` points, at spaces that fixed_spaces() leaves free. Math is set
/// by math_text(). A word that is longer than a line breaks after "_", "/", "-", "." or ",", and inside only
/// if it has none of them.
std::vector<std::string> wrapped(const std::string& text, double font_size, double width);

/// Names that share a room, each in lines.
struct FittedNames {
  std::vector<std::vector<std::string>> lines;
  double size = 0;           ///< of the font
  std::string key;           ///< ends the caption: " P1: the name; P2: …." Empty if nothing is left out.
  bool has_letters = false;  ///< letters and numbers stand for the names
};

/// Fits names into `width` points and at most `most_lines` lines without a cut or broken word. Where that
/// needs more than wrapping, the shared first and last words go, then the text is smaller. Last, `letter` and
/// a number stand for each name, and the key says for which.
FittedNames fitted_names(const std::vector<std::string>& names, double font_size, double width,
                         std::size_t most_lines, const std::string& letter);

/// One column of a two-column page is 3.3 inches wide.
constexpr double kWidth = 3.3 * 72;
constexpr double kTwoColumns = 6.9 * 72;
constexpr double kFontSize = 7.5, kTickFontSize = 7, kSmallFontSize = 6.5;
/// Texts that fitted_names() makes smaller are not smaller than this.
constexpr double kLeastFontSize = 5;
constexpr double kTitleLine = 11.5, kCaptionLine = 8.5, kLabelLine = 9.5;
/// Left and right of title, caption and legend.
constexpr double kPageMargin = 5;

// Colours, markers and dashes.

/// Okabe and Ito's palette, which every common kind of colour vision can tell apart. Its yellow is too faint
/// on white and is left out.
inline constexpr std::array<const char*, 7> kColours = {"0072B2", "D55E00", "009E73", "CC79A7",
                                                        "E69F00", "56B4E9", "000000"};
/// For points and areas, over which black marks are drawn: violet replaces black.
inline constexpr std::array<const char*, 7> kAreaColours = {"0072B2", "D55E00", "009E73", "CC79A7",
                                                            "E69F00", "56B4E9", "8C6BB1"};
inline constexpr const char* kReferenceColour = "555555";
/// The numbers of gnuplot: circle, square, triangles, diamond and pentagon, filled and then open.
inline constexpr std::array<int, 12> kMarkers = {7, 5, 9, 13, 11, 15, 6, 4, 8, 12, 10, 14};
/// gnuplot's number of a cross.
inline constexpr int kCross = 2;
inline constexpr std::array<const char*, 6> kDashes = {"1",          "(12,4)", "(4,3)",
                                                       "(12,3,3,3)", "(20,4)", "(2,2)"};
/// Size of markers on lines (gnuplot's `ps`): readers can tell them apart in a printed column.
inline constexpr double kMarkerSize = 0.58;

/// The contrast of two colours of six hexadecimal digits, from 1 to 21 (WCAG 2.1).
double contrast(const std::string& colour, const std::string& other);
/// Texts have at least this contrast with what is behind them.
inline constexpr double kLeastContrast = 4.5;
/// The colour, darkened until it can be read on white.
std::string readable_colour(const std::string& colour);

/// How a series looks, in the panels and in the legend.
struct SeriesStyle {
  std::string name;    ///< legend entry
  std::string colour;  ///< six hexadecimal digits
  std::string dash;    ///< gnuplot's "1" or "(8,4)"; empty for no line
  int marker = 0;      ///< gnuplot's number; 0 for none
};

/// The colour, marker and dash of series number `index`.
SeriesStyle style_of(std::size_t index, std::string name = "");

// Axes.

struct Axis {
  bool logarithmic = false;
  double low = 0, high = 1;
  std::vector<std::pair<double, std::string>> ticks;  ///< place and label; a minor tick has an empty label
  bool upright = false;                               ///< labels are rotated by 90°
  double size = kTickFontSize;                        ///< of the labels' font
};

/// The size of an exponent from which on a power of ten is distant.
constexpr int kDistantExponent = 4;

/// The label of a tick: "0.05", "2560". Distant powers of ten on a logarithmic axis are "10⁻⁵".
std::string tick_label(double value, bool logarithmic);

/// An axis that shows all `values` (those above 0 on a logarithmic axis) with a small margin.
Axis fit_axis(const std::vector<double>& values, bool logarithmic);

/// 10 to an exponent, as a label: "10³".
std::string power_of_ten(int exponent);

/// fit_axis() for the values of a sweep. A logarithmic axis has its ticks at powers of two if all values are
/// powers of two; small ones are fractions, such as 1/256. A linear axis of integers has its ticks at
/// integers.
Axis fit_axis_at(std::vector<double> places, bool logarithmic);

/// An axis from `low` to `high` > `low` with ticks at round places.
Axis axis_between(double low, double high, bool logarithmic = false);

/// Removes labels that would overlap on an axis of `width` points. The last label stays. Evenly spaced ticks
/// keep every k-th label from there; other axes keep the first label, too.
/// Labels of a vertical axis need a line each.
void keep_labels_apart(Axis& axis, double width, bool is_vertical = false);

/// Keeps every k-th label of an upright axis, so that each has a line of room. `room`: points between ticks.
void thin_upright_labels(Axis& axis, double room);

// The page.

enum class TextRole { title, caption, panel, row, slope, x_label, y_label, value_label, legend };

/// A line of text on the page, or a sample in the legend.
struct PageMark {
  TextRole role;
  std::string text;
  double x = 0, y = 0;      ///< the middle of the line's height
  bool is_centred = true;   ///< in x, or along a rotated line; else x is the left end
  int rotation = 0;         ///< degrees anticlockwise
  double size = kFontSize;  ///< of the font
  std::string colour = {};  ///< empty: black
  /// A sample of a series from x to x + kSample, in place of a text.
  std::optional<SeriesStyle> sample = {};
};
/// The length of a sample in the legend.
constexpr double kSample = 20;

using PageMarks = std::vector<PageMark>;

/// A frame with the texts that are painted together with it.
struct PanelPlace {
  double left = 0, bottom = 0, width = 0, height = 0;
  bool has_x_labels = true, has_y_labels = true;  ///< at its ticks
  PageMarks marks = {};
  std::optional<Axis> own_x = {}, own_y = {};  ///< in place of the axes of all panels
};

/// What all kinds of figures have. Lengths are points at the font size kFontSize. Painters multiply them by
/// `scale`, and sizes of fonts by `font_scale`.
struct PageLayout {
  double width = kWidth, height = 0;
  double scale = 1, font_scale = 1;
  std::string font = "DejaVu Sans";
  Axis x, y;  ///< of all panels
  std::vector<PanelPlace> panels;
  std::string caption;  ///< in full, with the title if the page has none, and with the keys of names

  /// Takes font and width from a style; `own_width`: in points, without one.
  void set_page(const FigureStyle& style, double own_width);
  /// The height of a style in the layout's points.
  std::optional<double> height_of(const FigureStyle& style) const;
  const Axis& x_of(const PanelPlace& panel) const { return panel.own_x ? *panel.own_x : x; }
  const Axis& y_of(const PanelPlace& panel) const { return panel.own_y ? *panel.own_y : y; }
};

/// {"sample": length in the legend, "font", "font_scale", "width", "height", "x", "y": {"log", "low", "high",
/// "upright", "size", "ticks": [[place, label]]}, "panels": [{"left", "bottom", "width", "height",
/// "x_labels", "y_labels", "texts": […]}]}, scaled. A panel with its own axes has them as "x" and "y".
nlohmann::ordered_json layout_json(const PageLayout& layout);

/// {"colour", "dash": [on, off, …] | null, "marker": name | null, "filled"}. The names are matplotlib's.
nlohmann::ordered_json style_json(const SeriesStyle& style);

/// Null for an absent number.
nlohmann::ordered_json number_json(const std::optional<double>& value);

/// Null for an absent pair.
nlohmann::ordered_json pair_json(const std::optional<std::pair<double, double>>& pair);

/// A figure's title and caption in lines, as its style wants them, and the room that they take.
struct Heading {
  std::vector<std::string> title, caption;

  Heading() = default;
  Heading(const FigureStyle& style, const std::string& title_text, const std::string& caption_text,
          double page_width = kWidth);
  double title_height() const { return kTitleLine * static_cast<double>(title.size()); }
  double caption_height() const { return 4 + kCaptionLine * static_cast<double>(caption.size()); }
  /// Adds the title's lines from the top of the page down, and the caption's lines above the bottom.
  void place(PageMarks& marks, double page_width, double page_height) const;
};

/// Adds lines of text around (x, y). With `rotated` they run upwards, and the first line is on the left.
void place_centred(PageMarks& marks, TextRole role, const std::vector<std::string>& lines, double x, double y,
                   bool rotated = false, double size = kFontSize);

/// Legend entries in columns of equal width, row by row. A name that is wider than the page has several
/// lines.
class Legend {
 public:
  Legend(std::vector<SeriesStyle> entries, double page_width, std::size_t most_columns = 4);
  /// The width at which all names stand on one line in one column.
  static double natural_width(const std::vector<SeriesStyle>& entries);
  double height() const { return height_; }
  const std::string& key() const { return names_.key; }
  /// Adds the legend in the middle of a page that begins at `left`, with its lower edge at `bottom`.
  void place(PageMarks& marks, double bottom, double left = 0) const;

 private:
  std::vector<SeriesStyle> entries_;
  FittedNames names_;
  double page_width_ = 0, entry_width_ = 0, height_ = 0;
  std::size_t columns_ = 1;
  std::vector<std::size_t> row_lines_;
};

}  // namespace moelab
