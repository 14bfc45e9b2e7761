/// Means of clusters on a tree.

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/error.h"
#include "sim/data/cluster_means.h"
#include "tests/sim/data/gaussian_mixture_problem.h"
#include "tests/sim/data/statistics.h"

namespace moelab::mean_hierarchy_test {
namespace {

/// See gaussian_mixture_test.cpp.
constexpr double kStandardErrors = 5;

Matrix means(const MeanHierarchy& tree, int dim) {
  Engine engine = kMixtureSeeds.stream(Purpose::problem);
  return draw_tree_means(tree, dim, engine);
}

Json tree(int depth, int branching, double std_per_level) {
  return {{"depth", depth}, {"branching", branching}, {"std_per_level", std_per_level}};
}

/// The small mixture with its means on a tree.
Json on_tree(const Json& hierarchy, Json changes = Json::object()) {
  changes.update({{"generator", "gaussian_mixture"},
                  {"dim", 4},
                  {"hierarchy", hierarchy},
                  {"target", {{"kind", "constant"}, {"dim", 3}}},
                  {"train_samples", 10}});
  return changes;
}

void check_refused(const Json& data, const std::string& path, const std::string& message) {
  try {
    check(data_of(data));
    FAIL_CHECK("accepted");
  } catch (const InvalidOption& error) {
    CHECK(error.path() == path);
    CHECK_MESSAGE(error.message().find(message) != std::string::npos, error.message());
  }
}

}  // namespace

TEST_CASE("ancestors: the leaves of a node follow one another") {
  const MeanHierarchy three{.depth = 3, .branching = 3, .std_per_level = {1}};
  CHECK(leaves_of(three) == 27);
  for (const auto& [leaf, level, ancestor] :
       {std::tuple{0, 1, 0}, {8, 1, 0}, {9, 1, 1}, {26, 1, 2}, {8, 2, 2}, {9, 2, 3}, {26, 2, 8}, {17, 3, 17}})
    CHECK(ancestor_of(three, leaf, level) == ancestor);
}

TEST_CASE("a tree of depth 1 has the means of a mixture without one") {
  const std::unique_ptr<Problem> plain = mixture_problem({{"mean_std", 2.5}}),
                                 star = draw_problem(data_of(on_tree(tree(1, 5, 2.5))), kMixtureSeeds);
  CHECK(star->clusters() == 5);
  CHECK(mixture_sample(*star, 50).x == mixture_sample(*plain, 50).x);
  CHECK(mixture_sample(*star, 50).y == mixture_sample(*plain, 50).y);
  // mean_std has no effect with it.
  const auto with_std = draw_problem(data_of(on_tree(tree(1, 5, 2.5), {{"mean_std", 9}})), kMixtureSeeds);
  CHECK(mixture_sample(*with_std, 50).x == mixture_sample(*plain, 50).x);
}

TEST_CASE("every node is its parent and N(0, std_per_level² I)") {
  constexpr int kBranching = 7;
  constexpr double kStd = 0.6;
  Matrix above = Matrix::Zero(1, 3);
  for (int depth = 1; depth <= 4; ++depth) {
    const Matrix nodes = means({.depth = depth, .branching = kBranching, .std_per_level = {kStd}}, 3);
    REQUIRE(nodes.rows() == kBranching * above.rows());
    Matrix steps = nodes, wrong = nodes;
    for (Eigen::Index i = 0; i < nodes.rows(); ++i) {
      steps.row(i) -= above.row(i / kBranching);
      wrong.row(i) -= above.row((i / kBranching + 1) % above.rows());
    }
    CAPTURE(depth);
    CHECK(standard_normal_deviation(steps / kStd) < kStandardErrors);
    // The step of another parent. From level 3 on there are enough parents.
    if (depth > 2) CHECK(standard_normal_deviation(wrong / kStd) > kStandardErrors);
    above = nodes;
  }
}

TEST_CASE("std_per_level: one number for all levels, or one for each") {
  const Matrix same = means({.depth = 2, .branching = 3, .std_per_level = {2}}, 4);
  CHECK(means({.depth = 2, .branching = 3, .std_per_level = {2, 2}}, 4) == same);
  // Without a step at the root, what remains are the steps of the second level.
  const Matrix first = means({.depth = 1, .branching = 3, .std_per_level = {2}}, 4),
               both = means({.depth = 2, .branching = 3, .std_per_level = {2, 0.5}}, 4);
  for (Eigen::Index leaf = 0; leaf < 9; ++leaf)
    CHECK((both.row(leaf) - first.row(leaf / 3)).isApprox((same.row(leaf) - first.row(leaf / 3)) / 4));
  Json hierarchy = tree(2, 3, 1);
  hierarchy["std_per_level"] = {1, 2, 3};
  check_refused(on_tree(hierarchy, {}), "data.hierarchy.std_per_level",
                "got 3 numbers, needs one number, or one for each of the 2 levels");
}

TEST_CASE("what else is known of a mixture holds on a tree") {
  const Json hierarchy = tree(2, 3, 4);
  const Json near = on_tree(hierarchy, {{"noise_std", 0.05}});
  const std::unique_ptr<Problem> problem = draw_problem(data_of(near), kMixtureSeeds);
  CHECK(problem->clusters() == 9);
  const Dataset data = mixture_sample(*problem, 300);
  // Components that hardly overlap: E[y | x] is the target.
  CHECK((problem->bayes_prediction(data.x).value() - data.y).cwiseAbs().maxCoeff() < 1e-6);
  const Json scaled = on_tree(hierarchy, {{"separation", 3}, {"scale_to_separation", true}});
  check(data_of(scaled));
  const Dataset far = mixture_sample(*draw_problem(data_of(scaled), kMixtureSeeds), 4000);
  Matrix averages(9, 4);
  for (int c = 0; c < 9; ++c) averages.row(c) = rows_of(far.x, far.cluster, c).colwise().mean();
  // Averages of some 440 rows are off by √(4 / 440) ≈ 0.1, a difference of two by 0.14.
  CHECK(std::abs(closest_pair(averages) - 3 * std::sqrt(4.0)) < 3 * 0.14);
  check(data_of(on_tree(hierarchy, {{"clusters", 9}, {"weights", {1, 2, 3, 4, 5, 6, 7, 8, 9}}})));
}

TEST_CASE("trees that cannot be") {
  const Json hierarchy = tree(2, 3, 1);
  check_refused(on_tree(hierarchy, {{"clusters", 8}}), "data.clusters",
                "got 8, but the tree of data.hierarchy has 3 ^ 2 = 9 leaves");
  check_refused(on_tree(hierarchy, {{"separation", 2}}), "data.separation", "scale_to_separation");
  check_refused(on_tree(tree(8, 6, 1)), "data.hierarchy.depth", "at most 1000000 clusters");
  check_refused(on_tree(hierarchy, {{"weights", {1, 2}}}), "data.weights", "data.clusters = 9");
  Json without = on_tree(hierarchy);
  without.erase("hierarchy");
  check_refused(without, "data.clusters", "missing; a mixture needs it, or data.hierarchy");
}

}  // namespace moelab::mean_hierarchy_test
