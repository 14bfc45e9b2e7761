#include "plots/style.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"

namespace moelab {
namespace {

const std::vector<std::string> kFormats = {"svg", "pdf", "png"};

}  // namespace

void FigureStyle::bind(Fields& fields) {
  fields.add("width", width, between(1, 20), "width of the page in inches (a column of ICML has 3.25)");
  fields.add("height", height, between(0.8, 30), "height of the page in inches");
  fields.add("font", font, "sans, serif, or the name of a font family (default: sans)");
  fields.add("size", size, between(4, 40), "size of labels in points (default: 7.5)");
  fields.add("title", title, "whether the page has the title (default: true)");
  fields.add("caption", caption, {"none", "below", "file"},
             "where the caption stands; file writes ID.tex and ID.txt next to the figure (default: below)");
  fields.add("legend", legend, {"inside", "below", "right", "direct"},
             "where the legend stands; direct writes names at the ends of at most four lines (default: "
             "below, also where another place lacks room)");
  fields.optional().add_names("format", format, kFormats, 1, "formats to write (default: all)");
}

FigureStyle FigureStyle::over(const FigureStyle& base) const {
  FigureStyle style = base;
  const auto take = [](const auto& own, auto& taken) {
    if (own) taken = own;
  };
  take(width, style.width);
  take(height, style.height);
  take(font, style.font);
  take(size, style.size);
  take(title, style.title);
  take(caption, style.caption);
  take(legend, style.legend);
  if (!format.empty()) style.format = format;
  return style;
}

void FigureStyle::check(const std::string& path) const {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -";
  if (font && (font->empty() || font->find_first_not_of(kAllowed) != std::string::npos))
    throw UserError(path + ".font", fmt::format("got '{}', needs sans, serif, or the name of a family: "
                                                "letters, digits, spaces and hyphens",
                                                visible_line(*font)));
}

std::string font_family(const FigureStyle& style) {
  if (!style.font || *style.font == "sans") return "DejaVu Sans";
  return *style.font == "serif" ? "DejaVu Serif" : *style.font;
}

const std::vector<std::pair<std::string, FigureStyle>>& style_presets() {
  const auto paper = [](double width) {
    FigureStyle style;
    style.width = width;
    style.font = "serif";
    style.size = 8;
    style.title = false;
    style.caption = CaptionPlace::file;
    return style;
  };
  const auto screen = [](double width, double size, CaptionPlace caption) {
    FigureStyle style;
    style.width = width;
    style.size = size;
    style.caption = caption;
    return style;
  };
  static const std::vector<std::pair<std::string, FigureStyle>> presets = {
      {"neurips", paper(5.5)},
      {"icml", paper(3.25)},
      {"jmlr", paper(6.0)},
      {"slides", screen(8.0, 14, CaptionPlace::none)},
      {"screen", screen(7.0, 10, CaptionPlace::below)}};
  return presets;
}

std::vector<std::string> style_names() {
  std::vector<std::string> names;
  for (const auto& [name, style] : style_presets()) names.push_back(name);
  return names;
}

const FigureStyle& style_preset(const std::string& name, const std::string& path) {
  for (const auto& [known, style] : style_presets())
    if (known == name) return style;
  throw UserError(path, unknown_name("style", name, style_names()));
}

}  // namespace moelab
