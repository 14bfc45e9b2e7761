#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "sim/base/error.h"
#include "sim/data/gaussian_mixture.h"

namespace moelab {
namespace {

/// Clusters are given, or the leaves of a tree.
void check_clusters(const GaussianMixtureOptions& options) {
  if (!options.hierarchy) {
    if (!options.clusters)
      throw InvalidOption("data.clusters", "missing; a mixture needs it, or data.hierarchy");
    return;
  }
  check(*options.hierarchy);
  const int leaves = leaves_of(*options.hierarchy);
  if (options.clusters && *options.clusters != leaves) {
    throw InvalidOption(
        "data.clusters",
        fmt::format("got {}, but the tree of data.hierarchy has {} ^ {} = {} leaves, which "
                    "are the clusters; leave it out",
                    *options.clusters, options.hierarchy->branching, options.hierarchy->depth, leaves));
  }
  if (options.separation && !options.scale_to_separation) {
    throw InvalidOption("data.separation",
                        fmt::format("got {}, but the means of data.hierarchy are drawn once; needs "
                                    "data.scale_to_separation true, which scales them",
                                    *options.separation));
  }
}

}  // namespace

int clusters_of(const GaussianMixtureOptions& options) {
  return options.hierarchy ? leaves_of(*options.hierarchy) : options.clusters.value_or(0);
}

Vector cluster_shares(const GaussianMixtureOptions& options) {
  const int clusters = clusters_of(options);
  std::vector<double> weights(static_cast<std::size_t>(clusters), 1.0);
  if (options.weights) weights = *options.weights;
  for (int c = 0; options.weight_power && c < clusters; ++c)
    weights[static_cast<std::size_t>(c)] = std::pow(c + 1, -*options.weight_power);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  Vector shares(clusters);
  for (int c = 0; c < clusters; ++c) shares[c] = weights[static_cast<std::size_t>(c)] / total;
  return shares;
}

namespace gaussian_mixture {

void check(const DataOptions& data) {
  const GaussianMixtureOptions& options = data.options().get<GaussianMixtureOptions>();
  check_clusters(options);
  const int clusters = clusters_of(options);
  const std::size_t weights = options.weights ? options.weights->size() : 0;
  if (weights > 0 && weights != static_cast<std::size_t>(clusters)) {
    throw InvalidOption(
        "data.weights",
        fmt::format("got {} weights, needs one for each of data.clusters = {}", weights, clusters));
  }
  if (options.weights && options.weight_power)
    throw InvalidOption("data.weight_power",
                        fmt::format("got {} beside data.weights; needs one of them", *options.weight_power));
  if (const gaussian_mixture::TightSubsets* const tight =
          options.covariance.as<gaussian_mixture::TightSubsets>()) {
    const int features = tight->tight_features;
    if (features > options.dim)
      throw InvalidOption("data.covariance.tight_features",
                          fmt::format("got {}, needs at most data.dim = {}", features, options.dim));
    if (tight->correlation == 1.0) throw InvalidOption("data.covariance.correlation", "got 1, needs less");
    if (options.noise_std == 0) throw InvalidOption("data.noise_std", "got 0, needs more with tight_subsets");
  }
  if (!options.scale_to_separation) return;
  const std::string path = "data.scale_to_separation";
  if (!options.separation) throw InvalidOption(path, "got true, needs data.separation");
  if (clusters < 2) throw InvalidOption(path, "got true, needs data.clusters of at least 2");
  if (options.noise_std == 0) throw InvalidOption(path, "got true, needs data.noise_std above 0");
}

void gaussian_mixture::TightSubsets::bind(Fields& fields) {
  fields.required().add("tight_features", tight_features, between(1, 1e6),
                        "features on which a component is tight");
  fields.add("tight_std", tight_std, positive(), "standard deviation on these");
  fields.add("correlation", correlation, fraction(), "correlation ρ of every two features, below 1");
}

const std::vector<KindEntry>& gaussian_mixture::CovarianceAxis::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<gaussian_mixture::IsotropicCovariance>("isotropic", "σ² I"),
      plain_kind<gaussian_mixture::TightSubsets>(
          "tight_subsets",
          "each component is tight on random features of its own and has σ on the "
          "others (Nielsen et al. 2025)")};
  return kinds;
}

const std::vector<TargetKind>& gaussian_mixture::Targets::table() {
  static const std::vector<TargetKind> kinds = {
      target_kind("constant", "y = v_c with v_c ~ N(0, I)", &gaussian_mixture::ConstantTarget::dim),
      target_kind("linear", "y = W_c (x − μ_c), rows of W_c ~ N(0, I / dim)",
                  &gaussian_mixture::LinearTarget::dim)};
  return kinds;
}

}  // namespace gaussian_mixture

void GaussianMixtureOptions::bind(Fields& fields) {
  fields.add("clusters", clusters, between(1, kMostClusters),
             "number of components k; needed but with hierarchy, which says it");
  fields.required().add("dim", dim, between(1, 1e6),
                        "dimensions of the mixture (the signal), spurious ones not counted");
  fields.add("spurious_dims", spurious_dims, between(0, 1e6),
             "further coordinates, N(0, 1) for every component");
  fields.add("spurious_law", spurious_law, {"normal", "laplace", "two_point"},
             "law of each of these, of mean 0 and variance 1: N(0, 1), Laplace's, or ±1");
  fields.add("rotate", rotate, "rotate the inputs at random, so that the signal is not axis-aligned");
  fields.add("mean_std", mean_std, positive(), "means are N(0, mean_std² I); no effect with hierarchy");
  fields.add("separation", separation, positive(),
             "required c: all means at least c · noise_std · √dim apart (drawn until it holds)");
  fields.add("scale_to_separation", scale_to_separation,
             "instead of drawing again, scale all means so that the two nearest are exactly that far apart");
  fields.add("hierarchy", hierarchy,
             "means are the leaves of a tree, a sum of steps along the way from its root");
  fields.add("noise_std", noise_std, at_least(0), "σ of every component");
  fields.add("covariance", covariance, "covariance of the components");
  fields.add("weights", weights, positive(), 1, "mixture weights, scaled to sum 1 (default uniform)");
  fields.add("weight_power", weight_power, between(0, 10),
             "weights fall as a power of the cluster's number, (c + 1)^−weight_power; 0 is uniform");
  fields.required().add("target", target, "what the component says of y");
}

}  // namespace moelab
