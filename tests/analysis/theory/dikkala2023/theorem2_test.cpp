#include <doctest/doctest.h>

#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>

#include "analysis/theory/dikkala2023.h"

namespace moelab::theorem2_test {
namespace {

const CheckEffort kEffort;

/// Inclusion and exclusion, cut after the clusters that are missed one by one.
double union_bound(int clusters, int rows) {
  return 1 - clusters * std::pow(1 - 1.0 / clusters, rows);
}

/// Centres whose norms do not grow with d.
Matrix short_centres(Engine& engine, int clusters, int dim) {
  return random_centres(engine, clusters, dim) / std::sqrt(static_cast<double>(dim));
}

/// |mu|^2 = 1.5 sqrt(d ln d).
Matrix centres_of_a_power_law(Engine& engine, int clusters, int dim) {
  Matrix centres = draw_normals(engine, clusters, dim);
  for (Eigen::Index c = 0; c < clusters; ++c)
    centres.row(c) *= std::sqrt(1.5 * std::sqrt(dim * std::log(dim))) / centres.row(c).norm();
  return centres;
}

}  // namespace

TEST_CASE("coverage probabilities by hand, and by inclusion and exclusion where it does not cancel") {
  CHECK(coverage_probability(1, 1) == doctest::Approx(1));
  CHECK(coverage_probability(3, 2) == 0);
  CHECK(coverage_probability(3, 3) == doctest::Approx(6.0 / 27));
  // 36 of 81: one of three values twice, 3 · 4!/2!.
  CHECK(coverage_probability(3, 4) == doctest::Approx(36.0 / 81));
  const int clusters = 8;
  for (const int rows : {8, 20, 60}) {
    double sum = 0, binomial = 1;
    for (int missed = 0; missed < clusters; ++missed) {
      sum +=
          (missed % 2 == 0 ? 1 : -1) * binomial * std::pow(1 - static_cast<double>(missed) / clusters, rows);
      binomial *= static_cast<double>(clusters - missed) / (missed + 1);
    }
    CHECK(coverage_probability(clusters, rows) == doctest::Approx(sum).epsilon(1e-10));
  }
}

TEST_CASE("theorem 2: coverage holds; with the union bound for the probability it fails") {
  CHECK(verdict_of(check_coverage(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_coverage(kEffort, union_bound)) == CheckVerdict::fails);
  CHECK(verdict_of(check_coverage_bound()) == CheckVerdict::holds);
  const auto half_the_rows = [](int clusters, int rows) { return coverage_probability(clusters, rows / 2); };
  CHECK(verdict_of(check_coverage_bound(half_the_rows)) == CheckVerdict::fails);
}

TEST_CASE("theorem 2: distances hold for a small C; for a large one, or without separation, they fail") {
  CHECK(verdict_of(check_distance(0.04)) == CheckVerdict::holds);
  CHECK(verdict_of(check_distance(0.5)) == CheckVerdict::fails);
  CHECK(verdict_of(check_distance_drawn(kEffort)) == CheckVerdict::holds);
  const auto central = [](int dim, double, double radius) {
    return boost::math::cdf(boost::math::chi_squared(dim), radius * radius * dim / 2);
  };
  CHECK(verdict_of(check_distance_drawn(kEffort, central)) == CheckVerdict::fails);
}

TEST_CASE("theorem 2: the off-cluster mass falls with d; for centres of norm 1 it does not") {
  const CheckFinding finding = check_off_cluster_mass(kEffort, 4);
  CHECK(verdict_of(finding) == CheckVerdict::holds);
  CHECK(verdict_of(check_off_cluster_mass(kEffort, 4, short_centres)) == CheckVerdict::fails);
  // Scores differ by |mu|^2 with deviations of about sqrt(2 d): a mass of about d^-0.6.
  const CheckFinding power = check_off_cluster_mass(kEffort, 4, centres_of_a_power_law);
  CHECK(verdict_of(power) == CheckVerdict::fails);
  CHECK(power.measured > 0);
}

TEST_CASE("theorem 2: of two separated centres on one ray the shorter loses all its mass") {
  const CheckFinding finding = check_off_cluster_mass(kEffort, 2, ray_centres);
  CHECK(verdict_of(finding) == CheckVerdict::hypotheses_not_met);
  const auto& [name, mass] = finding.details[finding.details.size() - 2];
  CHECK(name == "of cluster 1 at d = 64");
  CHECK(mass > 0.999);
}

TEST_CASE(
    "theorem 2: each cluster ends with a specialist, also of a frozen router; from rows near 0 it does not") {
  CHECK(verdict_of(check_specialists(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_specialists(kEffort, 1, 0)) == CheckVerdict::holds);
  CHECK(verdict_of(check_specialists(kEffort, 0.01)) == CheckVerdict::fails);
}

TEST_CASE("theorem 2 in its own setting: specialists after logarithmic steps, then directions stay") {
  CHECK(verdict_of(check_sample_specialists(kEffort, false)) == CheckVerdict::holds);
  CHECK(verdict_of(check_sample_specialists(kEffort, true)) == CheckVerdict::holds);
  CHECK(verdict_of(check_sample_specialists(kEffort, false, 0.01)) == CheckVerdict::fails);
}

}  // namespace moelab::theorem2_test
