#include <doctest/doctest.h>

#include "tests/app/scenario/refused.h"
#include "tests/plots/kinds/built_figure.h"

namespace moelab::app_claim_figure_test {
namespace {

/// Arms fast and slow with seven seeds at n = 10 and 20, of which two pairs at 20 are both censored, and a
/// third one's fast side after the other's target. At 10 no step is censored.
RunResults censored_pairs() {
  RunResults results;
  set_head(results, {{"title", "Steps"}, {"figures", Json::array()}});
  set_head(results, {{"claims", Json::parse(R"([
    {"id": "sooner", "op": "<", "left": {"arm": "fast", "metric": "steps_to_target", "factor": 1},
     "right": {"arm": "slow", "metric": "steps_to_target", "factor": 1}, "at": "each"}])")}});
  results.table.arms = {"fast", "slow"};
  results.table.sweep_paths = {"data.n"};
  for (const std::string& arm : results.table.arms)
    for (const int n : {10, 20})
      for (int seed = 0; seed < 7; ++seed) {
        const bool is_slow = arm == "slow";
        const bool is_censored = n == 20 && (is_slow ? seed != 2 : seed < 3);
        MetricValues metrics = {{"steps_to_target_censored", is_censored ? 1 : 0}};
        if (!is_censored) metrics["steps_to_target"] = (is_slow ? 80 : 40) + seed;
        results.table.rows.push_back({"", arm, seed, {{"data.n", n}}, "done", metrics, {{100, {}}}});
      }
  return results;
}

Figure claim_figure(const RunResults& results) {
  return built_figure<Figure>({{"kind", "claim"}, {"id", "f"}, {"claim", "sooner"}}, results);
}

}  // namespace

TEST_CASE("a claim of censored steps shows the shares that the sign test judges") {
  RunResults results = censored_pairs();
  const Figure figure = claim_figure(results);
  CHECK(figure.y_label == "share of pairs, left below right");
  CHECK_FALSE(figure.y_log);
  CHECK(figure.y_range == std::pair(0.0, 1.0));
  const std::vector<FigureSeries>& series = figure.panels.at(0).series;
  REQUIRE(series.size() == 2);
  CHECK(series[0].name == "decidable pairs, 95 % interval");
  // Of n = 20 four of five pairs; n = 10, which is judged by its interval, stands in the caption.
  CHECK_FALSE(series[0].points.at(0).mean);
  const FigurePoint& share = series[0].points.at(1);
  CHECK(share.mean.value() == doctest::Approx(0.8));
  CHECK(share.low.value() == doctest::Approx(0.2836).epsilon(1e-3));
  CHECK(share.high.value() == doctest::Approx(0.9949).epsilon(1e-3));
  CHECK_FALSE(share.censored);
  CHECK(series[1].name == "equal chances, 1/2");
  for (const FigurePoint& point : series[1].points) CHECK(point.mean == 0.5);
  CHECK(figure.caption.find(" 20: 4 of 5 (2 more tied or unknown).") != std::string::npos);
  CHECK(figure.caption.find(" Not drawn, without a censored step: geometric mean of left ÷ right with its "
                            "95 % interval, 10: 0.518 [") != std::string::npos);
  CHECK(figure.caption.find("Geometric mean of the ratio") == std::string::npos);
}

TEST_CASE("the figure of a claim of a decided run shows its sequences, and shares without an interval") {
  RunResults results = censored_pairs();
  results.table.is_decided = true;
  results.head.decided = DecidedSeeds{3, {}};
  const FigureSeries shares = claim_figure(results).panels.at(0).series.at(0);
  CHECK(shares.name == "decidable pairs");
  CHECK(shares.points.at(1).mean.value() == doctest::Approx(0.8));
  CHECK_FALSE(shares.points[1].low);

  const Figure censored_nowhere = [&] {
    RunResults exact = results;
    std::erase_if(exact.table.rows,
                  [](const ResultRow& row) { return row.point.at(0).second.number() == 20; });
    return claim_figure(exact);
  }();
  RunResults fixed = results;
  std::erase_if(fixed.table.rows, [](const ResultRow& row) { return row.point.at(0).second.number() == 20; });
  fixed.table.is_decided = false;
  const FigureSeries sequence = censored_nowhere.panels.at(0).series.at(0);
  const FigureSeries interval = claim_figure(fixed).panels.at(0).series.at(0);
  CHECK(sequence.name == "paired seeds, 95 % confidence sequence");
  CHECK(interval.name == "paired seeds, 95 % interval");
  CHECK(sequence.points.at(0).low.value() < interval.points.at(0).low.value());
}

TEST_CASE("metrics in an expression of a claim have the names that they have at axes") {
  RunResults results = censored_pairs();
  set_head(results, {{"claims", Json::parse(R"([
    {"id": "sooner", "op": "<",
     "left": {"arm": "fast", "metric": "effective_experts / model.experts", "factor": 1},
     "right": {"value": "0.5"}, "at": "last"}])")}});
  results.table.fixed["model.experts"] = 4;
  for (ResultRow& row : results.table.rows) row.metrics["effective_experts"] = 1.5;
  CHECK(claim_figure(results).title == "fast (effective experts per cluster ÷ experts) < 0.5");
}

}  // namespace moelab::app_claim_figure_test
