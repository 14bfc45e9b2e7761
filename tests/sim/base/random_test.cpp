#include "sim/base/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "tests/sim/data/statistics.h"

namespace moelab::random_test {
namespace {

/// Means are compared within this many standard errors (two-sided level 6e-7).
constexpr double kStandardErrors = 5;

/// Whether counts of equally likely outcomes pass the χ² test.
bool looks_uniform(const std::vector<int>& counts, int draws) {
  const double expected = static_cast<double>(draws) / static_cast<double>(counts.size());
  double statistic = 0;
  for (const int count : counts) statistic += (count - expected) * (count - expected) / expected;
  return below_quantile(statistic, static_cast<double>(counts.size() - 1));
}

/// Streams over a grid of keys that start alike.
int collisions(const std::function<Engine(Seeds, Purpose, std::uint64_t)>& stream) {
  std::set<std::uint64_t> starts;
  int count = 0;
  const std::vector<std::uint64_t> parts = {0, 1, 2, 3, 1000, ~std::uint64_t{0}};
  for (const std::uint64_t root : parts) {
    for (const std::uint64_t index : parts) {
      for (int purpose = 1; purpose <= 9; ++purpose) {
        for (const std::uint64_t counter : parts) {
          ++count;
          starts.insert(stream({root, index}, static_cast<Purpose>(purpose), counter)());
        }
      }
    }
  }
  return count - static_cast<int>(starts.size());
}

TEST_CASE("a stream is a function of its whole key") {
  const auto stream = [](const Seeds& seeds, Purpose purpose, std::uint64_t counter) {
    return seeds.stream(purpose, counter);
  };
  CHECK(collisions(stream) == 0);
  const auto sum_of_parts = [](const Seeds& seeds, Purpose purpose, std::uint64_t counter) {
    return Engine(seeds.root + seeds.index + static_cast<std::uint64_t>(purpose) + counter);
  };
  CHECK(collisions(sum_of_parts) > 0);
  const Seeds seeds{7, 3};
  CHECK(seeds.stream(Purpose::shuffles, 5) == seeds.stream(Purpose::shuffles, 5));
}

TEST_CASE("neighbouring streams are uncorrelated") {
  constexpr int kDraws = 20000;
  const auto correlation = [](Engine left, Engine right) {
    double sum = 0;
    for (int i = 0; i < kDraws; ++i) sum += draw_normal(left) * draw_normal(right);
    return std::abs(sum / kDraws) * std::sqrt(static_cast<double>(kDraws));  // in standard errors
  };
  const Engine base = Seeds{1, 0}.stream(Purpose::train_data);
  CHECK(correlation(base, Seeds{2, 0}.stream(Purpose::train_data)) < kStandardErrors);
  CHECK(correlation(base, Seeds{1, 1}.stream(Purpose::train_data)) < kStandardErrors);
  CHECK(correlation(base, Seeds{1, 0}.stream(Purpose::test_data)) < kStandardErrors);
  CHECK(correlation(base, Seeds{1, 0}.stream(Purpose::train_data, 1)) < kStandardErrors);
  CHECK(correlation(base, base) > kStandardErrors);
}

TEST_CASE("normal, uniform and index draws have their moments") {
  constexpr int kDraws = 40000;
  const double root = std::sqrt(static_cast<double>(kDraws));
  Engine engine(11);
  std::vector<double> values(kDraws);
  fill_normal(engine, 2.0, values.data(), values.size());
  double mean = 0, square = 0, uniform = 0, smallest = 1, largest = 0;
  for (const double value : values) {
    mean += value / kDraws;
    square += value * value / kDraws;
  }
  CHECK(std::abs(mean) < kStandardErrors * 2.0 / root);
  CHECK(std::abs(square - 4.0) < kStandardErrors * 4.0 * std::sqrt(2.0) / root);
  CHECK_FALSE(std::abs(square - 1.0) < kStandardErrors * std::sqrt(2.0) / root);  // the scale left out

  std::vector<int> counts(7, 0), skewed(7, 0);
  for (int i = 0; i < kDraws; ++i) {
    const double u = draw_uniform(engine);
    uniform += u / kDraws;
    smallest = std::min(smallest, u);
    largest = std::max(largest, u);
    ++counts[static_cast<std::size_t>(draw_index(engine, 7))];
    ++skewed[static_cast<std::size_t>(draw_index(engine, 8) % 7)];
  }
  CHECK(std::abs(uniform - 0.5) < kStandardErrors / std::sqrt(12.0) / root);
  CHECK(smallest >= 0.0);
  CHECK(largest < 1.0);
  CHECK(looks_uniform(counts, kDraws));
  CHECK_FALSE(looks_uniform(skewed, kDraws));
}

TEST_CASE("permutations are permutations, uniformly") {
  Engine engine(5);
  for (const int count : {0, 1, 2, 100}) {
    std::vector<int> permutation = draw_permutation(engine, count);
    std::sort(permutation.begin(), permutation.end());
    REQUIRE(permutation.size() == static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) CHECK(permutation[static_cast<std::size_t>(i)] == i);
  }

  constexpr int kDraws = 24000;
  const auto frequencies = [&](const std::function<void(std::vector<int>&)>& permute) {
    std::map<std::vector<int>, int> seen;
    for (int i = 0; i < kDraws; ++i) {
      std::vector<int> values = {0, 1, 2, 3};
      permute(values);
      ++seen[values];
    }
    std::vector<int> counts;
    for (const auto& [permutation, count] : seen) counts.push_back(count);
    return counts;
  };
  const std::vector<int> drawn =
      frequencies([&](std::vector<int>& values) { values = draw_permutation(engine, 4); });
  CHECK(drawn.size() == 24);
  CHECK(looks_uniform(drawn, kDraws));
  const std::vector<int> shuffled = frequencies([&](std::vector<int>& values) { shuffle(engine, values); });
  CHECK(looks_uniform(shuffled, kDraws));
  // Swapping with any place, the classical mistake, is not uniform.
  const std::vector<int> biased = frequencies([&](std::vector<int>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::swap(values[i], values[static_cast<std::size_t>(draw_index(engine, 4))]);
    }
  });
  CHECK_FALSE(looks_uniform(biased, kDraws));
}

}  // namespace
}  // namespace moelab::random_test
