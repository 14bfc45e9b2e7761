#include "sim/data/mean_hierarchy.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"

namespace moelab {

void MeanHierarchy::bind(Fields& fields) {
  fields.required().add("depth", depth, between(1, kMostLevels),
                        "levels below the root; the last is the clusters");
  fields.required().add("branching", branching, between(2, kMostClusters), "children of every node");
  fields.required().add("std_per_level", std_per_level, positive(),
                        "a node is its parent and N(0, std_per_level² I), at every level alike");
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
            means(child / hierarchy.branching, j) + hierarchy.std_per_level * draw_normal(engine);
      }
    }
    means = std::move(children);
  }
  return means;
}

}  // namespace moelab
