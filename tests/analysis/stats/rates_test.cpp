#include "analysis/stats/rates.h"

#include <doctest/doctest.h>

#include <cmath>

#include "analysis/stats/claims.h"
#include "app/scenario/claim_reader.h"
#include "sim/base/error.h"
#include "sim/base/random.h"

namespace moelab::rates_test {
namespace {

/// Sums of logarithms of order ten, rounded in double.
constexpr double kRounding = 1e-12;

const std::vector<double> kSamples = {1000, 2000, 4000, 8000, 16000, 32000, 64000, 100000};

/// Errors scale_r e(n) exp(noise · N(0, 1)).
template <class Law>
RateData data_of(const Law& law, double noise, int repetitions, std::uint64_t seed = 1) {
  RateData data{kSamples, {}};
  Engine engine(seed);
  for (int r = 0; r < repetitions; ++r) {
    const double scale = std::exp(draw_normal(engine));
    data.errors.emplace_back();
    for (const double n : kSamples)
      data.errors.back().emplace_back(scale * law(n) * std::exp(noise * draw_normal(engine)));
  }
  return data;
}

const auto kRoot = [](double n) { return std::pow(n, -0.5); };

TEST_CASE("an exact power law has its exponent in every repetition") {
  const RateEstimate estimate = estimate_rate(data_of(kRoot, 0, 5));
  REQUIRE(estimate.slope);
  for (const std::optional<double>& slope : estimate.slopes) CHECK(std::abs(*slope + 0.5) < kRounding);
  CHECK(std::abs(estimate.slope->mean + 0.5) < kRounding);
}

TEST_CASE("slope and intercept by hand: all sizes weigh the same, however much they vary") {
  // ln e is 0, 0, 0 in repetition 0 and 0, 2 ln 2, 0 in repetition 1, at n = 2, 4, 8. The middle size is the
  // mean of ln n, so both slopes are 0. The intercept of repetition 1 is 2 ln 2 / 3.
  const RateData data{{2, 4, 8}, {{1.0, 1.0, 1.0}, {1.0, 4.0, 1.0}}};
  const RateEstimate estimate = estimate_rate(data);
  CHECK(std::abs(*estimate.slopes[0]) < kRounding);
  CHECK(std::abs(*estimate.slopes[1]) < kRounding);
  CHECK(std::abs(estimate.intercept - std::log(2.0) / 3) < kRounding);
}

TEST_CASE("squares: the slope of the roots of their mean, by pseudo-values") {
  // Of two kinds of repetition, n^-1/4 and ten times less at n^-1/2, squares keep the first's rate; mean
  // logarithms lie between.
  RateData data{kSamples, {}, RateAverage::squares};
  for (int r = 0; r < 20; ++r) {
    data.errors.emplace_back();
    for (const double n : kSamples)
      data.errors.back().emplace_back(r % 2 ? std::pow(n, -0.25) : 0.1 * std::pow(n, -0.5));
  }
  RateEstimate estimate = estimate_rate(data);
  CHECK(std::abs(estimate.slope->mean + 0.25) < 1e-3);
  data.average = RateAverage::logarithms;
  estimate = estimate_rate(data);
  CHECK(std::abs(estimate.slope->mean + 0.375) < kRounding);
  // By hand, of two repetitions: ln √((1 + 4)/2), 0, 0 at ln 2, ln 4, ln 8. Without either repetition the
  // slope is the other's. The pseudo-values 2 all − second and 2 all are shifted to the mean `all`.
  data = {{2, 4, 8}, {{1.0, 1.0, 1.0}, {2.0, 1.0, 1.0}}, RateAverage::squares};
  const RateEstimate hand = estimate_rate(data);
  const double per_log = -1.0 / (2 * std::log(2.0));
  const double all = per_log * std::log(2.5) / 2, second = per_log * std::log(2.0);
  CHECK(std::abs(*hand.slopes[0] - (all - second / 2)) < kRounding);
  CHECK(std::abs(*hand.slopes[1] - (all + second / 2)) < kRounding);
}

TEST_CASE("the slope of the medians does not see a repetition that failed") {
  RateData data = data_of(kRoot, 0, 1);
  data.errors.resize(5, data.errors[0]);
  data.errors[4].back() = 1e6;
  CHECK(std::abs(*estimate_rate(data).median_slope + 0.5) < kRounding);
  CHECK(estimate_rate(data).slope->mean > -0.49);
}

TEST_CASE("the interval covers the exponent as often as it says") {
  constexpr int kTrials = 400;
  const auto coverage = [&](double exponent) {
    int covered = 0;
    for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
      const Interval interval = *estimate_rate(data_of(kRoot, 0.3, 6, trial)).slope->interval;
      covered += interval.low <= exponent && exponent <= interval.high;
    }
    return static_cast<double>(covered) / kTrials;
  };
  // Four standard errors of a share of 0.95 in 400 trials.
  CHECK(std::abs(coverage(-0.5) - 0.95) < 4 * std::sqrt(0.95 * 0.05 / kTrials));
  CHECK(coverage(-0.35) < 0.9);
}

TEST_CASE("missing errors are counted, and a repetition needs three") {
  RateData data = data_of(kRoot, 0, 3);
  data.errors[0][2].reset();
  for (std::size_t s = 0; s < 6; ++s) data.errors[1][s].reset();
  const RateEstimate estimate = estimate_rate(data);
  CHECK(estimate.missing == 7);
  CHECK(estimate.left_out == 1);
  CHECK_FALSE(estimate.slopes[1]);
  CHECK(estimate.slope->count == 2);
  CHECK(judge_rate(estimate, {-0.6, -0.4}) == RateVerdict::inconclusive);
  const RateEstimate nothing = estimate_rate({kSamples, {}});
  CHECK_FALSE(nothing.slope);
}

TEST_CASE("a slope is compatible with a range, excluded, or neither") {
  const auto verdict = [](double low, double high) {
    return judge_slope(MeanEstimate{(low + high) / 2, 5, Interval{low, high}}, {-0.6, -0.4});
  };
  CHECK(verdict(-0.55, -0.45) == RateVerdict::compatible);
  CHECK(verdict(-0.3, -0.2) == RateVerdict::excluded);
  CHECK(verdict(-0.9, -0.7) == RateVerdict::excluded);
  CHECK(verdict(-0.45, -0.35) == RateVerdict::inconclusive);
  CHECK(judge_slope(std::nullopt, {-0.6, -0.4}) == RateVerdict::inconclusive);
  CHECK(judge_slope(MeanEstimate{-0.5, 1, std::nullopt}, {-0.6, -0.4}) == RateVerdict::inconclusive);
}

/// Arms "root" (n^-1/2) and "slow" (n^-0.05) at two values of model.experts, the second of other laws.
ResultTable example_table(int repetitions) {
  ResultTable table{{"root", "slow"}, {"model.experts", "data.train_samples"}, {}, {}};
  Engine engine(3);
  for (const std::string& arm : table.arms) {
    for (const int experts : {2, 3}) {
      for (const double n : kSamples) {
        for (int seed = 0; seed < repetitions; ++seed) {
          const double exponent = experts == 3 ? -0.25 : arm == "root" ? -0.5 : -0.05;
          ResultRow row{"",     arm, seed, {{"model.experts", experts}, {"data.train_samples", n}},
                        "done", {},  {}};
          row.metrics["error"] = std::pow(n, exponent) * std::exp(0.01 * draw_normal(engine));
          table.rows.push_back(row);
        }
      }
    }
  }
  return table;
}

ClaimResult judged(const ResultTable& table, const Json& changes) {
  Json claim = {{"id", "c"},
                {"op", "rate"},
                {"arm", "root"},
                {"metric", "error"},
                {"along", "data.train_samples"},
                {"where", {{"model.experts", 2}}},
                {"exponent", -0.5}};
  claim.update(changes);
  return evaluate_claims(read_claims(Json::array({claim})), table, [](const std::string&) { return true; })
      .front();
}

TEST_CASE("claims on rates") {
  const ResultTable table = example_table(4);
  CHECK(judged(table, {{"exponent", -0.5}}).verdict == Verdict::reproduced);
  CHECK(judged(table, {{"exponent", -0.25}}).verdict == Verdict::refuted);
  CHECK(judged(table, {{"exponent", -0.4}}).verdict == Verdict::inconclusive);
  CHECK(judged(table, {{"exponent", -0.4}, {"tolerance", 0.2}}).verdict == Verdict::reproduced);
  CHECK(judged(table, {{"where", {{"model.experts", 3}}}, {"exponent", -0.25}}).verdict ==
        Verdict::reproduced);
  CHECK(judged(table, {{"op", "slower"}, {"arm", "slow"}, {"than", -0.15}}).verdict == Verdict::reproduced);
  CHECK(judged(table, {{"op", "slower"}, {"than", -0.15}}).verdict == Verdict::refuted);
  CHECK(judged(table, {{"op", "slower"}, {"arm", "slow"}, {"than", "root"}}).verdict == Verdict::reproduced);
  CHECK(judged(table, {{"op", "slower"}, {"than", "slow"}}).verdict == Verdict::refuted);
  const ClaimPoint point =
      judged(table, {{"op", "slower"}, {"arm", "slow"}, {"than", "root"}}).points.front();
  CHECK(point.pairs == 4);
  CHECK(std::abs(point.difference->mean - 0.45) < 0.02);
}

TEST_CASE("a claim on a rate regresses inside its window") {
  ResultTable table = example_table(4);
  for (ResultRow& row : table.rows) {
    if (row.point[1].second == 1000.0) row.metrics["error"] *= 1000;
  }
  CHECK(judged(table, {{"window", {2000, 100000}}}).verdict == Verdict::reproduced);
  CHECK(judged(table, Json::object()).verdict == Verdict::refuted);
}

TEST_CASE("few repetitions, failed cells and names that do not exist") {
  CHECK(judged(example_table(2), Json::object()).verdict == Verdict::inconclusive);
  ResultTable table = example_table(4);
  table.rows[0].state = "diverged";
  const ClaimResult with_gap = judged(table, Json::object());
  CHECK(with_gap.verdict == Verdict::inconclusive);
  CHECK(with_gap.points.front().pairs == 4);
  CHECK(with_gap.points.front().note == "1 errors of root are missing, so that nothing is decided");
  for (ResultRow& row : table.rows) {
    if (row.seed == 1 && *row.point[1].second.number() > 2000) row.state = "failed";
  }
  const ClaimResult without_slope = judged(table, Json::object());
  CHECK(without_slope.verdict == Verdict::inconclusive);
  CHECK(without_slope.points.front().pairs == 3);
  CHECK_THROWS_AS(judged(table, {{"arm", "rot"}}), InvalidOption);
  CHECK_THROWS_AS(judged(table, {{"along", "train_samples"}}), InvalidOption);
  CHECK_THROWS_AS(judged(table, {{"op", "slower"}, {"than", "slwo"}}), InvalidOption);
}

}  // namespace
}  // namespace moelab::rates_test

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
    // Five standard errors of a share of 0.05 above it.
    CHECK(excluded < kTrials * (0.05 + 5 * std::sqrt(0.05 * 0.95 / kTrials)));
  }
}

