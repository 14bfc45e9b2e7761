#pragma once

/// Mixtures of spherical Gaussians with a target that depends on the component
/// (Dikkala et al. 2023, sections 3.1 and 3.2).

#include <cmath>
#include <optional>
#include <vector>

#include "sim/data/cluster_means.h"
#include "sim/data/problem.h"

namespace moelab {

/// Laws of mean 0 and variance 1 of coordinates that say nothing: N(0, 1); Laplace's, which is
/// self-decomposable as the normal law is; ±1 with equal probability, which is not (see Dikkala et al. 2023,
/// Theorem 1).
enum class SpuriousLaw { normal, laplace, two_point };

/// A draw of the law from one of N(0, 1), of which it is an increasing function.
inline double spurious_value(SpuriousLaw law, double normal) {
  if (law == SpuriousLaw::normal) return normal;
  if (law == SpuriousLaw::two_point) return normal < 0 ? -1 : 1;
  const double beyond = std::erfc(std::abs(normal) / std::sqrt(2.0));  // P(|h| > |·|) of both laws
  return std::copysign(-std::log(beyond) / std::sqrt(2.0), normal);
}

namespace gaussian_mixture {

/// σ² I.
struct IsotropicCovariance {
  void bind(Fields& /*fields*/) {}
};
/// Each component is tight on random features of its own and has σ on the others (Nielsen et al. 2025).
struct TightSubsets {
  int tight_features = 0;
  double tight_std = 0.2;
  double correlation = 0;  ///< ρ of every two features, below 1
  void bind(Fields& fields);
};
struct CovarianceAxis : PlainAxis {
  static const std::vector<KindEntry>& table();
  static constexpr const char* kNoun = "covariance";
};

/// y = v_c,  v_c ~ N(0, I_o).
struct ConstantTarget {
  int dim = 10;
  void bind(Fields& fields) { bind_outputs(fields, dim); }
};
/// y = W_c (x_signal − μ_c),  rows of W_c ~ N(0, I_dim / dim).
struct LinearTarget {
  int dim = 1;
  void bind(Fields& fields) { bind_outputs(fields, dim); }
};
struct Targets : TargetAxis {
  static const std::vector<TargetKind>& table();
};

/// Throws InvalidOption at "data.<field>" unless there are weights for each cluster, and what is tight and
/// what is scaled is there.
void check(const DataOptions& data);

}  // namespace gaussian_mixture

/// x = R [μ_c + σ g ; h],  c ~ weights, g ~ N(0, I_dim), h ~ N(0, I_spurious) or another law of mean 0 and
/// variance 1 for each of its coordinates, R the identity or a random rotation. Means: μ_c ~ N(0, mean_std²
/// I), or drawn until ‖μ_i − μ_j‖ ≥ separation · σ · √dim for all pairs, or the leaves of a `hierarchy`,
/// beside which mean_std has no effect and the number of clusters is that of the leaves.
struct GaussianMixtureOptions {
  std::optional<int> clusters = std::nullopt;  ///< k; see clusters_of()
  int dim = 0;                                 ///< of the signal, spurious ones not counted
  int spurious_dims = 0;
  bool rotate = false;
  double mean_std = 1.5;
  std::optional<double> separation = std::nullopt;
  bool scale_to_separation = false;  ///< scale all means so that the two nearest are exactly that far apart
  std::optional<MeanHierarchy> hierarchy = std::nullopt;
  double noise_std = 1;  ///< σ
  OneOf<gaussian_mixture::CovarianceAxis> covariance = gaussian_mixture::IsotropicCovariance{};
  std::optional<std::vector<double>> weights = std::nullopt;  ///< (k), scaled to sum 1; none: uniform
  std::optional<double> weight_power = std::nullopt;          ///< a: weights (c + 1)^−a in their place
  OneOf<gaussian_mixture::Targets> target = {};
  SpuriousLaw spurious_law = SpuriousLaw::normal;  ///< of the spurious coordinates

  void bind(Fields& fields);
};

/// k: as given, or branching^depth of the hierarchy.
int clusters_of(const GaussianMixtureOptions& options);

/// p (k), sum 1: as given, (c + 1)^−weight_power scaled, or uniform.
Vector cluster_shares(const GaussianMixtureOptions& options);

}  // namespace moelab
