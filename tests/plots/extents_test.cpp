/// Where the letters of drawn figures lie, on every terminal: within the page and not on each other.

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <stdio.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>

#include "plots/figure.h"
#include "plots/forest.h"
#include "plots/heat_map.h"
#include "plots/layout.h"
#include "plots/painters/gnuplot.h"
#include "plots/rate_panels.h"
#include "tests/plots/command_output.h"
#include "tests/temporary_folder.h"

namespace moelab::extents_test {
namespace {

namespace fs = std::filesystem;

const std::string kLong =
    "A title, a caption or a label that is much longer than the figure is wide, so that it has to be broken "
    "into several lines: learned_and_frozen_routers_with_a_name_that_has_no_space_in_it_at_all_anywhere";

struct Word {
  double left, top, right, bottom;
  std::string text;
};

struct Page {
  double width = 0, height = 0;
  std::vector<Word> words;
};

/// The words of a PDF in points, the origin at the upper left.
Page page_of(const fs::path& pdf) {
  Page page;
  std::istringstream lines(output_of("pdftotext -bbox '" + pdf.string() + "' -"));
  for (std::string line; std::getline(lines, line);) {
    Word word{};
    std::array<char, 400> text{};
    if (sscanf(line.c_str(), " <page width=\"%lf\" height=\"%lf\">", &page.width, &page.height) == 2)
      continue;
    if (sscanf(line.c_str(), " <word xMin=\"%lf\" yMin=\"%lf\" xMax=\"%lf\" yMax=\"%lf\">%399[^<]",
               &word.left, &word.top, &word.right, &word.bottom, text.data()) == 5) {
      word.text = text.data();
      page.words.push_back(word);
    }
  }
  return page;
}

/// Boxes hold the font's ascent and descent. Letters use less.
constexpr double kSlack = 1.2;

void check_extents(const Page& page) {
  CHECK(page.words.size() > 10);
  for (std::size_t i = 0; i < page.words.size(); ++i) {
    const Word& word = page.words[i];
    CAPTURE(word.text);
    CHECK(word.left >= 0);
    CHECK(word.right <= page.width);
    CHECK(word.top >= -0.5);
    CHECK(word.bottom <= page.height + 0.5);
    for (std::size_t j = 0; j < i; ++j) {
      const Word& other = page.words[j];
      const double across = std::min(word.right, other.right) - std::max(word.left, other.left);
      const double down = std::min(word.bottom, other.bottom) - std::max(word.top, other.top);
      CHECK_MESSAGE(std::min(across, down) < kSlack, word.text << " lies on " << other.text);
    }
  }
}

/// Pixels of a point. With one pixel, smoothing spreads the ink of a resampled PNG by up to three points.
constexpr int kPixels = 4;

/// A page in grey.
struct Picture {
  int width = 0, height = 0;
  std::string pixels;
  bool is_dark(int x, int y) const {
    return static_cast<unsigned char>(pixels[static_cast<std::size_t>(y * width + x)]) < 200;
  }
  /// Left, top, right and bottom of what is not white.
  std::array<int, 4> ink() const {
    std::array<int, 4> box = {width, height, 0, 0};
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        if (is_dark(x, y))
          box = {std::min(box[0], x), std::min(box[1], y), std::max(box[2], x), std::max(box[3], y)};
    return box;
  }
};

Picture picture_of(const fs::path& pdf) {
  std::istringstream text(output_of(fmt::format("pdftoppm -r {} -gray '{}'", 72 * kPixels, pdf.string())));
  Picture picture;
  std::string kind;
  int most = 0;
  text >> kind >> picture.width >> picture.height >> most;
  text.get();
  picture.pixels.assign(std::istreambuf_iterator<char>(text), {});
  REQUIRE(picture.pixels.size() == static_cast<std::size_t>(picture.width * picture.height));
  return picture;
}

/// A PNG as the page that it was drawn for.
Picture png_page(const fs::path& png, const Page& page) {
  const fs::path wrapper = png.parent_path() / "wrapper.svg", pdf = png.parent_path() / "wrapper.pdf";
  std::ofstream(wrapper) << fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}pt\" height=\"{1}pt\" viewBox=\"0 0 {0} "
      "{1}\"><image "
      "href=\"{2}\" width=\"{0}\" height=\"{1}\"/></svg>",
      page.width, page.height, png.filename().string());
  output_of("rsvg-convert -f pdf -o '" + pdf.string() + "' '" + wrapper.string() + "'");
  return picture_of(pdf);
}

