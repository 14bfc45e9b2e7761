#pragma once

/// Mixtures of random subspaces, which no linear router separates (Dikkala et al. 2023, section 3.3 and
/// appendix C.1).

#include <vector>

#include "sim/data/problem.h"

namespace moelab {

namespace subspace_mixture {

/// The argument of the linear target: z, or ε as the paper prints it.
enum class LabelOf { signal, noise };

/// y = W_c z or W_c ε,  rows of W_c ~ N(0, I_dim / dim).
struct LinearTarget {
  int dim = 1;
  void bind(Fields& fields) { bind_outputs(fields, dim); }
};
struct Targets : TargetAxis {
  static const std::vector<TargetKind>& table();
};

}  // namespace subspace_mixture

/// x = z + ε,  z = s B_c g. c is uniform over k clusters, g ~ N(0, I_rank), ε ~ N(0, σ² I_dim), s is
/// signal_std and σ noise_std. B_c (dim, rank) is an orthonormal basis of a uniformly random subspace, so
/// Cov(x | c) = s² B_c B_cᵀ + σ² I. Target `linear`, rows of W_c ~ N(0, I_dim / dim):
///   label_of `signal`: y = W_c z, the linear function of the subspace that the title of Fig. 6 announces;
///   label_of `noise`:  y = W_c ε, as C.1 prints it. Inside a cluster the part of ε outside the subspace is
///                      observed exactly, so that a share of at least (dim − rank) / dim is learnable.
/// The paper prints k = 64 and rank 8, but neither dim (24 by its width 4 · 24) nor σ. Each cluster has its
/// own stream: fewer clusters are the first of more, and a smaller rank spans the first directions of a
/// larger one.
///
/// E[y | x] is exact. With v = s² / (s² + σ²) and P_c = B_c B_cᵀ: E[z | x, c] = v P_c x, E[ε | x, c] = x − v
/// P_c x, and Pr[c | x] ∝ exp(v ‖B_cᵀ x‖² / 2σ²). All clusters share ‖x‖² and the determinant.
/// Without noise the nearest subspace has all the mass.
struct SubspaceMixtureOptions {
  int clusters = 0;  ///< k
  int dim = 0;       ///< d
  int rank = 0;      ///< t < d: subspaces of full rank are all the same
  double signal_std = 1;
  double noise_std = 0.1;
  subspace_mixture::LabelOf label_of = subspace_mixture::LabelOf::signal;
  OneOf<subspace_mixture::Targets> target = {};

  void bind(Fields& fields);
};

}  // namespace moelab
