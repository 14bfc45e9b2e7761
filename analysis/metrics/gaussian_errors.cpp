#include "analysis/metrics/gaussian_errors.h"

#include <algorithm>
#include <cmath>

namespace moelab {
namespace {

/// R of so many fits in a cell.
std::optional<double> order_of(std::ptrdiff_t fits) {
  if (fits == 2) return 4;
  if (fits == 3) return 6;
  return std::nullopt;
}

}  // namespace

GaussianErrors gaussian_errors(const MixtureComponents& fitted, const Vector& fitted_variance,
                               const MixtureComponents& truth, const Vector& true_variance,
                               const VoronoiErrors& errors) {
  GaussianErrors found;
  double loss = errors.weight_error;
  bool is_known = true;
  struct Sum {
    double weight = 0, square = 0;
    std::optional<double> root() const {
      if (weight == 0) return std::nullopt;
      return std::sqrt(square / weight);
    }
  } exact, over;
  for (Eigen::Index i = 0; i < fitted.weight.size(); ++i) {
    const int cell = errors.cells[static_cast<std::size_t>(i)];
    const double weight = fitted.weight[i];
    const double gate = (fitted.gate.row(i) - truth.gate.row(cell) + errors.shift).norm(),
                 slope = (fitted.slope.row(i) - truth.slope.row(cell)).norm(),
                 intercept = std::abs(fitted.intercept[i] - truth.intercept[cell]),
                 variance = std::abs(fitted_variance[i] - true_variance[cell]);
    const auto fits = std::count(errors.cells.begin(), errors.cells.end(), cell);
    Sum& sum = fits == 1 ? exact : over;
    sum.weight += weight;
    sum.square += weight * variance * variance;
    if (fits == 1) {
      loss += weight * (gate + slope + intercept + variance);
      continue;
    }
    const std::optional<double> order = order_of(fits);
    is_known = is_known && order;
    const double r = order.value_or(0);
    loss += weight *
            (std::pow(gate, r) + std::pow(intercept, r) + std::pow(slope, r / 2) + std::pow(variance, r / 2));
  }
  if (is_known) found.loss = loss;
  found.exact = exact.root();
  found.over = over.root();
  return found;
}

}  // namespace moelab