void check_drawing(const Drawing& drawing) {
  CAPTURE(drawing.id);
  const TemporaryFolder folder;
  render(drawing, folder.path());
  const auto file = [&](const char* ending) { return folder.path() / (drawing.id + ending); };
  const Page pdf = page_of(file(".pdf"));
  check_extents(pdf);
  const fs::path converted = file("-svg.pdf");
  output_of("rsvg-convert -f pdf -o '" + converted.string() + "' '" + file(".svg").string() + "'");
  const Page svg = page_of(converted);
  check_extents(svg);
  CHECK(svg.width == doctest::Approx(pdf.width).epsilon(0.01));
  // What is drawn to pixels has no words: its ink lies where the PDF's does, whose page is whole points.
  const std::array<int, 4> drawn = picture_of(file(".pdf")).ink(), ink = png_page(file(".png"), pdf).ink();
  // A letter of a PNG advances by whole pixels, which adds up in a line.
  const double across = std::max(3.0, 0.01 * pdf.width), down = 2;
  for (std::size_t side = 0; side < 4; ++side)
    CHECK(std::abs(drawn[side] - ink[side]) <= kPixels * (side % 2 == 0 ? across : down));
}

Figure lines() {
  Figure figure;
  figure.id = "lines";
  figure.title = figure.caption = figure.x_label = figure.y_label = kLong;
  figure.x_log = figure.y_log = true;
  figure.panels.emplace_back();
  for (int i = 0; i < 6; ++i) {
    FigureSeries series{fmt::format("series {} with a long name", i), {}};
    for (const double x : {640.0, 1280.0, 2560.0, 81920.0})
      series.points.push_back({x, (i + 1) / x, (i + 0.5) / x, (i + 2) / x, {}});
    figure.panels[0].series.push_back(series);
  }
  figure.panels[0].series.push_back({kLong, {{640, 1e-4}, {81920, 1e-4}}, SeriesLook::reference});
  return figure;
}

HeatMap heat_map() {
  HeatMap map;
  map.id = "map";
  map.title = map.caption = map.x_label = map.y_label = map.value_label = kLong;
  map.x_names = {"0.125", "0.25", "0.5", "1", "1.5", "200", "3000"};
  map.y_names = {"8", "16", "a long name"};
  for (const char* name : {"first arm", "second arm"}) {
    HeatMapPanel panel{name, {}, {}};
    for (int i = 0; i < 21; ++i) {
      panel.values.emplace_back(0.05 * i);
      panel.intervals.emplace_back(std::pair(0.05 * i - 0.1, 0.05 * i + 0.1));
    }
    map.panels.push_back(panel);
  }
  return map;
}

/// A word without a place to break.
std::string word_of(std::size_t letters) {
  return std::string(letters, 'v');
}

/// Whether the PDF never has a part of the word without the rest.
void check_whole_words(const Drawing& drawing, std::size_t letters) {
  const TemporaryFolder folder;
  render(drawing, folder.path());
  for (const Word& word : page_of(folder.path() / (drawing.id + ".pdf")).words)
    if (const std::size_t end = word.text.find_first_not_of('v'); end != 0 && word.text.size() > 1)
      CHECK_MESSAGE(std::min(end, word.text.size()) == letters, drawing.id << ": " << word.text);
}

/// All kinds with this label at every place; the title and caption are short.
std::vector<Drawing> labelled_drawings(const std::string& label, const FigureStyle& style) {
  std::vector<Drawing> drawings;
  const auto add = [&](auto figure, const char* id) {
    figure.id = id;
    figure.title = figure.caption = "short";
    figure.style = style;
    drawings.push_back(drawing_of(figure));
  };
  Figure figure = lines();
  figure.x_label = figure.y_label = label;
  for (FigureSeries& series : figure.panels[0].series) series.name = label + series.name.substr(0, 8);
  figure.panels[0].series.resize(3);
  for (FigureSeries& series : figure.panels[0].series)
    series.name = series.name.substr(label.size()) + " " + label;
  add(figure, "lines");
  for (int i = 0; i < 3; ++i) figure.panels.push_back(figure.panels[0]);
  for (std::size_t i = 0; i < 4; ++i) figure.panels[i].name = label + " = " + std::to_string(i);
  add(figure, "panels");
  figure.panels.resize(1);
  figure.x_log = false;
  figure.x_categories = {label, "b " + label, "c", "d"};
  for (FigureSeries& series : figure.panels[0].series)
    for (std::size_t i = 0; i < series.points.size(); ++i) series.points[i].x = static_cast<double>(i);
  add(figure, "names");
  HeatMap map = heat_map();
  map.x_label = map.y_label = map.value_label = label;
  map.y_names[2] = label;
  for (HeatMapPanel& panel : map.panels) panel.name = label + " " + panel.name.substr(0, 5);
  add(map, "map");
  map.compact = true;
  add(map, "compact");
  Forest forest;
  forest.panels.resize(1);
  forest.panels[0].label = label;
  forest.panels[0].rows = {{label, "1", "reproduced", 0.1, 0.05, 0.2},
                           {label, "2", "refuted", -0.1, -0.2, 0.1}};
  add(forest, "forest");
  return drawings;
}

}  // namespace

