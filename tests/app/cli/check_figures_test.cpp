#include <doctest/doctest.h>

#include <cmath>

#include "app/cli/check.h"

namespace moelab::check_figures_test {
namespace {

CheckFinding slope(double exponent) {
  CheckFinding finding;
  finding.measured = exponent;
  finding.curve = {"line", "A title", "x", "y", {}};
  for (const double x : {0.1, 0.2, 0.4}) finding.curve.points.emplace_back(x, 3 * std::pow(x, exponent));
  return finding;
}

TEST_CASE("figures of checks: rows and columns from the ids, the slope through the first point") {
  const Check linear{"topic.linear.relu.flatness", "", "", CheckVerdict::holds, {}},
      cosine{"topic.cosine.relu.flatness", "", "", CheckVerdict::holds, {}},
      other{"topic.cosine.cubic.flatness", "", "", CheckVerdict::holds, {}},
      bare{"topic.cosine.gram", "", "", CheckVerdict::holds, {}};
  const std::vector<RatePanels> figures =
      check_figures({&linear, &bare, &cosine, &other}, {slope(2), {}, slope(1), slope(3)});
  REQUIRE(figures.size() == 1);
  const RatePanels& figure = figures[0];
  CHECK(figure.id == "topic-flatness");
  CHECK(figure.title == "A title");
  CHECK(figure.rows == std::vector<std::string>{"linear", "cosine"});
  CHECK(figure.columns == std::vector<std::string>{"relu", "cubic"});
  REQUIRE(figure.panels.size() == 4);
  CHECK(figure.panels[1].empty());
  const RateLine& line = figure.panels[3].at(0);
  CHECK(line.slope == "3.00");
  REQUIRE(line.points.size() == 3);
  for (const RatePoint& point : line.points) CHECK(std::abs(*point.fitted / *point.mean - 1) < 1e-12);
}

TEST_CASE("figures of checks: none where no check has a curve") {
  const Check bare{"topic.gram", "", "", CheckVerdict::holds, {}};
  CHECK(check_figures({&bare}, {{}}).empty());
}

}  // namespace
}  // namespace moelab::check_figures_test
