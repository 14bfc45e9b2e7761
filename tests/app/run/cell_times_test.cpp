#include <doctest/doctest.h>

#include <cmath>

#include "app/run/cost.h"
#include "app/run/session.h"
#include "tests/app/cli/tiny_run.h"

namespace moelab::cell_times_test {
namespace {

/// Three arms × four sweep points × five seeds.
Scenario sixty_cells() {
  Json scenario = tiny();
  scenario["arms"]["wide"] = {{"model.experts", 30}};
  scenario["sweep"]["data.train_samples"] = {20, 40, 80, 160};
  scenario["seeds"]["count"] = 5;
  return expand_scenario(scenario, "", {});
}

/// Seconds that the model does not foresee: three times its own, frozen arms cheaper and wide ones dearer
/// than it says, points ever dearer, and a tenth of noise.
double made_up_seconds(const Cell& cell, int place) {
  const double arm = cell.arm == "frozen" ? 0.4 : cell.arm == "wide" ? 1.8 : 1;
  const double point = std::pow(*cell.point[0].second.number() / 20, 0.2);
  const double noise = 1 + 0.1 * ((place * 7) % 5 - 2) / 2;
  return 3 * arm * point * noise * estimated_cost(cell).seconds;
}

/// The estimate of what is left after `done` cells, divided by what it takes.
double estimate_of_rest(const Scenario& scenario, std::size_t done) {
  const std::vector<const Cell*> cells = run_order(scenario, missing_cells(scenario, {}));
  CellTimes times(scenario);
  for (std::size_t i = 0; i < done; ++i)
    times.learn(cells[i]->id, "done", made_up_seconds(*cells[i], static_cast<int>(i)));
  times.fit();
  double estimate = 0, truth = 0;
  for (std::size_t i = done; i < cells.size(); ++i) {
    estimate += times.of(*cells[i]).seconds;
    truth += made_up_seconds(*cells[i], static_cast<int>(i));
  }
  return estimate / truth;
}

}  // namespace

TEST_CASE("cell times: within 30 % after a tenth of the cells, where the model alone is off by three") {
  const Scenario scenario = sixty_cells();
  REQUIRE(scenario.cells.size() == 60);
  CHECK(estimate_of_rest(scenario, 0) < 0.4);
  for (const std::size_t done : {6U, 9U, 12U, 30U, 59U}) {
    CAPTURE(done);
    CHECK(std::abs(estimate_of_rest(scenario, done) - 1) < 0.3);
  }
  // With a seed of every arm at every point, what is left is the noise.
  CHECK(std::abs(estimate_of_rest(scenario, 12) - 1) < 0.1);
}

TEST_CASE("cell times: a setting without a cell takes the effects of its arm and its sweep point") {
  const Scenario scenario = sixty_cells();
  CellTimes times(scenario);
  const auto cell = [&](const std::string& arm, int samples) -> const Cell& {
    for (const Cell& candidate : scenario.cells) {
      if (candidate.arm == arm && candidate.point[0].second == SweepValue(samples)) return candidate;
    }
    throw std::logic_error("no such cell");
  };
  const auto teach = [&](const std::string& arm, int samples, double factor) {
    const Cell& taught = cell(arm, samples);
    times.learn(taught.id, "done", factor * times.of(taught).cost.seconds);
  };
  for (const int samples : {20, 40, 80, 160}) teach("learned", samples, samples == 160 ? 8 : 2);
  for (const int samples : {20, 40, 80}) teach("frozen", samples, 6);
  times.fit();
  const auto factor = [&](const std::string& arm, int samples) {
    return times.of(cell(arm, samples)).seconds / times.of(cell(arm, samples)).cost.seconds;
  };
  CHECK(factor("learned", 160) == doctest::Approx(8));
  // Three times the learned arm, four times the other points: 24, less what the ridge takes.
  CHECK(factor("frozen", 160) > 18);
  CHECK(factor("frozen", 160) < 26);
  // Of an arm that was never seen, the point's effect is known.
  CHECK(factor("wide", 160) > 2 * factor("wide", 20));
  CHECK(times.of(cell("frozen", 20)).recorded == 1);
  CHECK(times.of(cell("frozen", 160)).recorded == 0);
}

TEST_CASE("cell times: failed cells tell nothing, diverged ones of their like alone") {
  const Scenario scenario = sixty_cells();
  const Cell &first = scenario.cells[0], &like = scenario.cells[1], &other = scenario.cells[5];
  CellTimes times(scenario);
  const double before = times.of(other).seconds;
  times.learn(first.id, "failed", 1e3);
  times.learn("of another plan", "done", 1e3);
  times.fit();
  CHECK(times.learned() == 0);
  CHECK(times.of(like).seconds == before * times.of(like).cost.seconds / times.of(other).cost.seconds);
  times.learn(first.id, "diverged", 1e3);
  times.fit();
  CHECK(times.learned() == 1);
  CHECK(times.of(like).seconds == 1e3);
  CHECK(times.of(other).seconds == before);
}

TEST_CASE("cell times: on threads the mean load counts, or the longest cell") {
  CHECK(seconds_on_threads({}, 4) == 0);
  CHECK(seconds_on_threads({2, 2, 2, 2}, 1) == 8);
  CHECK(seconds_on_threads({2, 2, 2, 2}, 2) == 4);
  CHECK(seconds_on_threads({2, 2, 2, 2}, 100) == 2);
  CHECK(seconds_on_threads({9, 1, 1, 1}, 4) == 9);
  CHECK(seconds_on_threads({2, 2, 2, 2}, 2, 1) == 3);
  CHECK(seconds_on_threads({4}, 2, 0.75) == 1);
}

}  // namespace moelab::cell_times_test
