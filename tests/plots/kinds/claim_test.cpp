#include <doctest/doctest.h>

#include "tests/app/scenario/refused.h"
#include "tests/plots/kinds/built_figure.h"

namespace moelab::app_claim_figure_test {
namespace {

/// Arms fast and slow with seven seeds at n = 10 and 20. At 20 both steps of two pairs are censored, and a
/// third pair's fast side is after the slow side's target. At 10 no step is censored.
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

Forest claim_figure(const RunResults& results) {
  return built_figure<Forest>({{"kind", "claim"}, {"id", "f"}, {"claim", "sooner"}}, results);
}

}  // namespace

TEST_CASE("a claim of censored steps shows the shares that the sign test judges") {
  RunResults results = censored_pairs();
  const Forest figure = claim_figure(results);
  const ForestPanel& panel = figure.panels.at(0);
  CHECK(panel.label == "share of pairs, left below right");
  CHECK_FALSE(panel.is_log);
  CHECK(panel.range == std::pair(0.0, 1.0));
  CHECK(panel.no_effect == 0.5);
  CHECK(figure.csv.find("\"decidable pairs, 95 % interval\"") != std::string::npos);
  CHECK(figure.csv.find("\"equal chances, 1/2\"") != std::string::npos);
  REQUIRE(panel.rows.size() == 2);
  // Of n = 20 four of five pairs; n = 10, which is judged by its interval, stands in the caption.
  CHECK_FALSE(panel.rows[0].mean);
  const ForestRow& share = panel.rows[1];
  CHECK(share.point == "20");
  CHECK(share.mean.value() == doctest::Approx(0.8));
  CHECK(share.low.value() == doctest::Approx(0.2836).epsilon(1e-3));
  CHECK(share.high.value() == doctest::Approx(0.9949).epsilon(1e-3));
  CHECK(figure.caption.find(" 20: 4 of 5 (2 more tied or unknown).") != std::string::npos);
  CHECK(figure.caption.find(" Not drawn, without a censored step: geometric mean of left ÷ right with its "
                            "95 % interval, 10: 0.518 [") != std::string::npos);
  CHECK(figure.caption.find("Geometric mean of the ratio") == std::string::npos);
}

TEST_CASE("the figure of a claim of a decided run shows its sequences, and shares without an interval") {
  RunResults results = censored_pairs();
  results.table.is_decided = true;
  results.head.decided = DecidedSeeds{3, {}};
  const Forest shares = claim_figure(results);
  CHECK(shares.csv.find("\"decidable pairs\"") != std::string::npos);
  CHECK(shares.panels.at(0).rows.at(1).mean.value() == doctest::Approx(0.8));
  CHECK_FALSE(shares.panels[0].rows[1].low);

  RunResults exact = results;
  std::erase_if(exact.table.rows, [](const ResultRow& row) { return row.point.at(0).second.number() == 20; });
  const Forest sequence = claim_figure(exact);
  exact.table.is_decided = false;
  const Forest interval = claim_figure(exact);
  CHECK(sequence.csv.find("paired seeds, 95 % confidence sequence") != std::string::npos);
  CHECK(interval.csv.find("paired seeds, 95 % interval") != std::string::npos);
  CHECK(sequence.panels[0].rows.at(0).low.value() < interval.panels[0].rows.at(0).low.value());
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
