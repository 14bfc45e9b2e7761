#include <doctest/doctest.h>

#include <cmath>

#include "analysis/theory/dikkala2023.h"

namespace moelab::lemmas_test {
namespace {

const CheckEffort kEffort;

/// A gradient step with softmax gates over −‖u_j − x‖², held fixed: not the k-means step.
Matrix soft_step(const Matrix& inputs, const Matrix& centres, double rate) {
  Matrix gates(inputs.rows(), centres.rows());
  for (Eigen::Index j = 0; j < centres.rows(); ++j)
    gates.col(j) = (-(inputs.rowwise() - centres.row(j)).rowwise().squaredNorm()).array().exp();
  for (Eigen::Index i = 0; i < inputs.rows(); ++i) gates.row(i) /= gates.row(i).sum();
  return centres -
         2 * rate / static_cast<double>(inputs.rows()) * (gates.transpose() * (gates * centres - inputs));
}

double weight_sharing_loss(const Matrix& inputs, const Matrix& centres) {
  double sum = 0;
  for (Eigen::Index i = 0; i < inputs.rows(); ++i)
    sum += (centres.rowwise() - inputs.row(i)).rowwise().squaredNorm().minCoeff();
  return sum / static_cast<double>(inputs.rows());
}

}  // namespace

TEST_CASE("lemma 1: the steps by hand, and the gradient against central differences") {
  const Matrix inputs = Matrix{{0.0}, {1.0}, {5.0}, {9.0}};
  const Matrix centres = Matrix{{1.0}, {6.0}, {100.0}};
  // Clusters {0, 1} and {5, 9}; the third centre has none. Rate n/(2 n_j) = 1 is Lloyd's step.
  const Matrix lloyd = Matrix{{0.5}, {7.0}, {100.0}};
  CHECK(k_means_step(inputs, centres, 1.0).isApprox(lloyd));
  CHECK(expert_gradient_step(inputs, centres, 1.0).isApprox(lloyd));
  CHECK(trained_step(inputs, centres, 1.0).isApprox(lloyd));
  constexpr double kStep = 1e-6;
  for (Eigen::Index j = 0; j < 3; ++j) {
    Matrix above = centres, below = centres;
    above(j, 0) += kStep;
    below(j, 0) -= kStep;
    const double slope =
        (weight_sharing_loss(inputs, above) - weight_sharing_loss(inputs, below)) / (2 * kStep);
    const double moved = centres(j, 0) - expert_gradient_step(inputs, centres, 1.0)(j, 0);
    CHECK(std::abs(moved - slope) < 1e-8);  // the loss is quadratic here: rounding alone
  }
}

TEST_CASE("lemma 1 holds; with soft gates or a step twice as long it fails") {
  CHECK(verdict_of(check_lemma1(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_lemma1(kEffort, expert_gradient_step)) == CheckVerdict::holds);
  CHECK(verdict_of(check_lemma1(kEffort, soft_step)) == CheckVerdict::fails);
  const auto doubled = [](const Matrix& inputs, const Matrix& centres, double rate) {
    return expert_gradient_step(inputs, centres, 2 * rate);
  };
  CHECK(verdict_of(check_lemma1(kEffort, doubled)) == CheckVerdict::fails);
}

TEST_CASE("lemma 2: the gap by hand") {
  // Two points of weight 1/2 and f = 1: E[x²] − E[x]² = Var(x) = 1/4 for x = 1, 2; 2.5 + 2.25 below.
  const WeightedPoints pair{Vector{{1.0, 2.0}}, Vector{{0.5, 0.5}}};
  CHECK(lemma2_gap(pair, {"1", 4, [](double) { return 1.0; }}) == doctest::Approx(0.25 / 4.75));
  CHECK(lemma2_gap(pair, {"y", 4, [](double y) { return y; }}) == doctest::Approx(0));
  CHECK(lemma2_gap(pair, {"y^2", 4, [](double y) { return y * y; }}) < 0);
}

TEST_CASE("lemma 2 holds but for point masses; a wrong gap fails; the hypothesis is verified") {
  CHECK(verdict_of(check_lemma2(kEffort, false)) == CheckVerdict::holds);
  CHECK(verdict_of(check_lemma2(kEffort, true)) == CheckVerdict::fails);
  CHECK(verdict_of(check_lemma2_point_mass(kEffort)) == CheckVerdict::holds);
  const Lemma2Gap square_of_mean = [](const WeightedPoints& points, const ScalarFunction& f) {
    const Vector values = points.x.unaryExpr([&](double x) { return f.value(x); });
    const double mean = points.weight.dot(points.x);
    return mean * mean * points.weight.dot(values) - mean * points.weight.dot(points.x.cwiseProduct(values));
  };
  CHECK(verdict_of(check_lemma2(kEffort, false, lemma2_functions(), square_of_mean)) == CheckVerdict::fails);
  const Lemma2Gap of_variance = [](const WeightedPoints& points, const ScalarFunction& f) {
    return lemma2_gap(points, f) + 1e-10;
  };
  CHECK(verdict_of(check_lemma2_point_mass(kEffort, of_variance)) == CheckVerdict::fails);
  const std::vector<ScalarFunction> rising = {{"y^2", 2, [](double y) { return y * y; }}};
  CHECK(verdict_of(check_lemma2(kEffort, false, rising)) == CheckVerdict::hypotheses_not_met);
  const std::vector<ScalarFunction> constant_ratio = {{"y", 2, [](double y) { return y; }}};
  CHECK(verdict_of(check_lemma2(kEffort, false, constant_ratio)) == CheckVerdict::hypotheses_not_met);
}

TEST_CASE("theorem 1: the variances add up without the square root only") {
  CHECK(verdict_of(check_shrinkage(kEffort, shrinkage_factor)) == CheckVerdict::holds);
  CHECK(verdict_of(check_shrinkage(kEffort, shrinkage_factor_as_printed)) == CheckVerdict::fails);
  CHECK(verdict_of(check_shrinkage(kEffort, [](double epsilon) { return epsilon; })) == CheckVerdict::fails);
}

}  // namespace moelab::lemmas_test
