#pragma once

/// What all figures' scripts have in common: the page, its fonts, title and caption, the terminals, the
/// files.

#include <filesystem>
#include <string>
#include <vector>

namespace moelab {

// Lengths in points (1/72 inch). One column of a two-column page is 3.3 inches wide.
constexpr double kWidth = 3.3 * 72;
constexpr double kTwoColumns = 6.9 * 72;
constexpr double kFontSize = 7.5, kTickFontSize = 7, kSmallFontSize = 6.5;
constexpr double kTitleLine = 11.5, kCaptionLine = 8.5, kLabelLine = 9.5;
/// Mean width of a letter of the sans-serif font, as a share of its size.
constexpr double kLetterWidth = 0.56;

/// A string of gnuplot's language that stands for `text` on one line, control characters written out. All
/// texts of a script go through it; terminals run without markup, so ^ _ @ { } mean themselves.
std::string quoted(const std::string& text);

/// Letters, not bytes, of UTF-8 text.
std::size_t letters(const std::string& text);

/// Lines of at most `width` points.
std::vector<std::string> wrapped(const std::string& text, double font_size, double width);

/// The first lines of a script: what it is, and a clean state.
std::string script_head(const std::string& id, const std::string& title);

/// The title's lines from the top of the page down, the caption's from caption_height() down.
std::string title_and_caption(const std::vector<std::string>& title, const std::vector<std::string>& caption,
                              double page_height);
double caption_height(const std::vector<std::string>& caption);

/// The plot command on the SVG, PDF and PNG terminals, a page of `width` × `height`; `again` repeats it.
std::string on_terminals(const std::string& id, double height, const std::string& plot,
                         const std::string& again = "replot", double width = kWidth);

/// Writes <id>.csv and <id>.gp into `directory`, runs gnuplot there, and returns the five paths. Throws
/// EnvironmentError.
std::vector<std::filesystem::path> write_figure(const std::string& id, const std::string& csv,
                                                const std::string& script,
                                                const std::filesystem::path& directory);

}  // namespace moelab
