#pragma once

/// Mixtures of spherical Gaussians with a target that depends on the component
/// (Dikkala et al. 2023, sections 3.1 and 3.2).

#include <cmath>
#include <optional>
#include <vector>

#include "sim/data/cluster_means.h"
#include "sim/data/problem.h"

namespace moelab {

/// Laws of the spurious coordinates, with mean 0 and variance 1. N(0, 1) and Laplace's law are
/// self-decomposable; ±1 with equal probability is not (see Dikkala et al. 2023, Theorem 1).
enum class SpuriousLaw { normal, laplace, two_point };

/// A draw of the law as an increasing function of a draw from N(0, 1).
inline double spurious_value(SpuriousLaw law, double normal) {
  if (law == SpuriousLaw::normal) return normal;
  if (law == SpuriousLaw::two_point) return normal < 0 ? -1 : 1;
  const double beyond = std::erfc(std::abs(normal) / std::sqrt(2.0));  // P(|h| > |·|) of both laws
  return std::copysign(-std::log(beyond) / std::sqrt(2.0), normal);
}

namespace gaussian_mixture {

/// σ² I.
struct IsotropicCovariance : NoFields {};
/// Each component has its own random tight features, and σ on the others (Nielsen et al. 2025).
struct TightSubsets {
  /// The features on which a mean may differ from 0: all, or the component's tight features.
  enum class Means { all, tight };
  int tight_features = 0;
  double tight_std = 0.2;
  double correlation = 0;  ///< ρ < 1 of every two features
  Means means = Means::all;
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

/// Checks the rules between fields. Throws InvalidOption at "data.<field>".
void check(const DataOptions& data);

/// Checks the tight features of a law in `dim` dimensions. Throws InvalidOption at
/// "data.covariance.<field>" or "data.noise_std".
void check_tight_subsets(const TightSubsets& tight, int dim, double noise_std);

/// The standard deviation of each feature in each component, (k, dim), and with `means` tight zeros off the
/// tight features of each of the `centres` (k, dim). `tight` is null if all features have σ. Component c
/// draws from the problem's stream `first_stream` + 1000 (c + 1), so that adding one changes no other.
Matrix draw_deviations(const TightSubsets* tight, double noise_std, const Seeds& seeds,
                       std::uint64_t first_stream, Matrix& centres);

}  // namespace gaussian_mixture

/// x = R [μ_c + σ g ; h],  c ~ weights, g ~ N(0, I_dim). The coordinates of h have the spurious law. R is the
/// identity or a random rotation. Means: μ_c ~ N(0, mean_std² I), or drawn until ‖μ_i − μ_j‖ ≥ separation · σ
/// · √dim for all pairs, or the leaves of a `hierarchy`. With a hierarchy mean_std has no effect, and the
/// leaves are the clusters.
struct GaussianMixtureOptions {
  std::optional<int> clusters = std::nullopt;  ///< k; see clusters_of()
  int dim = 0;                                 ///< of the signal, without spurious ones
  int spurious_dims = 0;
  bool rotate = false;
  double mean_std = 1.5;
  std::optional<double> separation = std::nullopt;
  bool scale_to_separation = false;  ///< scale all means so that the two nearest have exactly this distance
  std::optional<MeanHierarchy> hierarchy = std::nullopt;
  double noise_std = 1;  ///< σ
  OneOf<gaussian_mixture::CovarianceAxis> covariance = gaussian_mixture::IsotropicCovariance{};
  std::optional<std::vector<double>> weights = std::nullopt;  ///< (k), scaled to sum 1; default uniform
  std::optional<double> weight_power = std::nullopt;          ///< a: weights (c + 1)^−a instead
  OneOf<gaussian_mixture::Targets> target = {};
  SpuriousLaw spurious_law = SpuriousLaw::normal;  ///< of the spurious coordinates

  void bind(Fields& fields);
};

/// k: as given, or branching^depth of the hierarchy.
int clusters_of(const GaussianMixtureOptions& options);

/// p (k) with sum 1: the given weights, (c + 1)^−weight_power, or uniform.
Vector cluster_shares(const GaussianMixtureOptions& options);

}  // namespace moelab
