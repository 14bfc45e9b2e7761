#pragma once

/// Sequences of tokens that share latent topics, with one target per token. The tokens of a sequence carry
/// information about one another (Nguyen et al. 2025, "graph of tokens").

#include <optional>
#include <vector>

#include "sim/data/gaussian_mixture.h"
#include "sim/data/problem.h"

namespace moelab {

namespace token_topics {

/// y_t = v_c,  v_c ~ N(0, I).
struct ConstantTarget {
  int dim = 10;
  void bind(Fields& fields) { bind_outputs(fields, dim); }
};
/// y_t = W_c (x_t − μ_c),  rows of W_c ~ N(0, I / d).
struct LinearTarget {
  int dim = 10;
  void bind(Fields& fields) { bind_outputs(fields, dim); }
};
/// The indicator of the class of the cluster. The classes share the clusters evenly.
struct ClassTarget {
  int classes = 4;
  void bind(Fields& fields);
};
/// The indicator of argmax_j (W_c (x_t − μ_c))_j, which gives experts something to learn.
struct LinearClassTarget {
  int classes = 4;
  void bind(Fields& fields);
};
struct Targets : TargetAxis {
  static const std::vector<TargetKind>& table();
};

}  // namespace token_topics

/// A sequence draws m of T topics without replacement. Each of its s tokens takes one of these m and one of
/// the q clusters of that topic, both uniformly, and is
///   x_t = μ_c + σ g,  g ~ N(0, I_d),  μ_c = a_τ + cluster_std · b_c,
/// with a_τ ~ N(0, mean_std² I) and b_c ~ N(0, I).
///
/// Clusters of a topic are near one another. With `weight_power` a the clusters of the sequence's topics have
/// probabilities ∝ (c + 1)^−a instead. With tight_subsets each cluster has its own tight features. Spurious
/// coordinates N(0, 1) follow the signal, (s, d) with d = dim + spurious_dims.
///
/// A token's label is its cluster c = τ q + j, (n, s). Its target, (n, s, o), depends only on that cluster.
/// The paper uses text and images. This is the simplest law under which similar tokens belong together.
/// E[y_t | x_1, …, x_s] is a sum over the sets of m topics, computed for at most 200 sets.
struct TokenTopicsOptions {
  int topics = 0;               ///< T
  int topics_per_sequence = 2;  ///< m
  int clusters_per_topic = 1;   ///< q; k = T q
  int dim = 0;                  ///< d
  int tokens = 0;               ///< s
  double mean_std = 1.5;
  std::optional<double> separation = std::nullopt;  ///< see sim/data/cluster_means.h
  double cluster_std = 0.5;
  double noise_std = 1;  ///< σ
  int spurious_dims = 0;
  OneOf<gaussian_mixture::CovarianceAxis> covariance = gaussian_mixture::IsotropicCovariance{};
  std::optional<double> weight_power = std::nullopt;  ///< a: weights (c + 1)^−a of the clusters
  OneOf<token_topics::Targets> target = {};

  void bind(Fields& fields);
};

}  // namespace moelab
