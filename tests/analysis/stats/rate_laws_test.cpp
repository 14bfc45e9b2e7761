#include <doctest/doctest.h>

#include <cmath>

#include "analysis/stats/rates.h"
#include "sim/base/random.h"

namespace moelab::rate_laws_test {
namespace {

/// e(n) exp(noise · N(0, 1)), independent at every size, from 1000 to 32000.
template <class Law>
RateData data_of(const Law& law, double noise, int repetitions, std::uint64_t seed = 1) {
  RateData data;
  for (int j = 0; j <= 10; ++j) data.samples.push_back(1000 * std::pow(2.0, j / 2.0));
  Engine engine(seed);
  for (int r = 0; r < repetitions; ++r) {
    data.errors.emplace_back();
    for (const double n : data.samples)
      data.errors.back().emplace_back(law(n) * std::exp(noise * draw_normal(engine)));
  }
  return data;
}

const auto kRoot = [](double n) { return 3 * std::pow(n, -0.5); };
const auto kFourthRoot = [](double n) { return std::pow(n, -0.25); };
const auto kLogarithmic = [](double n) { return std::pow(std::log(n), -1.0); };

TEST_CASE("the law that errors follow is found where noise is small beside its difference to the others") {
  CHECK(compare_laws(data_of(kRoot, 0.1, 40)).law == "n^-1/2");
  CHECK(compare_laws(data_of(kRoot, 0, 5)).law == "n^-1/2");  // no variance to weigh by
  CHECK(compare_laws(data_of(kFourthRoot, 0.02, 40)).law == "n^-1/4");
  const LawComparison slow = compare_laws(data_of(kLogarithmic, 0.05, 40));
  CHECK(slow.law == "1/log^τ n");
  CHECK(slow.laws[2].tau == doctest::Approx(1).epsilon(0.1));
  CHECK_FALSE(slow.laws[2].against_best);
  CHECK(slow.laws[0].excluded);
  CHECK_FALSE(slow.told_apart_at);
}

TEST_CASE("laws that noise hides are not told apart, and the size that would tell is beyond the others") {
  const LawComparison comparison = compare_laws(data_of(kRoot, 0.5, 10));
  CHECK(comparison.law == "not told apart");
  CHECK_FALSE(comparison.laws[0].excluded);
  REQUIRE(comparison.told_apart_at);
  CHECK(*comparison.told_apart_at > 32000);
  // With a quarter of the noise less is needed.
  const LawComparison nearer = compare_laws(data_of(kRoot, 0.25, 10));
  CHECK((nearer.law == "n^-1/2" || *nearer.told_apart_at <= *comparison.told_apart_at));
}

TEST_CASE("the true law is excluded as seldom as the level says") {
  constexpr int kTrials = 300;
  for (const auto& [law, place] : {std::pair<double (*)(double), std::size_t>{kRoot, 0}, {kLogarithmic, 2}}) {
    int excluded = 0;
    for (std::uint64_t trial = 0; trial < kTrials; ++trial)
      excluded += compare_laws(data_of(law, 0.3, 20, trial)).laws[place].excluded;
    // Five standard errors of a share of .05 above it.
    CHECK(excluded < kTrials * (0.05 + 5 * std::sqrt(0.05 * 0.95 / kTrials)));
  }
}

TEST_CASE("the held-out score by hand") {
  // Two repetitions, e = c at sizes e, e², e³, e⁴ but for the law's factor: at n^-1/2 both have ln e =
  // −½ ln n ± δ, so that the law predicts every held-out mean exactly.
  RateData data;
  for (int j = 1; j <= 4; ++j) data.samples.push_back(std::exp(j));
  const double delta = 0.1;
  for (const double sign : {-1.0, 1.0}) {
    data.errors.emplace_back();
    for (int j = 1; j <= 4; ++j) data.errors.back().emplace_back(std::exp(-0.5 * j + sign * delta));
  }
  const LawComparison comparison = compare_laws(data);
  REQUIRE(comparison.laws.size() == 3);
  CHECK_FALSE(comparison.laws[0].against_best);
  // v = 2 δ² everywhere. n^-1/4 predicts the held-out mean with an error of ¼ (j − mean of the others' j):
  // −1/2, −1/6, 1/6, 1/2 times 4/3 · ¾ … = ¼ · (4/3)(j − 5/2).
  double expected = 0;
  for (int j = 1; j <= 4; ++j) {
    const double error = 0.25 * 4.0 / 3 * (j - 2.5);
    expected -= error * error / (2 * 2 * delta * delta);
  }
  CHECK(comparison.laws[1].against_best->mean == doctest::Approx(expected).epsilon(1e-9));
}

TEST_CASE("a size of 1, where ln ln n is not finite, decides nothing") {
  RateData data = data_of(kLogarithmic, 0.05, 40);
  data.samples.insert(data.samples.begin(), 1);
  for (auto& repetition : data.errors) repetition.insert(repetition.begin(), 100.0);
  const LawComparison comparison = compare_laws(data);
  CHECK(comparison.law == "1/log^τ n");
  REQUIRE(comparison.laws.size() == 3);
  CHECK(comparison.laws[2].tau == doctest::Approx(1).epsilon(0.1));
  REQUIRE(comparison.laws[0].against_best);
  CHECK(std::isfinite(comparison.laws[0].against_best->mean));
}

TEST_CASE("too few sizes or repetitions give no verdict") {
  RateData data = data_of(kRoot, 0.1, 1);
  CHECK(compare_laws(data).laws.empty());
  data = data_of(kRoot, 0.1, 5);
  data.samples.resize(3);
  for (auto& repetition : data.errors) repetition.resize(3);
  CHECK(compare_laws(data).laws.empty());
  CHECK(compare_laws(data).law == "not told apart");
}

}  // namespace
}  // namespace moelab::rate_laws_test
