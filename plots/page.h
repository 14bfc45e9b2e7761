#pragma once

/// What all figures' scripts have in common: the page, its fonts, title and caption, the terminals.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moelab {

// How much room texts take, so that nothing runs off a page or over something else.

/// The length of `text` in points when set in DejaVu Sans of this size: the sum of its letters' advance
/// widths. A letter beyond ASCII counts as one em at most.
double text_width(const std::string& text, double font_size);

/// The longest of several texts.
double widest(const std::vector<std::string>& texts, double font_size);

/// Lines of at most `width` points; words that are longer are broken.
std::vector<std::string> wrapped(const std::string& text, double font_size, double width);

// Lengths in points (1/72 inch). One column of a two-column page is 3.3 inches wide.
constexpr double kWidth = 3.3 * 72;
constexpr double kTwoColumns = 6.9 * 72;
constexpr double kFontSize = 7.5, kTickFontSize = 7, kSmallFontSize = 6.5;
constexpr double kTitleLine = 11.5, kCaptionLine = 8.5, kLabelLine = 9.5;
/// Left and right of title, caption and legend.
constexpr double kPageMargin = 5;

/// A string of gnuplot's language that stands for `text` on one line, control characters written out. All
/// texts of a script go through it; terminals run without markup, so ^ _ @ { } mean themselves.
std::string quoted(const std::string& text);

/// The first lines of a script: what it is, and a clean state.
std::string script_head(const std::string& id, const std::string& title);

/// A figure's title and caption in lines, and the room that they take.
struct Heading {
  std::vector<std::string> title, caption;

  Heading(const std::string& title_text, const std::string& caption_text, double page_width = kWidth);
  double title_height() const { return kTitleLine * static_cast<double>(title.size()); }
  double caption_height() const { return 4 + kCaptionLine * static_cast<double>(caption.size()); }
  /// The title's lines from the top of the page down, the caption's from caption_height() down.
  std::string script(double page_height) const;
};

/// Lines of text about (x, y), in points from the lower left corner of the page; with `rotated` upwards, the
/// first line on the left.
std::string centred_label(const std::vector<std::string>& lines, double x, double y, double page_width,
                          double page_height, bool rotated = false);

/// The gnuplot lines that place a panel's frame, in points from the lower left corner.
std::string panel_margins(double left, double right, double bottom, double top, double page_width,
                          double page_height);

/// `text` on one line of at most `width` points, its end replaced by … where it is longer.
std::string fitted_line(const std::string& text, double font_size, double width);

/// wrapped(), but at most `most` lines, the last of which then ends in ….
std::vector<std::string> fitted_lines(const std::string& text, double font_size, double width,
                                      std::size_t most);

/// The plot commands on the SVG, PDF and PNG terminals, a page of `width` × `height`.
std::string on_terminals(const std::string& id, double height, const std::string& plot,
                         double width = kWidth);

// What the report's page draws by itself, from data that stand in it.

/// Data for one of the drawers of the page's script, which data["draw"] names: "lines", "heatMap" or "plane".
std::string page_data(const nlohmann::ordered_json& data);

/// Null for an absent number.
nlohmann::ordered_json number_json(const std::optional<double>& value);

// Texts in HTML pages.

/// Text as it stands in an element or in a quoted attribute: no markup, no link, no control character. An
/// address in a text stays a text.
std::string html_text(std::string_view text);

/// JSON text for a <script> element, which no "<" within can end.
std::string script_text(std::string_view json);

}  // namespace moelab
