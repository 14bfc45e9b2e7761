#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "analysis/metrics/agreement.h"
#include "analysis/metrics/overlap.h"
#include "analysis/metrics/routing.h"
#include "analysis/metrics/sparsity.h"
#include "sim/base/error.h"

namespace moelab::specialisation_test {
namespace {

namespace reference {
#include "tests/analysis/metrics/specialisation/reference.inc"
}

/// Sums over some thousand numbers of order 1 in double: rounding stays far below this.
constexpr double kRounding = 1e-10;
/// For hand-made cases with exact sums and one rounded root or quotient.
constexpr double kLastBits = 1e-14;

MatrixView view(const std::vector<double>& values, int rows, int columns) {
  return {values.data(), rows, columns};
}

MatrixView probabilities() {
  return view(reference::probabilities, reference::rows, reference::experts);
}

MatrixView previous() {
  return view(reference::previous, reference::rows, reference::experts);
}

MatrixView points() {
  return view(reference::points, reference::rows, reference::width);
}

}  // namespace

TEST_CASE("metrics of specialisation agree with NumPy, SciPy and scikit-learn") {
  CHECK(std::abs(routing_entropy(probabilities()) - reference::routing_entropy) < kRounding);
  ScoreVariance variance;
  variance.add(probabilities());
  CHECK(std::abs(variance.routing_variance_eq42() - reference::routing_variance_eq42) < kRounding);
  CHECK(std::abs(variance.score_variance() - reference::score_variance) < kRounding);
  CHECK(std::abs(variance.score_row_variance() - reference::score_row_variance) < kRounding);

  const std::vector<int> top1 = top1_assignment(probabilities()), before = top1_assignment(previous());
  CHECK(std::abs(expert_overlap(points(), top1, reference::neighbours).value() - reference::overlap) <
        kRounding);
  CHECK(std::abs(silhouette(points(), top1).value() - reference::silhouette_score) < kRounding);
  CHECK(std::abs(routing_fluctuation(before, top1).value() - reference::fluctuation) < kRounding);
  CHECK(std::abs(router_instability(before, top1).value() - reference::instability) < kRounding);

  const std::vector<int> best = topk_assignment(probabilities(), reference::top);
  const std::vector<int> best_before = topk_assignment(previous(), reference::top);
  CHECK(std::abs(routing_fluctuation(best_before, best, reference::top).value() -
                 reference::fluctuation_topk) < kRounding);
  CHECK(std::abs(expert_load_max_violation(expert_loads(best, reference::experts)).value() -
                 reference::topk_max_violation) < kRounding);
  const MatrixView outputs =
      view(reference::expert_outputs, reference::rows, reference::experts * reference::outputs);
  CHECK(std::abs(expert_output_similarities(outputs, reference::experts).mean() - reference::similarity) <
        kRounding);
}

TEST_CASE("the router's margin: ties, one-hot rows, and a case by hand") {
  CHECK(router_margin(Matrix::Constant(5, 4, 0.25)).value() == 0);
  CHECK(router_margin(Matrix::Identity(4, 4)).value() == 1);
  Matrix rows(2, 3);
  rows << 0.5, 0.2, 0.3, /**/ 0.1, 0.2, 0.7;
  CHECK(std::abs(router_margin(rows).value() - (0.2 + 0.5) / 2) < kLastBits);
  CHECK_FALSE(router_margin(Matrix::Ones(3, 1)));
  CHECK_THROWS_AS(router_margin(Matrix(0, 3)), InvalidOption);
}

TEST_CASE("saturation: the share of the K experts of a row that it keeps to the end, in any order") {
  const std::vector<int> final_sets = {0, 1, 2, 3}, swapped = {1, 0, 3, 2}, half = {1, 2, 3, 0},
                         none = {2, 3, 0, 1};
  CHECK(routing_saturation(swapped, final_sets, 2) == 1);
  CHECK(routing_saturation(half, final_sets, 2) == 0.5);
  CHECK(routing_saturation(none, final_sets, 2) == 0);
  CHECK(routing_saturation(half, final_sets, 1) == 0);
  CHECK_THROWS_AS(routing_saturation(half, final_sets, 3), InvalidOption);
}

TEST_CASE("dead experts serve less than a tenth of an even share of all rows") {
  // 20 rows, two experts: a tenth of an even share is one row.
  std::vector<int> serving(20, 0);
  CHECK(dead_experts(serving, 2).value() == 0.5);
  serving[7] = 1;
  CHECK(dead_experts(serving, 2).value() == 0);
  serving.push_back(-1);  // a row that none serves is one of the rows
  CHECK(dead_experts(serving, 2).value() == 0.5);
  CHECK(dead_experts(std::vector<int>(3, -1), 4).value() == 1);
  CHECK_FALSE(dead_experts({}, 2));
}

TEST_CASE("entropy and variances of uniform, one-hot and constant rows") {
  const Matrix uniform = Matrix::Constant(5, 4, 0.25);
  CHECK(std::abs(routing_entropy(uniform) - std::log(4.0)) < kLastBits);
  CHECK(routing_entropy(Matrix::Identity(4, 4)) == 0);
  ScoreVariance balanced, constant;
  balanced.add(Matrix::Identity(4, 4));
  CHECK(balanced.routing_variance_eq42() == 0);
  CHECK(std::abs(balanced.score_variance() - 3 / 16.0) < kLastBits);
  CHECK(std::abs(balanced.score_row_variance() - 3 / 16.0) < kLastBits);
  // The same row again and again: the scores do not vary over rows, but their mean is uneven.
  constant.add(Matrix::Ones(7, 1) * Eigen::RowVector3d(0.1, 0.3, 0.6));
  CHECK(constant.score_variance() == 0);
  CHECK(constant.routing_variance_eq42() > 0.01);
  CHECK_THROWS_AS(ScoreVariance().score_variance(), InvalidOption);
  CHECK_THROWS_AS(constant.add(uniform), InvalidOption);
  CHECK_THROWS_AS(routing_entropy(Matrix(0, 3)), InvalidOption);
}

TEST_CASE("variances of blocks are those of the whole") {
  ScoreVariance whole, blocks;
  whole.add(probabilities());
  constexpr int cut = 13;
  blocks.add(probabilities().topRows(cut));
  blocks.add(probabilities().bottomRows(reference::rows - cut));
  CHECK(blocks.score_variance() == whole.score_variance());
  CHECK(blocks.routing_variance_eq42() == whole.routing_variance_eq42());
  CHECK(blocks.score_row_variance() == whole.score_row_variance());
}

TEST_CASE("overlap and silhouette of points on a line") {
  Matrix line(6, 1);
  line << 0, 1, 2, 10, 11, 12;
  const std::vector<int> apart = {3, 3, 3, 5, 5, 5}, mixed = {3, 5, 3, 5, 3, 5};
  CHECK(expert_overlap(line, apart, 2).value() == 0);
  // Every end has one of two neighbours, every middle both with the other expert: (4 · 1/2 + 2 · 1) / 6.
  CHECK(std::abs(expert_overlap(line, mixed, 2).value() - 4 / 6.0) < kLastBits);
  // k' = n − 1 = 5: all others, three of five with another expert.
  CHECK(std::abs(expert_overlap(line, mixed, 10).value() - 3 / 5.0) < kLastBits);
  // a = 1.5, 1, 1.5 and b = 11, 10, 9, then mirrored.
  const double mean = ((1 - 1.5 / 11) + (1 - 1 / 10.0) + (1 - 1.5 / 9)) / 3;
  CHECK(std::abs(silhouette(line, apart).value() - mean) < kLastBits);
  CHECK(silhouette(line, mixed).value() < 0.1);
}

TEST_CASE("overlap and silhouette leave out points that no expert serves") {
  Matrix line(6, 1);
  line << 0, 1, 1.5, 2, 10, 11;
  const std::vector<int> some = {3, 3, -1, 5, 5, 5}, served = {3, 3, 5, 5, 5}, none(6, -1),
                         one = {2, -1, -1, -1, -1, -1};
  Matrix rest(5, 1);
  rest << 0, 1, 2, 10, 11;
  CHECK(expert_overlap(line, some, 2) == expert_overlap(rest, served, 2));
  CHECK(silhouette(line, some) == silhouette(rest, served));
  CHECK(first_points(line, some, 3).rows == std::vector<std::int64_t>{0, 1, 3});
  CHECK_FALSE(expert_overlap(line, one));
  CHECK_FALSE(expert_overlap(line, none));
  CHECK_FALSE(silhouette(line, none));
}

TEST_CASE("overlap and silhouette where they have no value or nothing to measure") {
  Matrix same = Matrix::Ones(4, 2);
  const std::vector<int> one = {1, 1, 1, 1}, all = {0, 1, 2, 3}, pair = {0, 0, 1, 1};
  CHECK_FALSE(silhouette(same, one).has_value());
  CHECK(silhouette(same, all).value() == 0);   // only points of their experts
  CHECK(silhouette(same, pair).value() == 0);  // no distances at all
  CHECK(expert_overlap(same, one).value() == 0);
  CHECK(expert_overlap(same, all).value() == 1);
  // Of equally near points the earlier row is nearer: rows 0 and 1 see each other, rows 2 and 3 see row 0.
  CHECK(expert_overlap(same, pair, 1).value() == 0.5);
  CHECK_FALSE(expert_overlap(same.topRows(1), {one.data(), 1}).has_value());
  CHECK_THROWS_AS(expert_overlap(same, {one.data(), 3}), InvalidOption);
  CHECK_THROWS_AS(silhouette(same, {one.data(), 3}), InvalidOption);
}

TEST_CASE("some rows against all of them: the values of those rows") {
  const std::vector<int> top1 = top1_assignment(probabilities());
  const auto measured = [&](std::int64_t rows) {
    const QueryPoints queries = first_points(points(), top1, rows);
    NearestNeighbours neighbours(queries);
    Silhouette silhouettes(queries, reference::experts);
    visit_distances(queries, points(), top1, [&](const Matrix& block, std::span<const int> experts) {
      neighbours.add(block, experts);
      silhouettes.add(block, experts);
    });
    std::vector<double> values = neighbours.other_expert_shares();
    values.resize(20);
    const std::vector<double> coefficients = silhouettes.coefficients();
    values.insert(values.end(), coefficients.begin(), coefficients.begin() + 20);
    return values;
  };
  CHECK(measured(20) == measured(reference::rows));
}

TEST_CASE("fluctuation counts sets, whatever the order in them; instability counts pairs") {
  const std::vector<int> before = {0, 1, 1, 2, 3, 0}, after = {1, 0, 1, 3, 3, 0};
  CHECK(std::abs(routing_fluctuation(before, after, 2).value() - 1 / 3.0) < kLastBits);
  CHECK(std::abs(routing_fluctuation(before, after).value() - 3 / 6.0) < kLastBits);
  // All experts renamed: every row changes, no pair does.
  const std::vector<int> old_names = {0, 0, 1, 1}, new_names = {1, 1, 0, 0}, alone = {0, 1, 2, 3};
  CHECK(routing_fluctuation(old_names, new_names).value() == 1);
  CHECK(router_instability(old_names, new_names).value() == 0);
  CHECK(router_instability(old_names, alone).value() == 4 / 16.0);
  CHECK(assignment_change_share(old_names, new_names).value() == 0);
  CHECK(assignment_change_share(old_names, alone).value() == 0.5);
  CHECK(assignment_change_share(alone, old_names).value() == 0);
  // Rows that have no expert in either snapshot are left out.
  const std::vector<int> some = {0, -1, 2, 2}, none(4, -1);
  CHECK(std::abs(routing_fluctuation(alone, some).value() - 1 / 3.0) < kLastBits);
  CHECK(std::abs(router_instability(alone, some).value() - 2 / 9.0) < kLastBits);
  CHECK(assignment_change_share(some, alone).value() == 1 - 2 / 3.0);
  CHECK(routing_fluctuation(alone, some, 2).value() == 1);
  for (const auto& change : {routing_fluctuation(alone, none), router_instability(none, alone),
                             assignment_change_share(none, none)}) {
    CHECK_FALSE(change.has_value());
  }
  CHECK_THROWS_AS(routing_fluctuation(old_names, before), InvalidOption);
  CHECK_THROWS_AS(routing_fluctuation(old_names, new_names, 3), InvalidOption);
  CHECK_THROWS_AS(router_instability({}, {}), InvalidOption);
}

TEST_CASE("similarity of experts' outputs: equal, opposite, orthogonal, zero") {
  Matrix outputs(4, 4);  // two experts of two outputs
  outputs << 1, 2, 2, 4, /**/ 1, 2, -3, -6, /**/ 1, 0, 0, 5, /**/ 1, 2, 0, 0;
  const Vector similarities = expert_output_similarities(outputs, 2);
  CHECK(std::abs(similarities[0] - 1) < kLastBits);
  CHECK(std::abs(similarities[1] + 1) < kLastBits);
  CHECK(std::abs(similarities[2]) < kLastBits);
  CHECK(std::abs(similarities[3]) < kLastBits);
  CHECK_THROWS_AS(expert_output_similarities(outputs, 1), InvalidOption);
  CHECK_THROWS_AS(expert_output_similarities(outputs, 3), InvalidOption);
}

TEST_CASE("signals of selected experts: variance over mean square, whatever the scale") {
  // Two rows, three experts of two outputs; signals (1, 3, 5) and (2, 2, 7).
  const Matrix outputs = Matrix{{1.0, 9.0, 3.0, 9.0, 5.0, 9.0}, {0.0, 2.0, 0.0, 2.0, 0.0, 7.0}};
  const Matrix gradients = Matrix{{1.0, 0.0}, {0.0, 1.0}};
  const std::vector<unsigned char> first_two = {1, 1, 0, 1, 1, 0}, single = {1, 0, 0, 0, 0, 1};
  const SignalSpread spread = selected_signal_spread(outputs, 3, gradients, first_two);
  CHECK(std::abs(spread.variance - 1) < kLastBits);      // 1 of the first row, 0 of the second
  CHECK(std::abs(spread.square - (5 + 4)) < kLastBits);  // (1 + 9)/2 and 4
  CHECK(selected_signal_spread(outputs, 3, gradients, single).square == 0);
  const SignalSpread scaled = selected_signal_spread(3 * outputs, 3, gradients, first_two);
  CHECK(std::abs(scaled.variance / scaled.square - spread.variance / spread.square) < kLastBits);
  CHECK_THROWS_AS(selected_signal_spread(outputs, 3, gradients, std::vector<unsigned char>{1}),
                  InvalidOption);
}

TEST_CASE("top-k: the likeliest first, lower indices first among equals") {
  const std::vector<double> values = {0.2, 0.3, 0.3, 0.2, 0.1, 0.2, 0.3, 0.4};
  CHECK(topk_assignment(view(values, 2, 4), 3) == std::vector<int>{1, 2, 0, 3, 2, 1});
  CHECK(topk_assignment(view(values, 2, 4), 1) == top1_assignment(view(values, 2, 4)));
  CHECK_THROWS_AS(topk_assignment(view(values, 2, 4), 5), InvalidOption);
  CHECK_THROWS_AS(topk_assignment(view(values, 2, 4), 0), InvalidOption);
}

TEST_CASE("a shuffled router routes inputs whose coordinates are permuted") {
  const MatrixView weight = view(reference::weight, reference::experts, reference::width);
  const Seeds seeds{3, 0};
  constexpr int kShuffles = 4;
  ShuffledRouter router(weight, seeds);
  const Matrix learned = router.route(points());
  CHECK((learned - probabilities()).cwiseAbs().maxCoeff() < kRounding);
  for (int s = 0; s < kShuffles; ++s) {
    Engine engine = seeds.stream(Purpose::shuffles, static_cast<std::uint64_t>(s));
    const std::vector<int> permutation = draw_permutation(engine, reference::width);
    Matrix permuted(reference::rows, reference::width);
    for (int j = 0; j < reference::width; ++j)
      permuted.col(j) = points().col(permutation[static_cast<std::size_t>(j)]);
    const Matrix expected = router.route(permuted);
    CHECK((router.route_shuffled(s, points()) - expected).cwiseAbs().maxCoeff() < kRounding);
  }
  CHECK_THROWS_AS(router.route(Matrix::Ones(2, 3)), InvalidOption);
}

}  // namespace moelab::specialisation_test
