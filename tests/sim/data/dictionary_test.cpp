#include "sim/data/dictionary.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "sim/base/error.h"
#include "tests/sim/data/data_of.h"
#include "tests/sim/data/pieces.h"
#include "tests/sim/data/statistics.h"

namespace moelab::dictionary_test {
namespace {

/// Moments of a few dozen coordinates are compared within this many standard errors (two-sided level 6e-7
/// each).
constexpr double kStandardErrors = 5;
/// Regressions of order-one numbers on some dozen well-conditioned columns.
constexpr double kRounding = 1e-10;
constexpr int kAtoms = 6, kDim = 4;

const Seeds kSeeds{1, 0};

std::unique_ptr<Problem> problem_of(const Json& changes, const Seeds& seeds = kSeeds) {
  Json data = {{"generator", "dictionary"}, {"atoms", kAtoms}, {"dim", kDim}, {"train_samples", 10}};
  data.update(changes);
  return draw_problem(data_of(data), seeds);
}

Dataset sample(const Problem& problem, int rows) {
  return draw_set(problem, kSeeds, Purpose::train_data, rows);
}

/// 1 where atom a is in the set of row i, (n, c).
Matrix membership(const std::vector<int>& cluster, int atoms, int rank) {
  Matrix member = Matrix::Zero(static_cast<Eigen::Index>(cluster.size()) / rank, atoms);
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    member(static_cast<Eigen::Index>(i) / rank, cluster[i]) += 1;
  }
  return member;
}

/// μ (c, d): without noise x is the sum of its atoms.
Matrix atoms_of(Json changes, const Seeds& seeds = kSeeds) {
  changes["noise_std"] = 0;
  const std::unique_ptr<Problem> still = problem_of(changes, seeds);
  const Dataset data = sample(*still, 100 * still->clusters());
  const Matrix member = membership(data.cluster, still->clusters(), still->layout().labels);
  const Matrix atoms = regression(member, data.x);
  REQUIRE((member * atoms - data.x).cwiseAbs().maxCoeff() < kRounding);
  return atoms;
}

using Sets = std::map<std::vector<int>, int>;

Sets count_sets(const std::vector<int>& cluster, int rank) {
  Sets counts;
  for (auto at = cluster.begin(); at != cluster.end(); at += rank) ++counts[{at, at + rank}];
  return counts;
}

/// Each of the `possible` sets equally likely.
bool sets_are_uniform(const Sets& counts, int rows, int possible) {
  const double mean = static_cast<double>(rows) / possible;
  double statistic = mean * (possible - static_cast<double>(counts.size()));
  for (const auto& [set, count] : counts) statistic += (count - mean) * (count - mean) / mean;
  return below_quantile(statistic, possible - 1);
}

/// Each atom equally likely. A set has an atom once at most, so that counts vary less than with
/// independent draws: Σ (n_a − n p)² / (n p (c − r) / (c − 1)), p = r / c, is χ² with c − 1 degrees of
/// freedom.
bool atoms_are_uniform(const Matrix& member, int rank) {
  const double atoms = static_cast<double>(member.cols());
  const double mean = static_cast<double>(member.rows()) * rank / atoms;
  const Vector counts = member.colwise().sum().transpose();
  const double statistic = (counts.array() - mean).square().sum() / (mean * (atoms - rank) / (atoms - 1));
  return below_quantile(statistic, atoms - 1);
}

TEST_CASE("atoms and sets of atoms are uniform") {
  constexpr int kRows = 20000;
  const std::map<int, int> possible = {{1, 6}, {2, 15}, {3, 20}, {5, 6}};
  for (const auto& [given_rank, sets] : possible) {
    const auto& rank = given_rank;
    CAPTURE(rank);
    const Dataset data = sample(*problem_of({{"rank", rank}}), kRows);
    CHECK(sets_are_uniform(count_sets(data.cluster, rank), kRows, sets));
    CHECK(atoms_are_uniform(membership(data.cluster, kAtoms, rank), rank));
  }

  // A second atom that moves on by one where it meets the first: atoms are uniform, pairs are not.
  Engine engine = kSeeds.stream(Purpose::evaluation);
  std::vector<int> neighbours, biased;
  for (int i = 0; i < kRows; ++i) {
    const int first = draw_index(engine, kAtoms);
    int second = draw_index(engine, kAtoms);
    if (second == first) second = (first + 1) % kAtoms;
    for (const int atom : {std::min(first, second), std::max(first, second)}) neighbours.push_back(atom);
    biased.push_back(draw_index(engine, 20) % kAtoms);
  }
  CHECK(atoms_are_uniform(membership(neighbours, kAtoms, 2), 2));
  CHECK_FALSE(sets_are_uniform(count_sets(neighbours, 2), kRows, 15));
  CHECK_FALSE(atoms_are_uniform(membership(biased, kAtoms, 1), 1));
}

TEST_CASE("a sample has r different atoms, in ascending order") {
  for (const int rank : {1, 2, 3, 6}) {
    CAPTURE(rank);
    const std::unique_ptr<Problem> problem = problem_of({{"rank", rank}});
    CHECK(problem->layout().labels == rank);
    CHECK(problem->clusters() == kAtoms);
    const Dataset data = sample(*problem, 500);
    REQUIRE(data.cluster.size() == static_cast<std::size_t>(500 * rank));
    for (const auto& [set, count] : count_sets(data.cluster, rank)) {
      CHECK(std::adjacent_find(set.begin(), set.end(), std::greater_equal<>()) == set.end());
      CHECK(set.front() >= 0);
      CHECK(set.back() < kAtoms);
    }
  }
}

TEST_CASE("given its set, x is N(Σ μ_i, r σ² I)") {
  constexpr double kSigma = 0.7;
  for (const int rank : {2, 3}) {
    CAPTURE(rank);
    const Json changes = {{"noise_std", kSigma}, {"rank", rank}};
    const Matrix atoms = atoms_of(changes);
    const Dataset data = sample(*problem_of(changes), 30000);
    const Matrix noise = data.x - membership(data.cluster, kAtoms, rank) * atoms;
    std::map<std::vector<int>, std::vector<int>> rows;
    for (int i = 0; i < data.x.rows(); ++i) {
      const auto first = data.cluster.begin() + i * rank;
      rows[{first, first + rank}].push_back(i);
    }
    for (const auto& [set, members] : rows) {
      const Matrix own = noise(members, Eigen::all);
      CHECK(standard_normal_deviation(own / (kSigma * std::sqrt(rank))) < kStandardErrors);
      CHECK(standard_normal_deviation(own / kSigma) > kStandardErrors);
      const Matrix without_one = own.rowwise() + atoms.row(set.front());
      CHECK(standard_normal_deviation(without_one / (kSigma * std::sqrt(rank))) > kStandardErrors);
    }
  }
}

TEST_CASE("atoms are N(0, mean_std² I) and depend on neither rank, noise nor target") {
  const Json many = {{"atoms", 400}, {"rank", 1}, {"mean_std", 2.0}};
  CHECK(standard_normal_deviation(atoms_of(many) / 2.0) < kStandardErrors);
  CHECK(standard_normal_deviation(atoms_of(many) / 1.5) > kStandardErrors);
  const Matrix atoms = atoms_of(Json::object());
  const auto differs = [&](const Matrix& other) { return (atoms - other).cwiseAbs().maxCoeff(); };
  CHECK(differs(atoms_of({{"rank", 3}})) < kRounding);
  CHECK(differs(atoms_of({{"target", {{"kind", "constant"}, {"dim", 7}}}})) < kRounding);
  CHECK(differs(atoms_of(Json::object(), {1, 1})) > 0.1);
  CHECK(differs(atoms_of(Json::object(), {2, 0})) > 0.1);
}

TEST_CASE("a required separation of the atoms holds") {
  const auto closest = [](const Json& changes) {
    // Noise far below every other number shows the atoms and leaves c · σ · √d = 3.5 to be kept.
    Json quiet = {{"atoms", 20}, {"dim", 6}, {"mean_std", 1.2}, {"rank", 1}, {"noise_std", 1e-9}};
    quiet.update(changes);
    const Dataset data = sample(*problem_of(quiet), 400);
    double least = INFINITY;
    for (Eigen::Index i = 0; i < data.x.rows(); ++i) {
      for (Eigen::Index j = 0; j < i; ++j) {
        if (data.cluster[static_cast<std::size_t>(i)] != data.cluster[static_cast<std::size_t>(j)]) {
          least = std::min(least, (data.x.row(i) - data.x.row(j)).norm());
        }
      }
    }
    return least;
  };
  constexpr double kNoise = 1e-7;
  const double required = 2.5;
  CHECK(closest({{"separation", required / (1e-9 * std::sqrt(6.0))}}) > required - kNoise);
  CHECK(closest(Json::object()) < required - kNoise);
  CHECK_THROWS_AS(problem_of({{"separation", 50}}), InvalidOption);
}

TEST_CASE("linear targets: y = (Σ W_i) x, constant ones: y = Σ W_i μ_i with the same W_i") {
  constexpr int kOutputs = 2, kRows = 600;
  for (const int rank : {2, 3}) {
    CAPTURE(rank);
    const auto target = [&](const char* kind) {
      return Json{{"rank", rank}, {"target", {{"kind", kind}, {"dim", kOutputs}}}};
    };
    const Dataset linear = sample(*problem_of(target("linear")), kRows),
                  constant = sample(*problem_of(target("constant")), kRows);
    CHECK((linear.x == constant.x));
    CHECK(linear.cluster == constant.cluster);
    // y is linear in the columns [i ∈ S] x_j, whose coefficients are the entries of W_i.
    const auto features = [&](const Matrix& member, const Matrix& x) {
      Matrix columns(kRows, kAtoms * kDim);
      for (int a = 0; a < kAtoms; ++a) {
        for (int j = 0; j < kDim; ++j) columns.col(a * kDim + j) = member.col(a).cwiseProduct(x.col(j));
      }
      return columns;
    };
    const Matrix member = membership(linear.cluster, kAtoms, rank);
    const auto residual = [](const Matrix& inputs, const Matrix& y) {
      return (y - inputs * regression(inputs, y)).cwiseAbs().maxCoeff();
    };
    const Matrix own = features(member, linear.x);
    CHECK(residual(own, linear.y) < kRounding);
    CHECK(residual(member, constant.y) < kRounding);
    // With the set of the next sample no regression is exact, nor does one form fit the other's columns.
    Matrix next(kRows, kAtoms);
    next << member.bottomRows(kRows - 1), member.topRows(1);
    CHECK(residual(features(next, linear.x), linear.y) > 0.1);
    CHECK(residual(next, constant.y) > 0.1);
    CHECK(residual(member, linear.y) > 0.1);

    const Matrix slopes = regression(own, linear.y);  // (c · d, o)
    const Matrix values = regression(member, constant.y);
    const Matrix atoms = atoms_of(target("linear"));
    for (int a = 0; a < kAtoms; ++a) {
      const Matrix expected = atoms.row(a) * slopes.middleRows(a * kDim, kDim);
      CHECK((values.row(a) - expected).cwiseAbs().maxCoeff() < kRounding);
    }
  }
}

TEST_CASE("rows of W_i are N(0, I / d)") {
  constexpr int kOutputs = 400;
  const Dataset data = sample(
      *problem_of({{"rank", 1}, {"atoms", 1}, {"target", {{"kind", "linear"}, {"dim", kOutputs}}}}), 50);
  const Matrix rows = regression(data.x, data.y).transpose();
  CHECK(standard_normal_deviation(rows * std::sqrt(kDim)) < kStandardErrors);
  CHECK(standard_normal_deviation(rows) > kStandardErrors);
}

TEST_CASE("a set drawn in pieces is the set drawn at once, to the last bit") {
  for (const char* target : {"linear", "constant"}) {
    CAPTURE(target);
    const std::unique_ptr<Problem> problem = problem_of({{"rank", 3}, {"target", target}});
    check_pieces(*problem, kSeeds, Purpose::train_data, {1, 2, 17, 480, 500});
    const Dataset whole = sample(*problem, 1000);
    CHECK(whole.cluster.size() == 3 * 1000);
    CHECK((draw_set(*problem, kSeeds, Purpose::test_data, 1000).x != whole.x));
  }
}

TEST_CASE("the Bayes predictor is the conditional mean") {
  constexpr int kRows = 20000;
  for (const char* target : {"linear", "constant"}) {
    for (const int rank : {2, 3}) {
      CAPTURE(target);
      CAPTURE(rank);
      const Json changes = {{"rank", rank}, {"target", {{"kind", target}, {"dim", 2}}}};
      const std::unique_ptr<Problem> problem = problem_of(changes);
      const Dataset data = sample(*problem, kRows);
      // The predictor of a world with less noise weighs the sets wrongly.
      Json quiet = changes;
      quiet["noise_std"] = 0.5;
      const Matrix best = *problem->bayes_prediction(data.x);
      const Matrix overconfident = *problem_of(quiet)->bayes_prediction(data.x);
      const auto loss = [&](const Matrix& prediction) {
        return (prediction - data.y).rowwise().squaredNorm().mean();
      };
      const Matrix mean = data.y.colwise().mean().replicate(kRows, 1);
      CHECK(loss(best) > 0.01);
      for (const Matrix& other : {mean, overconfident, Matrix(best * 0.9), Matrix(best * 1.1)}) {
        CHECK(loss(best) < loss(other));
      }
      CHECK(residual_correlation(data.x, data.y, best) < kStandardErrors);
      CHECK(residual_correlation(data.x, data.y, overconfident) > kStandardErrors);
    }
  }
}

TEST_CASE("the Bayes floor vanishes without noise and is left out for many sets") {
  for (const double noise : {0.0, 1.0}) {
    const std::unique_ptr<Problem> problem = problem_of({{"noise_std", noise}});
    const Dataset data = sample(*problem, 500);
    const double loss = (*problem->bayes_prediction(data.x) - data.y).rowwise().squaredNorm().mean();
    CHECK((loss < kRounding) == (noise == 0));
  }
  // 45 atoms make 990 pairs, 46 make 1035.
  const Matrix x = Matrix::Zero(1, kDim);
  CHECK(problem_of({{"atoms", 45}})->bayes_prediction(x).has_value());
  CHECK_FALSE(problem_of({{"atoms", 46}})->bayes_prediction(x).has_value());
  CHECK_FALSE(problem_of({{"atoms", 45}, {"rank", 3}})->bayes_prediction(x).has_value());
}

}  // namespace
}  // namespace moelab::dictionary_test
