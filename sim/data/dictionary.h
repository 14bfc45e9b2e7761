#pragma once

/// Sums of draws from several Gaussians, with a target that is a sum over them (Dikkala et al. 2023,
/// sections 3.6 and C.3).

#include <optional>
#include <vector>

#include "sim/data/problem.h"

namespace moelab {

namespace dictionary {

/// y = (Σ_{i∈S} W_i) x (C.3).
struct LinearTarget {
  int dim = 1;
  void bind(Fields& fields) { bind_outputs(fields, dim); }
};
/// y = Σ_{i∈S} W_i μ_i (3.6): the sum of a value per atom.
struct ConstantTarget {
  int dim = 1;
  void bind(Fields& fields) { bind_outputs(fields, dim); }
};
struct Targets : TargetAxis {
  static const std::vector<TargetKind>& table();
};

}  // namespace dictionary

/// x = Σ_{i∈S} (μ_i + σ g_i), with S uniform among the sets of r of the c atoms and g_i ~ N(0, I_d). Given S,
/// x ~ N(Σ μ_i, r σ² I). Atoms μ_i are drawn like the means of gaussian_mixture, with a separation on
/// request. Targets have W_i (o, d), rows ~ N(0, I / d). The same seed gives both targets the same atoms and
/// W_i.
///
/// Dataset.cluster holds the r atoms of each sample in ascending order, (n, r). E[y | x] is a sum over all
/// sets, computed for at most 1000 sets (32 atoms with rank 2 have 496, 128 atoms 8128).
struct DictionaryOptions {
  int atoms = 0;  ///< c
  int dim = 0;    ///< d
  int rank = 2;   ///< r ≤ c
  double mean_std = 1.5;
  std::optional<double> separation = std::nullopt;  ///< see sim/data/cluster_means.h
  double noise_std = 1;                             ///< σ
  OneOf<dictionary::Targets> target = dictionary::LinearTarget{};

  void bind(Fields& fields);
};

}  // namespace moelab
