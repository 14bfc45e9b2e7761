#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "plots/painters/gnuplot.h"
#include "plots/report/report.h"

namespace moelab::thinned_test {
namespace {

/// A line of so many steps with one high and one low point, and as many seeds at each.
Figure curve(int steps, std::size_t seeds) {
  Figure figure;
  figure.id = "loss";
  figure.caption = "Mean of seeds.";
  FigureSeries line{"learned", {}};
  for (int step = 0; step < steps; ++step) {
    const double mean = step == steps / 3 ? 7 : step == steps / 2 ? -7 : std::cos(0.001 * step);
    line.points.push_back({static_cast<double>(step), mean, mean - 0.125, mean + 0.125,
                           std::vector<std::optional<double>>(seeds, mean)});
  }
  figure.panels = {{"", {line}}};
  return figure;
}

TEST_CASE("thinned: a figure of few numbers stays as it is") {
  const Figure figure = curve(100, 3);
  const Figure same = thinned(figure, 100 * 7);
  CHECK(figure_csv(same) == figure_csv(figure));
  CHECK(same.caption == figure.caption);
}

TEST_CASE("thinned: ends and peaks stay, order stays, the caption tells where all of it is") {
  for (const bool is_log : {false, true}) {
    Figure figure = curve(100000, 3);
    figure.x_log = is_log;
    const Figure thin = thinned(figure, 7000);
    const std::vector<FigurePoint>& points = thin.panels.front().series.front().points;
    CHECK(points.size() <= 1000);
    CHECK(points.size() > 100);
    CHECK(points.front().x == 0);
    CHECK(points.back().x == 99999);
    CHECK(std::is_sorted(points.begin(), points.end(),
                         [](const auto& left, const auto& right) { return left.x < right.x; }));
    for (const double peak : {7.0, -7.0})
      CHECK(std::any_of(points.begin(), points.end(), [&](const auto& point) { return point.mean == peak; }));
    CHECK(points.front().seeds.size() == 3);
    CHECK(thin.caption.find("Mean of seeds. Thinned to ") == 0);
    CHECK(thin.caption.find("of 100000 points") != std::string::npos);
    CHECK(thin.caption.find("figures/loss.csv has all.") != std::string::npos);
    // On a logarithmic axis the beginning has as much room as the end.
    const auto early = std::count_if(points.begin(), points.end(), [](const auto& p) { return p.x < 1000; });
    CHECK((early > 50) == is_log);
  }
}

TEST_CASE("thinned: seeds that nobody draws go, gaps stay, equal places make no stretch") {
  CHECK(thinned(curve(1000, 10), 1000).panels.front().series.front().points.front().seeds.empty());
  Figure gaps = curve(1000, 0);
  for (FigurePoint& point : gaps.panels.front().series.front().points) point.mean.reset();
  CHECK(thinned(gaps, 100).panels.front().series.front().points.size() >= 2);
  Figure still = curve(1000, 0);
  for (FigurePoint& point : still.panels.front().series.front().points) point.x = 5;
  CHECK(thinned(still, 100).panels.front().series.front().points.size() <= 4);
}

TEST_CASE("thinned: a page of 10^5 recorded steps stays below 5 MB") {
  Report report;
  report.runs.emplace_back();
  for (int figure = 0; figure < 4; ++figure)
    report.runs.back().figures.push_back({drawing_of(curve(100000, 5)), ""});
  CHECK(report_html(report).size() < 5'000'000);
}

}  // namespace
}  // namespace moelab::thinned_test
