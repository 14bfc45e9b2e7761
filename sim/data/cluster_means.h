#pragma once

/// Centres of Gaussian clusters: drawn independently with a separation, or as leaves of a tree.

#include <optional>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/options.h"
#include "sim/base/random.h"

namespace moelab {

/// The options on which centres depend, with the names that generators use.
struct SeparatedMeans {
  int dim = 0;
  double mean_std = 1.5;
  double noise_std = 1;
  std::optional<double> separation = std::nullopt;
  bool scale_to_separation = false;
};

/// `count` rows μ_i ~ N(0, mean_std² I_dim). With `separation` each row is drawn until
/// ‖μ_i − μ_j‖ ≥ separation · noise_std · √dim for all rows before it (c-separation, Dikkala et al. 2023,
/// section 2). With `scale_to_separation` all rows are drawn once and scaled, so that the two nearest have
/// exactly this distance. Throws InvalidOption at "data.separation" if no place is found.
Matrix draw_separated_means(const SeparatedMeans& options, int count, Engine& engine);

/// min_{i ≠ j} ‖μ_i − μ_j‖ over rows, or ∞ for a single row.
double least_distance(const Matrix& means);

/// P(c | x) (k) for equal weights and Gaussians N(μ_c, variance · I): ∝ exp(−‖x − μ_c‖² / (2 variance)), from
/// the squared distances (k). Without variance the nearest mean has all the mass.
Vector posterior_of_distances(const Vector& squared, double variance);

// Centres on a tree (Dikkala et al. 2023, section 5.1, name such structure as the next question)

/// The largest number of clusters in a mixture, and of levels in a tree.
constexpr int kMostClusters = 1'000'000;
constexpr int kMostLevels = 8;

/// A tree in which every node down to level `depth` has `branching` children. The root is level 0. Node a of
/// level l ≥ 1 has an independent step s_a ~ N(0, σ_l² I), where σ_l is entry l of `std_per_level`, or its
/// only entry. The mean of a leaf is the sum of the steps from the root:
///   μ_c = Σ_{l=1}^{depth} s_{a_l(c)},   a_l(c) = ⌊c / branching^{depth − l}⌋ the ancestor of leaf c at level
///   l.
/// So μ_c ~ N(0, Σ_l σ_l² I), and two leaves whose last common ancestor is at level k have
/// E‖μ − μ'‖² = 2 Σ_{l>k} σ_l² dim.
struct MeanHierarchy {
  int depth = 0;
  int branching = 0;
  std::vector<double> std_per_level;  ///< one number, or one for each level from the root

  void bind(Fields& fields);
  /// σ_l for level l = 1 … depth.
  double std_of_level(int level) const;
};

/// branching^depth, or kMostClusters + 1 if that is larger.
int leaves_of(const MeanHierarchy& hierarchy);

/// a_level(leaf), 0 … branching^level − 1. At level `depth` it is the leaf.
int ancestor_of(const MeanHierarchy& hierarchy, int leaf, int level);

/// Throws InvalidOption below "data.hierarchy" for more leaves than kMostClusters, and for a list of numbers
/// that is not as long as the tree is deep.
void check(const MeanHierarchy& hierarchy);

/// The means of the leaves in order, (branching^depth, dim). Steps are drawn level by level. So a deeper tree
/// has the nodes of a shallower one, and a tree of depth 1 has the means N(0, σ_1² I) of a mixture
/// without hierarchy.
Matrix draw_tree_means(const MeanHierarchy& hierarchy, int dim, Engine& engine);

}  // namespace moelab
