#pragma once

/// Clusters of single-index models (Kawata, Matsutani, Kinoshita, Nishikawa, Suzuki 2025).

#include <vector>

#include "sim/data/problem.h"

namespace moelab {

/// The normalised Hermite polynomial he_i = He_i / √(i!), for z ~ N(0, 1) orthonormal.
double hermite(int degree, double z);

/// Cluster c is uniform on C, x ~ N(ρ v_c, I), y = f(w_c·x) + s_c g(w_g·x) + N(0, noise_std²).
///
/// f = Σ_i local_i he_{k+i} and g = Σ_i global_i he_{k+i}, with k the information exponent. All v_c, w_c and
/// w_g are orthonormal. With Σ_c s_c = 0 the global task w_g averages out over clusters.
struct SingleIndexOptions {
  int clusters = 2;
  int dim = 16;
  double mean_norm = 2;
  int exponent = 3;
  std::vector<double> local = {1};
  std::vector<double> global = {1};
  std::vector<double> signs = {1, -1};
  double noise_std = 0;
  void bind(Fields& fields);
};

/// Unit vectors v_c and w_c (C, d), and w_g (1, d).
struct SingleIndexDirections {
  Matrix means, local, global;
};

}  // namespace moelab
