/// Metrics of a row's neighbours in `moelab analyze`: all rows where there are few, a sample where there are
/// many.

#include <doctest/doctest.h>

#include <cmath>

#include "analysis/metrics/overlap.h"
#include "analysis/metrics/routing.h"
#include "app/cli/analyze.h"
#include "tests/app/cli/analyzed_arrays.h"

namespace moelab::analyze_neighbours_test {

using namespace analyzed_arrays;

TEST_CASE("analyze: many rows are sampled, with an interval that holds the whole's value") {
  const Arrays arrays;
  constexpr int kMany = 6000;
  Engine engine = Seeds{6, 0}.stream(Purpose::problem);
  Matrix probs(kMany, 2), points(kMany, 2);
  fill_normal(engine, 1, points.data(), kMany * 2);
  for (int i = 0; i < kMany; ++i) {
    const bool first = points(i, 0) + 0.5 * draw_normal(engine) > 0;
    probs.row(i) << (first ? 0.9 : 0.1), (first ? 0.1 : 0.9);
  }
  arrays.write("many", {kMany, 2}, probs);
  arrays.write("points", {kMany, 2}, points);
  const Json answer = arrays.answer({"--probs", arrays.name("many"), "--inputs", arrays.name("points")});
  CHECK(answer.at("settings").at("sampled_rows") == kQueryRows);
  const double whole = expert_overlap(points, top1_assignment(probs)).value();
  const Json& interval = answer.at("intervals").at("expert_overlap");
  // Twice the width of the 95 % interval: four standard errors, and the seeds are fixed.
  const double half = (interval[1].get<double>() - interval[0].get<double>()) / 2;
  CHECK(std::abs(answer.at("metrics").at("expert_overlap").get<double>() - whole) < 2 * half);
  CHECK(half < 0.03);
  CHECK(half > 0.003);
  CHECK(contains(analyze({"--probs", arrays.name("many"), "--inputs", arrays.name("points")}).out, " ± "));
}

TEST_CASE("analyze: all other rows may be neighbours, and are where there are fewer than the default") {
  const Arrays arrays;
  const Json all =
      arrays.answer({"--probs", arrays.name("P"), "--inputs", arrays.name("X"), "--neighbours", "199"});
  CHECK(all.at("settings").at("neighbours") == 199);
  arrays.write("P4", {4, kExperts}, arrays.probs.topRows(4));
  arrays.write("X4", {4, kInputs}, arrays.inputs.topRows(4));
  const Json few = arrays.answer({"--probs", arrays.name("P4"), "--inputs", arrays.name("X4")});
  CHECK(few.at("settings").at("neighbours") == 3);
  const Json three =
      arrays.answer({"--probs", arrays.name("P4"), "--inputs", arrays.name("X4"), "--neighbours", "3"});
  CHECK(few.at("metrics") == three.at("metrics"));
}

}  // namespace moelab::analyze_neighbours_test
