#pragma once

/// Centres of Gaussians that lie apart: what mixtures and dictionaries have in common.

#include <optional>

#include "sim/base/arrays.h"
#include "sim/base/options.h"
#include "sim/base/random.h"

namespace moelab {

/// The options of a generator that centres depend on, under the names that they have there.
struct SeparatedMeans {
  int dim = 0;
  double mean_std = 1.5;
  double noise_std = 1;
  std::optional<double> separation = std::nullopt;
  bool scale_to_separation = false;
};

/// `count` rows μ_i ~ N(0, mean_std² I_dim); with `separation` each is drawn until
/// ‖μ_i − μ_j‖ ≥ separation · noise_std · √dim for all before it (c-separation, Dikkala et al. 2023, 2).
/// With `scale_to_separation`, instead, all are drawn once and scaled so that the two nearest are that far
/// apart. Throws InvalidOption at "data.separation" when a place is not found.
Matrix draw_separated_means(const SeparatedMeans& options, int count, Engine& engine);

/// min_{i ≠ j} ‖μ_i − μ_j‖ over rows; ∞ for a single one.
double least_distance(const Matrix& means);

// Centres of clusters on a tree (Dikkala et al. 2023, section 5.1, name such structure as the next
// question).

/// Clusters of a mixture at most.
constexpr int kMostClusters = 1'000'000;
/// Levels of a tree at most.
constexpr int kMostLevels = 8;

/// A tree with `branching` children of every node down to level `depth`; the root is level 0. Node a of level
/// l ≥ 1 has a step s_a ~ N(0, std_per_level² I), independent of all others, and the mean of a leaf is the
/// sum of the steps from the root to it:
///   μ_c = Σ_{l=1}^{depth} s_{a_l(c)},   a_l(c) = ⌊c / branching^{depth − l}⌋ the ancestor of leaf c at level
///   l.
/// So μ_c ~ N(0, depth · std_per_level² I), and two leaves whose last common ancestor is at level l have
/// E‖μ − μ'‖² = 2 (depth − l) std_per_level² dim. Every level has the same deviation.
struct MeanHierarchy {
  int depth = 0;
  int branching = 0;
  double std_per_level = 0;

  void bind(Fields& fields);
};

/// branching^depth; more than kMostClusters where they are too many.
int leaves_of(const MeanHierarchy& hierarchy);

/// a_level(leaf), 0 … branching^level − 1; the leaf itself at level `depth`.
int ancestor_of(const MeanHierarchy& hierarchy, int leaf, int level);

/// Throws InvalidOption at "data.hierarchy.depth" for more leaves than kMostClusters.
void check(const MeanHierarchy& hierarchy);

/// The means of the leaves in their order, (branching^depth, dim). Steps are drawn level by level, so that a
/// deeper tree has the nodes of a shallower one, and a tree of depth 1 the means N(0, std_per_level² I) that
/// a mixture without a hierarchy has.
Matrix draw_tree_means(const MeanHierarchy& hierarchy, int dim, Engine& engine);

}  // namespace moelab
