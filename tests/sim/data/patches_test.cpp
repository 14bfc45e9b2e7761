#include "sim/data/patches.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/error.h"
#include "tests/sim/data/data_of.h"

namespace moelab::patches_test {
namespace {

constexpr double kRounding = 1e-12;

DataOptions data_with(const Json& changes) {
  Json given = {{"generator", "patches"}, {"dim", 20}, {"patches", 5}, {"law", "feature_noise"}};
  given.merge_patch(changes);
  DataOptions data = data_of(given);
  check(data);
  return data;
}

std::string refused_at(const Json& changes) {
  try {
    data_with(changes);
  } catch (const InvalidOption& error) {
    return error.path();
  }
  return "";
}

MatrixView patches_of(const Dataset& data, Eigen::Index sample, const Layout& layout) {
  return {&data.x(sample, 0), layout.tokens, layout.input_dim};
}

TEST_CASE("feature noise: each sample has one signal, its centre, another cluster's signal, and noise") {
  const Json law = {{"kind", "feature_noise"}, {"signal", {0.5, 2}}, {"centre", {1, 2}}, {"noise", {2.5, 3}}};
  const std::unique_ptr<Problem> problem = draw_problem(data_with({{"law", law}, {"scale", 10}}), {1, 0});
  const Layout layout = problem->layout();
  const Matrix &signals = problem->patch_directions()->signals,
               &centres = problem->patch_directions()->centres;
  Matrix all(20, 8);
  all << signals, centres;
  CHECK((all.transpose() * all).isApprox(Matrix::Identity(8, 8), kRounding));
  const Dataset data = draw_set(*problem, {1, 0}, Purpose::train_data, 500);
  int opposite = 0;
  for (Eigen::Index i = 0; i < 500; ++i) {
    const Matrix patches = patches_of(data, i, layout) / 10;
    const int k = data.cluster[size(i * layout.tokens)];
    const double y = data.y(i, 0) - data.y(i, 1);
    CHECK(std::abs(y) == 1);
    int signal = 0, centre = 0, feature = 0, noise = 0;
    for (int p = 0; p < layout.tokens; ++p) {
      CHECK(data.cluster[size(i * layout.tokens + p)] == k);
      const Eigen::RowVectorXd patch = patches.row(p), on = patch * signals;
      Eigen::Index which = 0;
      on.cwiseAbs().maxCoeff(&which);
      if (std::abs(patch.dot(centres.col(k)) - patch.norm()) < kRounding) {
        ++centre;
        CHECK((patch.norm() >= 1 && patch.norm() <= 2));
      } else if (std::abs(std::abs(on[which]) - patch.norm()) > 1e-9) {
        ++noise;
      } else if (which == k) {
        ++signal;
        CHECK((y * on[k] >= 0.5 && y * on[k] <= 2));
      } else {
        ++feature;
        CHECK((std::abs(on[which]) >= 2.5 && std::abs(on[which]) <= 3));
        opposite += y * on[which] < 0 ? 1 : 0;
      }
    }
    CHECK((signal == 1 && centre == 1 && feature == 1 && noise == 2));
  }
  // The sign of feature noise is independent of the class: 250 ± 5 · 11.2.
  CHECK(std::abs(opposite - 250) < 56);
}

TEST_CASE("own patches: one patch of the class at a uniform place among patterns") {
  const Json law = {{"kind", "own_patch"}, {"overlap", 0.5}, {"patterns", 6}, {"noise_std", 0}};
  const std::unique_ptr<Problem> problem = draw_problem(data_with({{"law", law}}), {2, 0});
  const Layout layout = problem->layout();
  const Matrix& own = problem->patch_directions()->signals;
  CHECK(problem->patch_directions()->centres.size() == 0);
  CHECK(own.col(0).dot(own.col(1)) == doctest::Approx(0.5).epsilon(kRounding));
  CHECK(own.colwise().norm().isApprox(Eigen::RowVectorXd::Ones(2), kRounding));
  const Dataset data = draw_set(*problem, {2, 0}, Purpose::train_data, 1000);
  std::vector<int> places(5, 0);
  for (Eigen::Index i = 0; i < 1000; ++i) {
    const MatrixView patches = patches_of(data, i, layout);
    const int c = data.y(i, 0) > 0 ? 0 : 1;
    int owned = 0;
    for (int p = 0; p < layout.tokens; ++p) {
      const int label = data.cluster[size(i * layout.tokens + p)];
      CHECK(patches.row(p).norm() == doctest::Approx(1).epsilon(kRounding));
      if (label > 1) {
        CHECK((patches.row(p) * own).isZero(kRounding));
        continue;
      }
      CHECK(label == c);
      CHECK(patches.row(p).transpose().isApprox(own.col(c), kRounding));
      ++owned;
      ++places[size(p)];
    }
    CHECK(owned == 1);
  }
  for (const int count : places) CHECK(std::abs(count - 200) < 64);  // 5 standard deviations
}

TEST_CASE("wider laws keep the classes, clusters and noise of a seed") {
  const Json near = {{"kind", "feature_noise"}, {"noise", {0.5, 2}}},
             far = {{"kind", "feature_noise"}, {"noise", {0.5, 3}}};
  const auto drawn = [](const Json& law) {
    return draw_set(*draw_problem(data_with({{"law", law}}), {1, 0}), {1, 0}, Purpose::train_data, 50);
  };
  const Dataset one = drawn(near), other = drawn(far);
  CHECK(one.y == other.y);
  CHECK(one.cluster == other.cluster);
  CHECK_FALSE(one.x == other.x);
}

TEST_CASE("what does not fit is refused at its place") {
  CHECK(refused_at({{"dim", 7}}) == "data.dim");
  CHECK(refused_at({{"patches", 2}}) == "data.patches");
  CHECK(refused_at({{"law", {{"kind", "feature_noise"}, {"signal", {2, 1}}}}}) == "data.law.signal");
  CHECK(refused_at({{"law", {{"kind", "feature_noise"}, {"noise", {1, 2, 3}}}}}) == "data.law.noise");
  CHECK(refused_at({{"law", {{"kind", "own_patch"}, {"patterns", 19}}}}) == "data.dim");
  CHECK(refused_at(Json::object()) == "");
}

}  // namespace
}  // namespace moelab::patches_test