TEST_CASE("labels of 1 to 60 letters are whole, on the page and apart, in every kind and format") {
  FigureStyle column;
  column.width = 3.25;
  column.height = 2.6;
  column.legend = LegendPlace::right;
  for (const std::size_t letters : {2U, 12U, 29U, 60U})
    for (const FigureStyle& style : {FigureStyle(), column}) {
      CAPTURE(letters);
      for (const Drawing& drawing : labelled_drawings(word_of(letters), style)) {
        check_whole_words(drawing, letters);
        check_drawing(drawing);
      }
    }
}

TEST_CASE("text widths are those of the font; no line is wider than it may be") {
  CHECK(text_width("Hi", 10) == doctest::Approx(0.1 * (75.2 + 27.8)).epsilon(1e-9));
  CHECK(text_width("", 10) == 0);
  const std::vector<std::string> lines = wrapped(kLong, 7.5, 100);
  CHECK(widest(lines, 7.5) <= 100);
  std::string joined;
  for (const std::string& line : lines) joined += line;
  std::string letters = kLong;
  std::erase(letters, ' ');
  std::erase(joined, ' ');
  CHECK(joined == letters);
}

TEST_CASE("no text of lines leaves the page or lies on another, on any terminal") {
  Figure figure = lines();
  check_drawing(drawing_of(figure));
  figure.id = "panels";
  for (int i = 1; i < 5; ++i) figure.panels.push_back(figure.panels[0]);
  for (FigurePanel& panel : figure.panels) panel.name = kLong;
  check_drawing(drawing_of(figure));
  figure = lines();
  figure.id = "names";
  figure.x_log = false;
  figure.x_categories = {"linear router", "cosine router", "perturbed cosine router", "none"};
  for (FigureSeries& series : figure.panels[0].series)
    for (std::size_t i = 0; i < series.points.size(); ++i) series.points[i].x = static_cast<double>(i);
  check_drawing(drawing_of(figure));
}

TEST_CASE("no text of a map leaves the page or lies on another, on any terminal") {
  HeatMap map = heat_map();
  check_drawing(drawing_of(map));
  map.id = "compact";
  map.compact = true;
  map.x_label = "expert";
  map.y_label = "cluster";
  map.value_label = "mean routing";
  check_drawing(drawing_of(map));
}

TEST_CASE("no text of rate panels or an embedding leaves the page or lies on another, on any terminal") {
  RatePanels rates;
  rates.id = "rates";
  rates.title = rates.caption = rates.x_label = rates.y_label = kLong;
  rates.rows = {"upper", kLong};
  rates.columns = {"left", kLong};
  rates.references = {{-0.5, "slope −1/2"}, {-0.25, "slope −1/4"}};
  const RateLine line = {"2 experts, cells with one fit",
                         {{1000, 0.1, 0.09, 0.12, 0.11}, {10000, 0.03, 0.02, 0.04, 0.035}},
                         "-0.50 ± 0.02"};
  rates.panels = {{line}, {line}, {line}, {line}};
  check_drawing(drawing_of(rates));

  Embedding embedding;
  embedding.id = "embedding";
  embedding.title = embedding.caption = kLong;
  embedding.label = "expert";
  for (int i = 0; i < 3; ++i)
    embedding.panels.push_back({kLong, {{0, 1, 3, 0}, {2, -1, 5, 1}, {1, 0, 9, -1}}});
  embedding.panels[1].regions = {{0, 1, 0, 1, 3, 0}, {1, 2, 0, 1, 5, 1}};
  embedding.panels[1].means = {{1, 1, 0, -1}};
  embedding.panels[1].arrows = {{1, -1, 5, 1}};
  embedding.mean_name = embedding.x_label = embedding.y_label = kLong;
  embedding.arrow_name = "router row";
  check_drawing(drawing_of(embedding));
}

}  // namespace moelab::extents_test