TEST_CASE("the held-out score by hand") {
  // Two repetitions, e = c at sizes e, e², e³, e⁴ times the law's factor: at n^-1/2 both have ln e =
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

namespace moelab::power_law_test {
namespace {

/// Rounding of logarithms and of a solve of three unknowns.
constexpr double kRounding = 1e-10;

/// x: k in {2, 4, 8}, d in {1, 3}.
Matrix grid() {
  Matrix x(6, 2);
  x << 2, 1, 4, 1, 8, 1, 2, 3, 4, 3, 8, 3;
  return x;
}

Vector law(const Matrix& x, double constant, double first, double second) {
  return (constant * x.col(0).array().pow(first) * x.col(1).array().pow(second)).matrix();
}

TEST_CASE("an exact law has its exponents, and intervals of no width") {
  const auto fit = fit_power_law(grid(), law(grid(), 3, 0.5, -2));
  REQUIRE(fit);
  CHECK(fit->constant == doctest::Approx(3).epsilon(kRounding));
  CHECK(fit->exponents[0] == doctest::Approx(0.5).epsilon(kRounding));
  CHECK(fit->exponents[1] == doctest::Approx(-2).epsilon(kRounding));
  CHECK(fit->deviation < kRounding);
  for (const Interval& interval : fit->intervals) CHECK(interval.high - interval.low < kRounding);
}

TEST_CASE("one exponent worked out by hand") {
  // ln x = 0, 1, 2 and ln y = 0, 1, 1: slope 1/2, residuals -1/6, 1/3, -1/6, s² = 1/6, standard error
  // √(1/12).
  Matrix x(3, 1);
  x << 1, std::exp(1.0), std::exp(2.0);
  Vector y(3);
  y << 1, std::exp(1.0), std::exp(1.0);
  const auto fit = fit_power_law(x, y);
  REQUIRE(fit);
  const double half_width = 12.706204736 / std::sqrt(12.0);  // t with one degree of freedom at 0.975
  CHECK(fit->exponents[0] == doctest::Approx(0.5).epsilon(kRounding));
  CHECK(fit->intervals[0].low == doctest::Approx(0.5 - half_width).epsilon(1e-9));
  CHECK(fit->intervals[0].high == doctest::Approx(0.5 + half_width).epsilon(1e-9));
}

TEST_CASE("intervals hold the exponent in 95 % of draws") {
  Engine engine(5);
  int held = 0;
  constexpr int kDraws = 2000;
  for (int draw = 0; draw < kDraws; ++draw) {
    Vector y = law(grid(), 1, 1, 0);
    for (double& value : y) value *= std::exp(0.3 * draw_normal(engine));
    const auto fit = fit_power_law(grid(), y);
    held += fit->intervals[0].low <= 1 && 1 <= fit->intervals[0].high;
  }
  // Four standard errors of a frequency of 0.95 over 2000 draws are 0.02.
  CHECK(std::abs(static_cast<double>(held) / kDraws - 0.95) < 0.02);
}

TEST_CASE("too few points, or columns that go together, have no fit") {
  CHECK_FALSE(fit_power_law(grid().topRows(3), law(grid(), 1, 1, 1).head(3)));
  Matrix constant = grid();
  constant.col(1).setConstant(7);
  CHECK_FALSE(fit_power_law(constant, law(grid(), 1, 1, 1)));
  Matrix twins = grid();
  twins.col(1) = (3 * twins.col(0).array().square()).matrix();
  CHECK_FALSE(fit_power_law(twins, law(grid(), 1, 1, 1)));
  Matrix negative = grid();
  negative(0, 0) = -1;
  CHECK_THROWS_AS(fit_power_law(negative, law(grid(), 1, 1, 1)), InvalidOption);
}

TEST_CASE("one law, worked out by hand") {
  // ln (y ÷ x) = 0, 1, 2: mean 1, variance 1.
  const Vector x{{1, 2, 3}}, y{{1, 2 * std::exp(1.0), 3 * std::exp(2.0)}};
  const auto fit = fit_proportion(x, y);
  REQUIRE(fit);
  CHECK(fit->constant == doctest::Approx(std::exp(1.0)).epsilon(kRounding));
  CHECK(fit->deviation == doctest::Approx(1).epsilon(kRounding));
  CHECK_FALSE(fit_proportion(x.head(1), y.head(1)));
  CHECK_THROWS_AS(fit_proportion(-x, y), InvalidOption);
}

}  // namespace
}  // namespace moelab::power_law_test
