#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "analysis/metrics/routing.h"
#include "analysis/metrics/sparsity.h"
#include "analysis/metrics/task.h"
#include "sim/base/error.h"

namespace moelab::metrics_test {
namespace {

namespace reference {
#include "tests/analysis/metrics/reference.inc"
}

/// Sums over a few hundred numbers of order 1 in double: rounding stays far below this.
constexpr double kRounding = 1e-10;
/// For hand-made cases with exact sums and one rounded logarithm or quotient.
constexpr double kLastBits = 1e-14;

MatrixView view(const std::vector<double>& values, int rows, int columns) {
  return {values.data(), rows, columns};
}

MatrixView reference_probabilities() {
  return view(reference::probabilities, reference::rows, reference::experts);
}

}  // namespace

TEST_CASE("metrics agree with NumPy") {
  const ClusterRouting routing(reference_probabilities(), reference::labels);
  CHECK(std::abs(routing.cluster_entropy() - reference::cluster_entropy) < kRounding);
  CHECK(std::abs(routing.effective_experts() - reference::effective_experts) < kRounding);
  CHECK(std::abs(routing.top1_cluster_purity().value() - reference::purity) < kRounding);
  CHECK(std::abs(routing.top1_cluster_concentration().value() - reference::concentration) < kRounding);
  CHECK(std::abs(adjusted_rand_index(routing.top1_table()).value() - reference::ari) < kRounding);
  CHECK(std::abs(normalized_mutual_information(routing.top1_table()).value() - reference::nmi) < kRounding);

  const MatrixView predictions = view(reference::predictions, reference::rows, reference::outputs);
  const MatrixView targets = view(reference::targets, reference::rows, reference::outputs);
  CHECK(std::abs(mean_squared_error(predictions, targets) - reference::loss) < kRounding);
  CHECK(std::abs(label_variance(targets) - reference::variance) < kRounding);
  CHECK(std::abs(normalised_mean_squared_error(predictions, targets).value() - reference::nmse) < kRounding);

  const MatrixView classes = view(reference::classes, reference::rows, reference::outputs);
  const MatrixView shares = view(reference::shares, reference::rows, reference::outputs);
  CHECK(std::abs(mean_cross_entropy(predictions, classes) - reference::cross_entropy) < kRounding);
  CHECK(std::abs(mean_cross_entropy(predictions, shares) - reference::shared_cross_entropy) < kRounding);
  CHECK(std::abs(accuracy(predictions, classes) - reference::right_share) < kLastBits);

  const MatrixView weight = view(reference::weight, reference::experts, reference::width);
  const MatrixView basis = view(reference::basis, reference::width, reference::signal);
  CHECK(std::abs(router_norm_ratio(weight).value() - reference::norm_ratio) < kRounding);
  CHECK(std::abs(router_signal_fraction(weight, basis).value() - reference::signal_fraction) < kRounding);

  const std::vector<std::int64_t> loads =
      expert_loads(top1_assignment(reference_probabilities()), reference::experts);
  CHECK(std::abs(expert_load_max_violation(loads).value() - reference::max_violation) < kRounding);
  CHECK(std::abs(expert_load_std_percent(loads).value() - reference::std_percent) < kRounding);
}

TEST_CASE("one-hot routing: two clusters on one expert each, one split evenly") {
  const std::vector<double> probabilities = {1, 0, 0, /**/ 1, 0, 0, /**/ 0, 1, 0, /**/ 0, 0, 1, /**/ 0, 1, 0};
  const std::vector<int> labels = {7, 7, -2, 3, 3};  // labels are names
  const ClusterRouting routing(view(probabilities, 5, 3), labels);
  CHECK(routing.clusters() == 3);
  CHECK(routing.rows() == 5);
  CHECK(std::abs(routing.cluster_entropy() - std::log(2.0) / 3) < kLastBits);
  CHECK(std::abs(routing.effective_experts() - (1 + 1 + 2) / 3.0) < kLastBits);
  // Expert 0 holds two rows of cluster 7; expert 1 one each of two clusters; expert 2 one: (2 + 1 + 1) / 5.
  CHECK(std::abs(routing.top1_cluster_purity().value() - 4 / 5.0) < kLastBits);
  CHECK(std::abs(routing.top1_cluster_concentration().value() - (1 + 1 + 0.5) / 3) < kLastBits);
}

TEST_CASE("the entropy of what is not a number is not one") {
  const double none = std::nan("");
  CHECK(std::isnan(entropy(std::vector<double>{none, 1})));
  CHECK(std::isnan(entropy(std::vector<double>{0, none})));
  CHECK(entropy(std::vector<double>{0, 1}) == 0);
  const std::vector<int> labels = {0, 1};
  const ClusterRouting routing(view({1, 0, none, none}, 2, 2), labels);
  CHECK(std::isnan(routing.cluster_entropy()));
  CHECK(std::isnan(routing.effective_experts()));
}

TEST_CASE("top-1 metrics go by the serving experts and leave out rows that none serves") {
  // Likeliest experts 0 0 1 1; the second row is served by the other, the last by none.
  const std::vector<double> probabilities = {0.9, 0.1, 0.6, 0.4, 0.2, 0.8, 0.3, 0.7};
  const std::vector<int> labels = {0, 0, 1, 2}, serving = {0, 1, 1, -1}, none(4, -1);
  const ClusterRouting routing(view(probabilities, 4, 2), serving, labels);
  CHECK(routing.rows() == 4);
  CHECK(routing.served_rows() == 3);
  CHECK(std::abs(routing.top1_cluster_purity().value() - 2 / 3.0) < kLastBits);
  CHECK(std::abs(routing.top1_cluster_concentration().value() - (0.5 + 1) / 2) < kLastBits);
  CHECK(routing.top1_table() == ContingencyTable{{1, 1}, {0, 1}});
  // Entropies are of the probabilities of all rows.
  const ClusterRouting likeliest(view(probabilities, 4, 2), labels);
  CHECK(routing.cluster_entropy() == likeliest.cluster_entropy());
  CHECK(likeliest.top1_cluster_purity().value() == 0.75);

  const ClusterRouting unserved(view(probabilities, 4, 2), none, labels);
  CHECK(unserved.cluster_entropy() == likeliest.cluster_entropy());
  CHECK_FALSE(unserved.top1_cluster_purity());
  CHECK_FALSE(unserved.top1_cluster_concentration());
  CHECK_FALSE(adjusted_rand_index(unserved.top1_table()));
  CHECK_FALSE(normalized_mutual_information(unserved.top1_table()));
}

TEST_CASE("the mean of entropies is not the entropy of the mean") {
  // Each cluster is certain, and both together are uniform: entropy 0, not ln 2.
  const std::vector<double> probabilities = {1, 0, 0, 1};
  const std::vector<int> labels = {0, 1};
  CHECK(ClusterRouting(view(probabilities, 2, 2), labels).cluster_entropy() == 0);
  const std::vector<int> together = {0, 0};
  CHECK(std::abs(ClusterRouting(view(probabilities, 2, 2), together).cluster_entropy() - std::log(2.0)) <
        kLastBits);
}

TEST_CASE("collapse scores 1 in concentration and 1/k in purity") {
  const std::vector<double> probabilities = {0.6, 0.4, 0.6, 0.4, 0.9, 0.1, 0.5, 0.5};
  const std::vector<int> labels = {0, 1, 2, 3};
  const ClusterRouting routing(view(probabilities, 4, 2), labels);
  CHECK(routing.top1_cluster_concentration().value() == 1);
  CHECK(routing.top1_cluster_purity().value() == 0.25);
}

TEST_CASE("rows added in blocks give the same bits as rows added at once") {
  ClusterRouting blocks(reference::experts);
  constexpr int cut = 11;
  blocks.add(view(reference::probabilities, cut, reference::experts),
             {reference::labels.data(), static_cast<std::size_t>(cut)});
  blocks.add(MatrixView(reference::probabilities.data() + cut * reference::experts, reference::rows - cut,
                        reference::experts),
             {reference::labels.data() + cut, static_cast<std::size_t>(reference::rows - cut)});
  const ClusterRouting whole(reference_probabilities(), reference::labels);
  CHECK(blocks.cluster_entropy() == whole.cluster_entropy());
  CHECK(blocks.mean_routing() == whole.mean_routing());
}

TEST_CASE("labels that do not vary have no normalised loss") {
  const Matrix targets = Matrix::Constant(7, 2, 0.1);
  const Matrix outputs = Matrix::Zero(7, 2);
  CHECK(label_variance(targets) == 0);
  CHECK_FALSE(normalised_mean_squared_error(outputs, targets).has_value());
  CHECK(std::abs(mean_squared_error(outputs, targets) - 0.01) < kLastBits);
}

TEST_CASE("the best constant prediction has normalised loss 1") {
  Matrix targets(4, 2);
  targets << 1, 5, 3, 5, 1, 9, 3, 9;
  Matrix outputs(4, 2);
  outputs.col(0).setConstant(2);
  outputs.col(1).setConstant(7);
  CHECK(label_variance(targets) == 2.5);  // (1 + 4) / 2
  CHECK(normalised_mean_squared_error(outputs, targets).value() == 1);
}

TEST_CASE("cross-entropy of classes: gradients equal central differences, extremes stay finite") {
  Matrix outputs = view(reference::predictions, reference::rows, reference::outputs);
  const MatrixView shares = view(reference::shares, reference::rows, reference::outputs);
  const Matrix gradients = cross_entropy_gradients(outputs, shares);
  // Truncation, step² f‴ / 6, and rounding, ε L rows / step, are near 1e-10 both.
  constexpr double kStep = 1e-5, kTolerance = 1e-8;
  for (const Eigen::Index row : {0, 17, 36}) {
    for (Eigen::Index column = 0; column < outputs.cols(); ++column) {
      const double kept = outputs(row, column);
      outputs(row, column) = kept + kStep;
      const double above = mean_cross_entropy(outputs, shares);
      outputs(row, column) = kept - kStep;
      const double below = mean_cross_entropy(outputs, shares);
      outputs(row, column) = kept;
      CHECK(std::abs((above - below) / (2 * kStep) * reference::rows - gradients(row, column)) < kTolerance);
    }
  }
  Matrix far(1, 3), indicator(1, 3);
  far << -1e5, 0, 1e5;
  indicator << 1, 0, 0;
  CHECK(mean_cross_entropy(far, indicator) == 2e5);
  CHECK(accuracy(far, indicator) == 0);
  CHECK_THROWS_AS(mean_cross_entropy(far, Matrix::Ones(1, 2)), InvalidOption);
  CHECK_THROWS_AS(accuracy(Matrix(0, 2), Matrix(0, 2)), InvalidOption);
}

TEST_CASE("router norms: equal rows, a single row, no row") {
  CHECK(std::abs(router_norm_ratio(Matrix::Identity(4, 4)).value() - 1) < kLastBits);
  Matrix single = Matrix::Zero(5, 3);
  single.row(2) << 3, 0, 4;
  CHECK(std::abs(router_norm_ratio(single).value() - 5) < kLastBits);
  CHECK_FALSE(router_norm_ratio(Matrix::Zero(5, 3)).has_value());
  Matrix basis = Matrix::Zero(3, 1);
  basis(0, 0) = 1;
  CHECK(std::abs(router_signal_fraction(single, basis).value() - 9 / 25.0) < kLastBits);
  CHECK_FALSE(router_signal_fraction(Matrix::Zero(5, 3), basis).has_value());
  CHECK_THROWS_AS(router_signal_fraction(Matrix::Zero(5, 4), basis), InvalidOption);
}

TEST_CASE("load: ties go to the lowest index, balance is 0, collapse is E − 1") {
  const std::vector<double> probabilities = {0.4, 0.4, 0.2, 0.1, 0.45, 0.45, 0.2, 0.3, 0.5};
  CHECK(top1_assignment(view(probabilities, 3, 3)) == std::vector<int>{0, 1, 2});
  const std::vector<std::int64_t> balanced = {2, 2, 2, 2}, collapsed = {8, 0, 0, 0}, none = {0, 0};
  CHECK(expert_load_max_violation(balanced).value() == 0);
  CHECK(expert_load_std_percent(balanced).value() == 0);
  CHECK(expert_load_max_violation(collapsed).value() == 3);
  // Percentages 100, 0, 0, 0 around 25: √((75² + 3·25²)/4) = 25√3.
  CHECK(std::abs(expert_load_std_percent(collapsed).value() - 25 * std::sqrt(3.0)) < 100 * kLastBits);
  CHECK_FALSE(expert_load_max_violation(none).has_value());
  CHECK_FALSE(expert_load_std_percent(none).has_value());
  const std::vector<int> serving = {1, -1, 1, 0};
  CHECK(expert_loads(serving, 2) == std::vector<std::int64_t>{1, 2});
  CHECK(unserved_share(serving) == 0.25);
  CHECK_FALSE(unserved_share({}));
}

TEST_CASE("shapes that do not fit are refused") {
  const std::vector<int> labels = {0, 1, 2};
  CHECK_THROWS_AS(ClusterRouting(Matrix::Ones(2, 4), labels), InvalidOption);
  CHECK_THROWS_AS(ClusterRouting(Matrix::Ones(3, 2), labels, labels), InvalidOption);
  CHECK_THROWS_AS(ClusterRouting(Matrix::Ones(3, 4), {labels.data(), 2}, labels), InvalidOption);
  CHECK_THROWS_AS(ClusterRouting(3).cluster_entropy(), InvalidOption);
  CHECK_THROWS_AS(mean_squared_error(Matrix::Ones(2, 4), Matrix::Ones(4, 2)), InvalidOption);
  CHECK_THROWS_AS(label_variance(Matrix(0, 2)), InvalidOption);
  CHECK_THROWS_AS(expert_loads(labels, 2), InvalidOption);
}

}  // namespace moelab::metrics_test
