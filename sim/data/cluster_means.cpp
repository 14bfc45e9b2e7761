#include "sim/data/cluster_means.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// Draws of one mean before a required separation fails.
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
  const double distance = scaled ? 0 : wanted;  // below which a draw is repeated
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

Vector posterior_of_distances(const Vector& squared, double variance) {
  Eigen::Index nearest = 0;
  const double least = squared.minCoeff(&nearest);
  Vector mass = Vector::Zero(squared.size());
  if (variance > 0) mass = ((least - squared.array()) / (2 * variance)).exp();
  mass[nearest] = 1;
  return mass / mass.sum();
}

void MeanHierarchy::bind(Fields& fields) {
  fields.required().add("depth", depth, between(1, kMostLevels),
                        "levels below the root; the last is the clusters");
  fields.required().add("branching", branching, between(2, kMostClusters), "children of every node");
  fields.required().add_number_or_list(
      "std_per_level", std_per_level, positive(),
      "a node is its parent and N(0, std_per_level² I); a number for all levels, or one for each level");
}

double MeanHierarchy::std_of_level(int level) const {
  return std_per_level.size() == 1 ? std_per_level.front()
                                   : std_per_level[static_cast<std::size_t>(level - 1)];
}

int leaves_of(const MeanHierarchy& hierarchy) {
  std::int64_t leaves = 1;
  for (int level = 0; level < hierarchy.depth && leaves <= kMostClusters; ++level)
    leaves *= hierarchy.branching;
  return static_cast<int>(std::min<std::int64_t>(leaves, kMostClusters + 1));
}

int ancestor_of(const MeanHierarchy& hierarchy, int leaf, int level) {
  for (int below = level; below < hierarchy.depth; ++below) leaf /= hierarchy.branching;
  return leaf;
}

void check(const MeanHierarchy& hierarchy) {
  const std::size_t numbers = hierarchy.std_per_level.size();
  if (numbers != 1 && numbers != static_cast<std::size_t>(hierarchy.depth))
    throw InvalidOption("data.hierarchy.std_per_level",
                        fmt::format("got {}, needs one number, or one for each of the {} levels",
                                    counted(numbers, "number"), hierarchy.depth));
  if (leaves_of(hierarchy) <= kMostClusters) return;
  throw InvalidOption("data.hierarchy.depth",
                      fmt::format("got {}, needs at most {} clusters, but branching {} gives more",
                                  hierarchy.depth, kMostClusters, hierarchy.branching));
}

Matrix draw_tree_means(const MeanHierarchy& hierarchy, int dim, Engine& engine) {
  Matrix means = Matrix::Zero(1, dim);
  for (int level = 1; level <= hierarchy.depth; ++level) {
    Matrix children(means.rows() * hierarchy.branching, dim);
    for (Eigen::Index child = 0; child < children.rows(); ++child) {
      for (int j = 0; j < dim; ++j) {
        children(child, j) =
            means(child / hierarchy.branching, j) + hierarchy.std_of_level(level) * draw_normal(engine);
      }
    }
    means = std::move(children);
  }
  return means;
}

}  // namespace moelab
