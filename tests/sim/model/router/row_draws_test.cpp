/// Routers that learn nothing and know a token by its row: hash and random.

#include "sim/model/router/row_draws.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/kernels/multiply.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/router/router_probe.h"

namespace moelab::row_draws_test {
namespace {

constexpr int kInputs = 3, kExperts = 5, kRows = 4000;

std::vector<double> drawn_rows(std::uint64_t seed = 1) {
  std::vector<double> x(kRows * kInputs);
  Engine engine = Seeds{seed, 0}.stream(Purpose::test_data);
  fill_normal(engine, 1, x.data(), x.size());
  return x;
}

struct Scored : StartedRouter {
  explicit Scored(const RouterOptions& options, int layer = 0, std::uint64_t seed = 1)
      : StartedRouter(options, {.input_dim = kInputs, .experts = kExperts, .layer = layer, .layers = 2},
                      Start{Seeds{seed, 0}}.of_layer(layer)) {}
  /// γ (n, E) without padding, of rows x known by `first`, or by x.
  std::vector<double> scores(const std::vector<double>& x, const std::vector<double>* first = nullptr) {
    RouterContext<double> context;
    context.x = rows_of(x.data(), static_cast<int>(x.size()) / kInputs, kInputs);
    if (first) context.signals.first_inputs = rows_of(first->data(), context.x.rows, kInputs);
    context.state = state.data();
    AlignedVector<double> padded(entries(context.x.rows, kernels::padded(kExperts)), NAN);
    router->forward(context, parameters.data(), *scratch, padded.data());
    std::vector<double> scores;
    for (int i = 0; i < context.x.rows; ++i) {
      const auto row = padded.begin() + i * kernels::padded(kExperts);
      scores.insert(scores.end(), row, row + kExperts);
    }
    return scores;
  }
};

std::vector<int> likeliest(const std::vector<double>& scores) {
  std::vector<int> all;
  for (auto row = scores.begin(); row != scores.end(); row += kExperts) {
    all.push_back(static_cast<int>(std::max_element(row, row + kExperts) - row));
  }
  return all;
}

/// Pearson's statistic of uniform loads: 4 degrees of freedom, above 30 once in 200 000.
double imbalance(const std::vector<int>& experts) {
  std::vector<double> counts(kExperts);
  for (const int e : experts) ++counts[size(e)];
  const double expected = static_cast<double>(experts.size()) / kExperts;
  double statistic = 0;
  for (const double count : counts) statistic += (count - expected) * (count - expected) / expected;
  return statistic;
}
constexpr double kMostImbalance = 30;

double agreement(const std::vector<int>& left, const std::vector<int>& right) {
  double same = 0;
  for (std::size_t i = 0; i < left.size(); ++i) same += left[i] == right[i];
  return same / static_cast<double>(left.size());
}
/// Five standard errors of the agreement of independent draws.
const double kChance = 5 * std::sqrt(0.2 * 0.8 / kRows);

TEST_CASE("a hash sends every token to one expert, evenly, another in each layer, the same in every model") {
  const std::vector<double> x = drawn_rows(), other = drawn_rows(2);
  Scored hash(HashRouterOptions{}), again(HashRouterOptions{}, 0, 9), deeper(HashRouterOptions{}, 1);
  const std::vector<double> scores = hash.scores(x);
  CHECK(std::count(scores.begin(), scores.end(), HashRouterOptions{}.scale) == kRows);
  CHECK(std::count_if(scores.begin(), scores.end(),
                      [](double score) { return score <= 0 && score > -1e-3; }) == kRows * (kExperts - 1));
  std::vector<double> others = scores;  // the second choices are even, too
  for (double& score : others) score = score > 0 ? -1 : score;
  CHECK(imbalance(likeliest(others)) < kMostImbalance);
  const std::vector<int> experts = likeliest(scores);
  CHECK(imbalance(experts) < kMostImbalance);
  CHECK(agreement(experts, likeliest(again.scores(x))) == 1);
  CHECK(std::abs(agreement(experts, likeliest(deeper.scores(x))) - 0.2) < kChance);
  // A token is its row of the model's inputs, at any place.
  CHECK(hash.scores(other, &x) == scores);
  CHECK(hash.scores({x.begin() + 30, x.begin() + 60}) ==
        std::vector<double>(scores.begin() + 50, scores.begin() + 100));
}

TEST_CASE("a hash of projections sends near rows to one expert, and a row and its multiple") {
  const std::vector<double> x = drawn_rows();
  std::vector<double> near = x, moved = x;
  for (double& value : near) value *= 1.5;
  for (double& value : moved) value += 0.5;
  Scored hash(HashRouterOptions{.of = HashRouterOptions::Of::projection, .bits = 6});
  CHECK(hash.router->arrays(hash.parameters.data()).at(0).shape == std::vector<std::int64_t>{6, kInputs});
  CHECK(hash.router->frozen_size() == hash.router->block_size());
  const std::vector<int> experts = likeliest(hash.scores(x));
  CHECK(hash.scores(near) == hash.scores(x));
  const double kept = agreement(experts, likeliest(hash.scores(moved)));
  CHECK(kept > 0.2 + kChance);
  CHECK(kept < 0.9);
}

TEST_CASE("random scores are uniform, a token's own, and drawn anew at every step only if asked") {
  const std::vector<double> x = drawn_rows(), other = drawn_rows(2);
  using Draws = RandomRouterOptions::Draws;
  for (const Draws draws : {Draws::fixed, Draws::redrawn}) {
    Scored random(RandomRouterOptions{.draws = draws, .scale = 3});
    const std::vector<double> scores = random.scores(x);
    CHECK(*std::min_element(scores.begin(), scores.end()) >= 0);
    CHECK(*std::max_element(scores.begin(), scores.end()) < 3);
    double mean = 0;
    for (const double score : scores) mean += score / static_cast<double>(scores.size());
    CHECK(std::abs(mean - 1.5) < 5 * 3 / std::sqrt(12.0 * static_cast<double>(scores.size())));
    const std::vector<int> experts = likeliest(scores);
    CHECK(imbalance(experts) < kMostImbalance);
    CHECK(random.scores(x) == scores);
    CHECK(random.scores(other, &x) == scores);
    random.router->begin_step(0, nullptr, random.state.data());
    const double same = agreement(experts, likeliest(random.scores(x)));
    if (draws == Draws::fixed) CHECK(same == 1);
    if (draws == Draws::redrawn) CHECK(std::abs(same - 0.2) < kChance);
    Scored of_other_seed(RandomRouterOptions{.draws = draws, .scale = 3}, 0, 9);
    CHECK(std::abs(agreement(experts, likeliest(of_other_seed.scores(x))) - 0.2) < kChance);
  }
  CHECK(agreement({0, 1}, {0, 2}) == 0.5);
  CHECK(imbalance(std::vector<int>(kRows, 0)) > kMostImbalance);
}

TEST_CASE("hash and random scores do not move with x") {
  for (const RouterOptions& options :
       {RouterOptions(HashRouterOptions{}), RouterOptions(RandomRouterOptions{})}) {
    RouterProbe probe(options, 3);
    const RouterProbe::Gradient gradient = probe.gradient();
    CHECK(
        std::all_of(gradient.inputs.begin(), gradient.inputs.end(), [](double value) { return value == 0; }));
  }
}

}  // namespace
}  // namespace moelab::row_draws_test
