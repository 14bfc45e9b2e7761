#include "sim/data/separated_means.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// Draws of one mean before a required separation is given up.
constexpr int kSeparationTries = 10000;

bool is_apart(const Matrix& means, int count, double distance) {
  for (int other = 0; other < count; ++other) {
    if ((means.row(count) - means.row(other)).norm() < distance) return false;
  }
  return true;
}

}  // namespace

double least_distance(const Matrix& means) {
  double least = std::numeric_limits<double>::infinity();
  for (Eigen::Index c = 1; c < means.rows(); ++c) {
    for (Eigen::Index other = 0; other < c; ++other) {
      least = std::min(least, (means.row(c) - means.row(other)).norm());
    }
  }
  return least;
}

Matrix draw_separated_means(const SeparatedMeans& options, int count, Engine& engine) {
  const int dim = options.dim;
  const double mean_std = options.mean_std;
  const double separation = options.separation.value_or(0.0);
  const bool scaled = options.scale_to_separation;
  const double wanted = separation * options.noise_std * std::sqrt(static_cast<double>(dim));
  const double distance = scaled ? 0 : wanted;  // for which a draw is repeated
  Matrix means(count, dim);
  for (int c = 0; c < count; ++c) {
    int tries = 0;
    do {
      if (++tries > kSeparationTries) {
        throw InvalidOption(
            "data.separation",
            fmt::format("got {}: no place for mean {} of {} at least {:.4g} from the others in {} draws "
                        "of N(0, {}² I) in {} dimensions; lower it or raise mean_std",
                        separation, c + 1, count, distance, kSeparationTries, mean_std, dim));
      }
      for (int j = 0; j < dim; ++j) means(c, j) = mean_std * draw_normal(engine);
    } while (distance > 0 && !is_apart(means, c, distance));
  }
  if (scaled) means *= wanted / least_distance(means);
  return means;
}

}  // namespace moelab
