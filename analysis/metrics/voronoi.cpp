#include "analysis/metrics/voronoi.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr double kMostMaps = 1e6;

/// Δ of a fit from a true component.
struct Difference {
  Eigen::RowVectorXd gate;  // before the common shift
  Eigen::RowVectorXd true_gate;
  Eigen::RowVectorXd slope;
  double intercept = 0;
  double expert_square() const { return slope.squaredNorm() + intercept * intercept; }
};

using Differences = std::vector<std::vector<Difference>>;  // [fit][true component]

Differences all_differences(const MixtureComponents& fitted, const MixtureComponents& truth,
                            bool even_power) {
  Differences all(static_cast<std::size_t>(fitted.weight.size()));
  for (Eigen::Index i = 0; i < fitted.weight.size(); ++i) {
    for (Eigen::Index j = 0; j < truth.weight.size(); ++j) {
      const auto with_sign = [&](double sign) {
        return Difference{fitted.gate.row(i) - truth.gate.row(j), truth.gate.row(j),
                          sign * fitted.slope.row(i) - truth.slope.row(j),
                          sign * fitted.intercept[i] - truth.intercept[j]};
      };
      const Difference plain = with_sign(1), flipped = with_sign(-1);
      const bool flip = even_power && flipped.expert_square() < plain.expert_square();
      all[static_cast<std::size_t>(i)].push_back(flip ? flipped : plain);
    }
  }
  return all;
}

/// The map of least Σ_i w_i ‖Δ_i‖², and the shift that belongs to it.
struct Alignment {
  std::vector<int> cells;
  Eigen::RowVectorXd shift;
};

Alignment best_alignment(const Differences& differences, const Vector& weights, Eigen::Index shifted) {
  const std::size_t fits = differences.size(), components = differences.front().size();
  Alignment best;
  double least = std::numeric_limits<double>::infinity();
  std::vector<int> cells(fits, 0);
  for (std::size_t place = 0; place < fits;) {
    Eigen::RowVectorXd shift = Eigen::RowVectorXd::Zero(differences[0][0].gate.size());
    double cost = 0;
    for (std::size_t i = 0; i < fits; ++i) {
      const Difference& difference = differences[i][static_cast<std::size_t>(cells[i])];
      const double weight = weights[static_cast<Eigen::Index>(i)];
      shift -= weight * difference.gate;
      cost += weight * (difference.gate.squaredNorm() + difference.expert_square());
    }
    shift.tail(shift.size() - shifted).setZero();
    cost -= shift.squaredNorm();  // where there is a shift the weights' sum is 1
    if (cost < least) {
      least = cost;
      best = {cells, shift};
    }
    // The next map, counting up from the first place.
    for (place = 0; place < fits; ++place) {
      if (++cells[place] < static_cast<int>(components)) break;
      cells[place] = 0;
    }
  }
  return best;
}

/// Sums of w ‖Δ‖² over some fits.
struct Sums {
  double weight = 0, gate = 0, direction = 0, length = 0, slope = 0, intercept = 0;
  void add(double w, const Difference& difference) {
    weight += w;
    gate += w * difference.gate.squaredNorm();
    const Eigen::RowVectorXd found = difference.true_gate + difference.gate;
    const double true_length = difference.true_gate.norm(), found_length = found.norm();
    length += w * (found_length - true_length) * (found_length - true_length);
    if (true_length > 0 && found_length > 0)
      direction += w * (found / found_length - difference.true_gate / true_length).squaredNorm();
    slope += w * difference.slope.squaredNorm();
    intercept += w * difference.intercept * difference.intercept;
  }
  std::optional<ParameterErrors> errors() const {
    if (weight == 0) return std::nullopt;
    const auto root = [&](double sum) { return std::sqrt(sum / weight); };
    return ParameterErrors{root(gate),  root(direction), root(length),
                           root(slope), root(intercept), root(slope + intercept)};
  }
};

}  // namespace

VoronoiErrors voronoi_errors(const MixtureComponents& fitted, const MixtureComponents& truth,
                             bool even_power) {
  const double maps =
      std::pow(static_cast<double>(truth.weight.size()), static_cast<double>(fitted.weight.size()));
  if (maps > kMostMaps) {
    throw InvalidOption("model.experts", fmt::format("{} fits of {} components are too many to match",
                                                     fitted.weight.size(), truth.weight.size()));
  }
  const Vector& weights = fitted.weight;
  Vector missing = truth.weight;
  const Differences differences = all_differences(fitted, truth, even_power);
  const Alignment alignment = best_alignment(differences, weights, truth.shifted);
  VoronoiErrors result;
  result.cells = alignment.cells;
  result.shift = alignment.shift;
  Sums exact, over, exact_unweighted, over_unweighted;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    const int cell = result.cells[i];
    const double weight = weights[static_cast<Eigen::Index>(i)];
    missing[cell] -= weight;
    Difference difference = differences[i][static_cast<std::size_t>(cell)];
    difference.gate += alignment.shift;
    const double gate = difference.gate.norm(), expert = std::sqrt(difference.expert_square());
    if (std::count(result.cells.begin(), result.cells.end(), cell) == 1) {
      exact.add(weight, difference);
      exact_unweighted.add(1, difference);
      result.loss_exact += weight * (gate + expert);
    } else {
      over.add(weight, difference);
      over_unweighted.add(1, difference);
      result.loss_over += weight * (gate * gate + expert * expert);
    }
  }
  for (int j = 0; j < truth.weight.size(); ++j) {
    result.empty_cells += std::count(result.cells.begin(), result.cells.end(), j) == 0 ? 1 : 0;
  }
  result.weight_error = missing.cwiseAbs().sum();
  result.loss = result.loss_exact + result.loss_over + result.weight_error;
  result.exact = exact.errors();
  result.over = over.errors();
  result.exact_unweighted = exact_unweighted.errors();
  result.over_unweighted = over_unweighted.errors();
  return result;
}

}  // namespace moelab
