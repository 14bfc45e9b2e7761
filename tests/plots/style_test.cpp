/// Styles of figures: sizes, fonts, captions, axes and colours.

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
#include "plots/painters/gnuplot.h"
#include "plots/texts.h"
#include "sim/base/error.h"
#include "tests/plots/command_output.h"
#include "tests/temporary_folder.h"

namespace moelab::style_test {
namespace {

namespace fs = std::filesystem;

std::string file_text(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

Figure lines(const FigureStyle& style) {
  Figure figure;
  figure.id = "loss";
  figure.title = "Loss of L_o";
  figure.caption = "Mean of n = 5120 rows, 95 % interval, n^{-1/2} & τ.";
  figure.x_label = "training samples";
  figure.y_label = "L_o";
  figure.x_log = true;
  figure.panels.emplace_back();
  for (const char* name : {"learned", "frozen"}) {
    FigureSeries series{name, {}};
    for (const double x : {320.0, 640.0, 1280.0})
      series.points.push_back({x, (name[0] == 'l' ? 1 : 3) + 100 / x});
    figure.panels[0].series.push_back(series);
  }
  figure.style = style;
  return figure;
}

/// Width and height of a PDF in inches.
std::pair<double, double> page_inches(const fs::path& pdf) {
  const std::string text = output_of("pdfinfo '" + pdf.string() + "'");
  double width = 0, height = 0;
  const std::size_t at = text.find("Page size:");
  REQUIRE(at != std::string::npos);
  REQUIRE(sscanf(text.c_str() + at, "Page size: %lf x %lf", &width, &height) == 2);
  return {width / 72, height / 72};
}

std::array<double, 3> linear_parts(const std::string& colour) {
  const unsigned long all = std::stoul(colour, nullptr, 16);
  std::array<double, 3> parts{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double part = static_cast<double>((all >> (16 - 8 * i)) & 0xFF) / 255;
    parts[i] = part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4);
  }
  return parts;
}

/// The colour in CIE L*a*b* as a reader with deuteranopia sees it (Machado et al. 2009, severity 1).
std::array<double, 3> lab_of_deuteranope(const std::string& colour) {
  constexpr double kSeen[3][3] = {
      {0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}};
  constexpr double kXyz[3][3] = {
      {0.4124, 0.3576, 0.1805}, {0.2126, 0.7152, 0.0722}, {0.0193, 0.1192, 0.9505}};
  constexpr double kWhite[3] = {0.9505, 1, 1.089};
  const std::array<double, 3> parts = linear_parts(colour);
  std::array<double, 3> seen{}, f{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) seen[i] += kSeen[i][j] * parts[j];
    seen[i] = std::clamp(seen[i], 0.0, 1.0);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    double value = 0;
    for (std::size_t j = 0; j < 3; ++j) value += kXyz[i][j] * seen[j];
    value /= kWhite[i];
    f[i] = value > 0.008856 ? std::cbrt(value) : 7.787 * value + 16.0 / 116;
  }
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

}  // namespace

TEST_CASE("presets have the widths of their pages, fonts that conferences take, and captions in files") {
  for (const auto& preset : {std::pair{"icml", 3.25}, {"neurips", 5.5}, {"jmlr", 6.0}}) {
    const char* const name = preset.first;
    const double width = preset.second;
    CAPTURE(name);
    const TemporaryFolder folder;
    const Figure figure = lines(style_preset(name, "style"));
    render(drawing_of(figure), folder.path());
    const fs::path pdf = folder.path() / "loss.pdf";
    CHECK(std::abs(page_inches(pdf).first - width) < 0.01);
    const std::string fonts = output_of("pdffonts '" + pdf.string() + "'");
    CHECK(fonts.find("TrueType") != std::string::npos);
    CHECK(fonts.find("Type 3") == std::string::npos);
    CHECK(fonts.find("DejaVuSerif") != std::string::npos);
    const std::string words = output_of("pdftotext '" + pdf.string() + "' -");
    CHECK(words.find("Loss") == std::string::npos);
    CHECK(words.find("5120") == std::string::npos);
    CHECK(words.find("Lₒ") != std::string::npos);
    CHECK(file_text(folder.path() / "loss.tex") ==
          "\\caption{Loss of $L_{o}$. Mean of n~=~5120 rows, 95~\\% interval, $n^{-1/2}$ \\& $\\tau$.}\n"
          "\\label{fig:loss}\n");
    CHECK(file_text(folder.path() / "loss.txt") ==
          "Loss of L_o. Mean of n = 5120 rows, 95 % interval, n^{-1/2} & τ.\n");
    const std::string svg = file_text(folder.path() / "loss.svg");
    CHECK(svg.find(fmt::format("<title>moelab_layout_{}</title>", kLayoutVersion)) != std::string::npos);
  }
  CHECK_THROWS_AS(style_preset("nature", "--style"), UserError);
}

TEST_CASE("a style sets width, height, letters, formats and what the page has") {
  FigureStyle style;
  style.width = 4.2;
  style.height = 2.7;
  style.size = 11;
  style.format = {"pdf"};
  style.caption = CaptionPlace::none;
  for (const LegendPlace place :
       {LegendPlace::below, LegendPlace::right, LegendPlace::inside, LegendPlace::direct}) {
    style.legend = place;
    const TemporaryFolder folder;
    const std::vector<fs::path> files = render(drawing_of(lines(style)), folder.path());
    CHECK(files.size() == 3);
    CHECK_FALSE(fs::exists(folder.path() / "loss.svg"));
    const auto [width, height] = page_inches(folder.path() / "loss.pdf");
    CHECK(std::abs(width - 4.2) < 0.01);
    CHECK(std::abs(height - 2.7) < 0.01);
    const std::string words = output_of("pdftotext '" + (folder.path() / "loss.pdf").string() + "' -");
    CHECK(words.find("learned") != std::string::npos);
    CHECK(words.find("Loss of") != std::string::npos);
    CHECK(words.find("interval") == std::string::npos);
  }
  style.font = "Times', evil";
  CHECK_THROWS_AS(style.check("style"), UserError);
  FigureStyle own;
  own.width = 2;
  CHECK(own.over(style).width == 2);
  CHECK(own.over(style).height == 2.7);
}

TEST_CASE("captions do not end a line between a number and its sign") {
  for (double width = 30; width < 200; width += 7)
    for (const std::string& line :
         wrapped("the mean of n = 5120 rows has a 95 % interval of 2 ± 1 here", 6.5, width)) {
      CAPTURE(line);
      if (width < 60) continue;  // narrower than what belongs together
      for (const char* sign : {"=", "%", "±"}) {
        CHECK_FALSE(line.starts_with(sign));
        if (*sign != '%') CHECK_FALSE(line.ends_with(sign));
      }
    }
}

TEST_CASE("names are shortened by meaning, and the caption has the key") {
  const FittedNames plain = fitted_names({"a", "b"}, 7.5, 100, 1, "P");
  CHECK(plain.key.empty());
  const FittedNames shared = fitted_names({"cosine router, tau 1", "cosine router, tau 2"}, 7.5, 20, 1, "P");
  CHECK(shared.lines == std::vector<std::vector<std::string>>{{"1"}, {"2"}});
  CHECK(shared.key == " Names leave out “cosine router, tau”.");
  const FittedNames smaller = fitted_names({"learned"}, 7.5, 24, 1, "P");
  CHECK(smaller.size < 7.5);
  CHECK(smaller.lines.front().front() == "learned");
  const FittedNames letters = fitted_names({std::string(60, 'm'), "frozen"}, 7.5, 20, 2, "P");
  CHECK(letters.lines == std::vector<std::vector<std::string>>{{"P1"}, {"P2"}});
  CHECK(letters.key == " P1: " + std::string(60, 'm') + "; P2: frozen.");
  CHECK(math_text("test_loss of L_o, n^{-1/2}, x_12") == "test_loss of Lₒ, n⁻¹ᐟ², x₁₂");
  // TeX's text fonts have other letters in the places of these signs.
  CHECK(latex_text("a < b | c") == "a $<$ b $|$ c");
  CHECK(signed_text("-0.05") == "−0.05");
  CHECK(signed_text("-0.00") == "0.00");
  CHECK(with_minus_signs("-0.27 [-0.65, 0.10], may be n^-1/4, a-1, 1e-5, -0.00, x --at -1") ==
        "−0.27 [−0.65, 0.10], may be n^-1/4, a-1, 1e-5, 0.00, x --at −1");
  CHECK(math_text("n^-1/4, n^-2") == "n⁻¹ᐟ⁴, n⁻²");
  CHECK(latex_text("n^-1/4") == "$n^{-1/4}$");
  CHECK(math_text("n^-x, a n^2/3") == "n^-x, a n²/3");
}

TEST_CASE("compact panels that would be narrow have several rows, with labels at the outer ones") {
  HeatMap map;
  map.id = "map";
  map.compact = true;
  map.x_names = map.y_names = {"0", "1"};
  map.panels.assign(4, HeatMapPanel{"a router", {0, 0, 0, 1}, {}});
  map.style.width = 6.9;
  const std::vector<PanelPlace> wide = HeatMapLayout(map).panels;
  map.style = style_preset("icml", "style");
  map.value_label = map.y_label = "a label that has two lines here";
  const std::vector<PanelPlace> narrow = HeatMapLayout(map).panels;
  CHECK(wide.back().bottom == wide.front().bottom);
  CHECK(narrow[2].left == narrow[0].left);
  CHECK(narrow[2].bottom + narrow[2].height < narrow[0].bottom);
  CHECK(narrow[1].bottom == narrow[0].bottom);
  CHECK_FALSE(narrow[1].has_x_labels);
  CHECK(narrow[3].has_x_labels);
  CHECK(narrow[2].has_y_labels);
  CHECK_FALSE(narrow[3].has_y_labels);
}

TEST_CASE("names of claims and points have a column of their own, and a lone interval is within its axis") {
  Forest forest;
  forest.id = "claims";
  const std::string claim = "more_experts_specialise_sooner_than_fewer_experts";
  forest.panels = {{"left ÷ right",
                    true,
                    1,
                    {},
                    "",
                    {{claim, "320", "refuted", 2, 1.5, 3}, {claim, "640", "refuted", 3, 2, 5}}},
                   {"left − right", false, 0, {}, "", {{"alone", "", "inconclusive", 0.02, -0.3, 0.34}}}};
  const ForestLayout layout(forest);
  CHECK(layout.caption == forest.caption);  // no letters stand for names
  std::string names;
  for (const PanelPlace& panel : layout.panels)
    for (const PageMark& mark : panel.marks) {
      if (mark.role != TextRole::row) continue;
      names += mark.text + (mark.text.ends_with('_') ? "" : " ");
      CHECK(mark.x + text_width(mark.text, mark.size) < panel.left);
    }
  CHECK(names == claim + " 320 640 alone ");
  // A long name has lines of its own, each as high as a row.
  const double lines = layout.panels[0].own_y->high - 2;
  CHECK(lines > 1);
  CHECK(layout.panels[0].height / layout.panels[0].own_y->high ==
        doctest::Approx(layout.panels[1].height / layout.panels[1].own_y->high));
  CHECK(layout.panels[1].own_y->high == 1);
  CHECK(layout.marks[0][0].place == doctest::Approx(1.5));
  CHECK(layout.panels[1].own_x->low <= -0.3);
  CHECK(layout.panels[1].own_x->high >= 0.34);
}

TEST_CASE("ticks are 1-2-5 steps or powers, never values of the data") {
  const auto labels = [](const Axis& axis) {
    std::string all;
    for (const auto& [place, label] : axis.ticks) all += label.empty() ? "" : label + " ";
    return all;
  };
  CHECK(labels(fit_axis_at({0.3616, 0.696, 0.8296, 1.1176}, false)) == "0.4 0.6 0.8 1.0 ");
  CHECK(labels(fit_axis_at({2, 4, 8, 16}, true)) == "2 4 8 16 ");
  CHECK(labels(fit_axis_at({0.125, 0.5, 1}, true)) == "0.125 0.5 1 ");
  CHECK(labels(fit_axis_at({0.00390625, 0.25, 1}, true)) == "1/256 1/4 1 ");
  CHECK(labels(fit_axis_at({320, 640, 1280, 2560}, true)) == "500 1000 2000 ");
  CHECK(labels(fit_axis_at({1, 2, 3}, false)) == "1 2 3 ");
  CHECK(labels(fit_axis({0.31, 0.42}, true)) == "0.32 0.34 0.36 0.38 0.40 0.42 ");
  // Values within a thousandth still have an axis of a tenth, on either kind.
  CHECK(labels(fit_axis({1.0, 1.001}, true)) == "0.96 0.98 1.00 1.02 1.04 ");
  CHECK(labels(fit_axis({1.0, 1.001}, false)) == "0.96 0.98 1.00 1.02 1.04 ");
  // One notation in an axis.
  const std::string small = labels(fit_axis({0, 2e-4}, false));
  CHECK(small.find("e-") == std::string::npos);
  CHECK(small.find("×10⁻⁵") != std::string::npos);
}

TEST_CASE("shares stay within their bounds, and outliers are named") {
  Figure figure = lines({});
  for (FigureSeries& series : figure.panels[0].series)
    for (FigurePoint& point : series.points) point = {point.x, 0.9, 0.5, 1.4, {}};
  figure.y_bounds = {0, 1};
  const FigureLayout share(figure);
  CHECK(share.y.low >= 0);
  CHECK(share.y.high == 1);
  Figure far = lines({});
  far.panels[0].series[1].points[0].high = 1e4;
  leave_out_outliers(far);
  CHECK(FigureLayout(far).y.high < 20);
  CHECK(far.caption.ends_with(" Outside the axis: frozen reaches 1e+04."));
  Figure near = lines({});
  leave_out_outliers(near);
  CHECK_FALSE(near.y_range);
}

TEST_CASE("the legend has the order of all panels and nothing that is not drawn") {
  Figure figure = lines({});
  figure.y_log = true;
  const auto series = [](const char* name, double mean) {
    return FigureSeries{name, {{1, mean}, {2, mean}}};
  };
  figure.panels = {{"a", {series("4", 1), series("16", 1)}},
                   {"b", {series("4", 1), series("8", 1), series("16", 1), series("0", 0)}}};
  figure.panels[1].series[1].points.resize(1);
  std::vector<std::string> names;
  std::vector<bool> has_line;
  const FigureLayout layout(figure);
  for (const PageMark& mark : layout.panels[0].marks) {
    if (mark.role == TextRole::legend && !mark.sample) names.push_back(mark.text);
    if (mark.sample) has_line.push_back(!mark.sample->dash.empty());
  }
  CHECK(names == std::vector<std::string>{"4", "8", "16"});
  CHECK(has_line == std::vector<bool>{true, false, true});
}

TEST_CASE("texts have a contrast of 4.5 on what is behind them") {
  for (const char* colour : kColours) CHECK(contrast(readable_colour(colour), "FFFFFF") >= kLeastContrast);
  CHECK(contrast("000000", "FFFFFF") == doctest::Approx(21));
  for (const double low : {0.0, -1.0}) {
    HeatMap map;
    map.id = "map";
    map.low = low;
    map.x_names = {"1"};
    map.panels.emplace_back();
    for (int i = 0; i <= 40; ++i) {
      map.y_names.push_back(fmt::format("{}", i));
      map.panels[0].values.emplace_back(low + (1 - low) * i / 40);
    }
    const HeatMapLayout layout(map);
    REQUIRE(layout.has_numbers);
    const auto parts = static_cast<double>(layout.palette.size() - 1);
    for (std::size_t i = 0; i <= 40; ++i) {
      const double at = parts * static_cast<double>(i) / 40;
      const auto first = std::min(static_cast<std::size_t>(at), layout.palette.size() - 2);
      const unsigned long low_end = std::stoul(layout.palette[first] + 1, nullptr, 16),
                          high_end = std::stoul(layout.palette[first + 1] + 1, nullptr, 16);
      std::string colour;
      for (const int shift : {16, 8, 0}) {
        const auto a = static_cast<double>((low_end >> shift) & 0xFF),
                   b = static_cast<double>((high_end >> shift) & 0xFF);
        colour += fmt::format("{:02X}",
                              static_cast<int>(std::lround(a + (at - static_cast<double>(first)) * (b - a))));
      }
      CAPTURE(colour);
      CHECK(contrast(colour, layout.cells[0][i].is_bright ? "000000" : "FFFFFF") >= kLeastContrast);
    }
  }
}

TEST_CASE("readers with deuteranopia can tell the colours of lines apart") {
  constexpr double kLeastDistance = 10;
  for (std::size_t i = 0; i < kColours.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const std::array<double, 3> own = lab_of_deuteranope(kColours[i]),
                                  other = lab_of_deuteranope(kColours[j]);
      CAPTURE(kColours[i]);
      CAPTURE(kColours[j]);
      CHECK(std::hypot(own[0] - other[0], own[1] - other[1], own[2] - other[2]) >= kLeastDistance);
    }
}

}  // namespace moelab::style_test
