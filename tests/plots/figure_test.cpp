#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "plots/painters/gnuplot.h"
#include "plots/report/table.h"
#include "sim/base/error.h"
#include "tests/temporary_folder.h"

namespace moelab::figure_test {
namespace {

std::string content(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

FigurePoint point(double x, double mean) {
  return {x, mean, 0.8 * mean, 1.2 * mean, {0.9 * mean, 1.1 * mean}};
}

Figure example() {
  Figure figure;
  figure.id = "loss";
  figure.title = "It's a_title with ^{markup} & <tags>";
  figure.caption = "Mean of 2 seeds.";
  figure.x_label = "training samples";
  figure.y_label = "test_loss";
  figure.x_log = figure.y_log = true;
  figure.panels = {
      {"",
       {{"learned, \"x\"", {point(1, 0.3), point(10, 0.1), {100, {}, {}, {}, {{}, {}}}, point(1000, 0.01)}},
        {"floor", {point(1, 0.005), point(1000, 0.005)}, SeriesLook::reference}}}};
  return figure;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("the CSV is tidy, exact, and empty where a value is missing") {
  CHECK(figure_csv(example()) ==
        "series,x,mean,low,high,seed_0,seed_1\n"
        "\"learned, 'x'\",1,0.3,0.24,0.36,0.27,0.33\n"
        "\"learned, 'x'\",10,0.1,0.08000000000000002,0.12,0.09000000000000001,0.11000000000000001\n"
        "\"learned, 'x'\",100,,,,,\n"
        "\"learned, 'x'\",1000,0.01,0.008,0.012,0.009000000000000001,0.011000000000000001\n"
        "\"floor\",1,0.005,0.004,0.006,0.0045000000000000005,0.0055000000000000005\n"
        "\"floor\",1000,0.005,0.004,0.006,0.0045000000000000005,0.0055000000000000005\n");
}

TEST_CASE("a missing point, or one that a logarithmic axis cannot show, splits the line") {
  const std::string script = gnuplot_script(example());
  CHECK(script.find("every ::1::2 using 2:3 with lines lw 1.3") != std::string::npos);
  CHECK(script.find("every ::4::4 using 2:3 with lines lw 1.3") != std::string::npos);
  Figure zero = example();
  zero.panels[0].series[0].points[1].mean = 0;
  CHECK(gnuplot_script(zero).find("every ::1::1 using 2:3 with lines lw 1.3") != std::string::npos);
  zero.y_log = false;
  CHECK(gnuplot_script(zero).find("every ::1::2 using 2:3 with lines lw 1.3") != std::string::npos);
}

TEST_CASE("thin lines are drawn below ten seeds, and none for a reference") {
  // Each of the three terminals has all clauses.
  CHECK(count(gnuplot_script(example()), "with lines lw 0.4") == 3 * 2);
  Figure ten = example();
  for (FigurePoint& at : ten.panels[0].series[0].points) at.seeds.resize(10, 0.1);
  CHECK(count(gnuplot_script(ten), "with lines lw 0.4") == 0);
  CHECK(count(gnuplot_script(ten), "with filledcurves") == 3);
  CHECK(count(gnuplot_script(ten), "with yerrorbars") == 3);  // the lone point after the gap
}

TEST_CASE("many points: a line has some of the markers, marks without a line have all of them") {
  Figure figure = example();
  std::vector<FigurePoint>& points = figure.panels[0].series[0].points;
  points.clear();
  for (int i = 1; i <= 30; ++i) points.push_back(point(i, 0.1 * i));
  CHECK(gnuplot_script(figure).find("every 3::1::30 using 2:3 with points") != std::string::npos);
  figure.panels[0].series[0].look = SeriesLook::marks;
  CHECK(gnuplot_script(figure).find("every ::1::30 using 2:3 with points") != std::string::npos);
}

TEST_CASE("names of panels have the lines that they need, up to three") {
  Figure figure = example();
  figure.panels.push_back(figure.panels[0]);
  figure.panels[0].name = "test loss, samples = 320";
  figure.panels[1].name = figure.panels[0].name;
  const FigureLayout one(figure);
  REQUIRE(one.panel_names.at(1).size() == 1);
  for (int i = 0; i < 4; ++i) figure.panels[1].name += ", another swept path = 1";
  const FigureLayout three(figure);
  CHECK(three.panel_names.at(0).size() == 1);
  CHECK(three.panel_names.at(1).size() == 3);
  CHECK(three.step == doctest::Approx(one.step + 2 * kLabelLine));
  // More needs letters, and the caption says what they stand for.
  for (int i = 0; i < 20; ++i) figure.panels[1].name += ", another swept path = 1";
  const FigureLayout letters(figure);
  CHECK(letters.panel_names.at(1) == std::vector<std::string>{"P2"});
  CHECK(letters.caption.find(" P1: test loss, samples = 320; P2: test loss") != std::string::npos);
}

TEST_CASE("more names than stand side by side: every so many of them") {
  Figure figure = example();
  figure.x_log = false;
  const auto labelled = [&](int names) {
    figure.x_categories.clear();
    for (int i = 0; i < names; ++i) figure.x_categories.push_back("a long name " + std::to_string(i));
    const FigureLayout page(figure);
    CHECK(page.x.upright);
    std::size_t most_between = 0, last = 0;
    for (std::size_t i = 0; i < page.x.ticks.size(); ++i) {
      if (page.x.ticks[i].second.empty()) continue;
      most_between = std::max(most_between, i - last);
      last = i;
    }
    return std::pair(most_between, page.panel_width / names);
  };
  CHECK(labelled(10).first == 1);
  for (const int names : {30, 80}) {
    CAPTURE(names);
    const std::pair<std::size_t, double> shown = labelled(names);
    CHECK(static_cast<double>(shown.first) * shown.second > kTickFontSize);
    CHECK(shown.first < 8);
  }
}

TEST_CASE("gnuplot draws all formats, from the script alone, to the same bytes") {
  const TemporaryFolder first, second;
  const std::vector<std::filesystem::path> files =
      render(drawing_of(example()), first.path() / "deep" / "figures");
  REQUIRE(files.size() == 5);
  for (const std::filesystem::path& file : files) CHECK(std::filesystem::file_size(file) > 0);
  const std::string svg = content(files[2]);
  CHECK(svg.find("It's a_title with ^{markup} &amp; &lt;tags>") != std::string::npos);
  CHECK(content(files[3]).starts_with("%PDF"));
  CHECK(content(files[4]).substr(1, 3) == "PNG");

  for (const char* name : {"loss.csv", "loss.gp"})
    std::filesystem::copy(first.path() / "deep" / "figures" / name, second.path() / name);
  run_gnuplot(second.path(), "loss.gp");
  CHECK(content(second.path() / "loss.svg") == svg);
}

TEST_CASE("figures without a single value, and figures over names, are drawn too") {
  const TemporaryFolder folder;
  Figure empty = example();
  empty.panels = {{"", {{"learned", {{1, {}, {}, {}, {}}}}}}};
  CHECK(render(drawing_of(empty), folder.path()).size() == 5);
  empty.panels.clear();
  CHECK(render(drawing_of(empty), folder.path()).size() == 5);
  Figure names = example();
  names.x_log = false;
  names.x_categories = {"linear", "mlp"};
  names.panels = {{"", {{"base", {point(0, 1), point(1, 2)}}}}};
  CHECK(render(drawing_of(names), folder.path()).size() == 5);
  CHECK(figure_csv(names).find(",\"mlp\"\n") != std::string::npos);
}

TEST_CASE("failures of gnuplot and of the disk are environment errors") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "bad.gp") << "no_such_command\n";
  CHECK_THROWS_WITH_AS(run_gnuplot(folder.path(), "bad.gp"), doctest::Contains("no_such_command"),
                       EnvironmentError);
  CHECK_THROWS_AS(run_gnuplot(folder.path() / "nowhere", "bad.gp"), EnvironmentError);
  std::ofstream(folder.path() / "file") << "in the way\n";
  CHECK_THROWS_AS(render(drawing_of(example()), folder.path() / "file"), EnvironmentError);
}

TEST_CASE("axes: ticks at powers of two, decades, round steps") {
  const Axis searched = fit_axis_at({133.0843, 709.7827}, true);
  CHECK(searched.ticks == fit_axis({133.0843, 709.7827}, true).ticks);
  const Axis swept = fit_axis_at({4, 8, 16}, true);
  REQUIRE(swept.ticks.size() == 3);
  CHECK(swept.ticks[1].second == "8");
  CHECK(swept.low < 4);
  CHECK(swept.high > 16);
  const auto axis_at = [](const std::vector<double>& places, bool is_log) {
    Axis axis = fit_axis(places, is_log);
    axis.ticks.clear();
    for (const double place : places) axis.ticks.emplace_back(place, tick_label(place, false));
    return axis;
  };
  Axis crowded = axis_at({1000, 1001, 2000}, false);
  keep_labels_apart(crowded, 100);
  CHECK(crowded.ticks[1].second.empty());
  CHECK(crowded.ticks[2].second == "2000");
  Axis even = axis_at({1, 10, 100, 1000, 10000, 100000}, true);
  keep_labels_apart(even, 80);
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < even.ticks.size(); ++i)
    if (!even.ticks[i].second.empty()) kept.push_back(i);
  CHECK(kept == std::vector<std::size_t>{1, 3, 5});
  Axis uneven = axis_at({100, 200, 400, 800, 1600}, false);
  keep_labels_apart(uneven, 80);
  CHECK_FALSE(uneven.ticks.front().second.empty());
  CHECK(uneven.ticks[1].second.empty());
  CHECK(uneven.ticks.back().second == "1600");
  CHECK(axis_between(-1.7e308, 1.7e308).ticks.empty());  // its length is infinite
  const Axis narrow = axis_between(0.939, 0.952);
  CHECK(narrow.ticks.size() == 7);
  CHECK(narrow.ticks.front().second == "0.940");
  const Axis decades = fit_axis({1e-6, 1}, true);
  CHECK(tick_label(1e-6, true) == "10⁻⁶");
  CHECK(std::count_if(decades.ticks.begin(), decades.ticks.end(),
                      [](const auto& tick) { return !tick.second.empty(); }) == 7);
  const auto labels = [](const Axis& axis) {
    std::vector<std::string> shown;
    for (const auto& tick : axis.ticks)
      if (!tick.second.empty()) shown.push_back(tick.second);
    return shown;
  };
  using Labels = std::vector<std::string>;
  CHECK(labels(fit_axis({1e5, 2e5}, true)) == Labels{"100000", "200000"});
  CHECK(labels(fit_axis({1e6, 5e6}, true)) == Labels{"10⁶", "2×10⁶", "5×10⁶"});
  CHECK(labels(fit_axis_at({10000, 20000, 40000}, true)) == Labels{"10000", "20000"});
  CHECK(labels(fit_axis({1e4, 1e6}, true)) == Labels{"10⁴", "10⁵", "10⁶"});
  CHECK(labels(fit_axis({1, 1e4}, true)) == Labels{"1", "10", "100", "1000", "10000"});
  const Axis linear = fit_axis({0, 20000}, false);
  CHECK(linear.ticks.front().second == "0");
  CHECK(linear.ticks.back().second == "20000");
  const Axis constant = fit_axis({3, 3}, false);
  CHECK(constant.low < 3);
  CHECK(constant.high > 3);
}

TEST_CASE("axes: a range of one rounding ends, and zeros have an axis of their own") {
  const Axis rounding = axis_between(3, std::nextafter(3.0, 4.0));
  CHECK(rounding.ticks.size() <= 2);
  CHECK(axis_between(-1e300, std::nextafter(-1e300, 0.0)).ticks.size() <= 2);
  CHECK(axis_between(0, 1).ticks.size() == 6);
  const Axis zeros = fit_axis({0, 0}, false);
  CHECK(zeros.low == -1);
  CHECK(zeros.high == 1);
}

}  // namespace moelab::figure_test
