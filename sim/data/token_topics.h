#pragma once

/// Sequences of tokens that share latent topics, with one target a token: data on which the tokens of a
/// sequence tell something about one another (Nguyen et al. 2025, "graph of tokens").

#include "sim/data/problem.h"

namespace moelab {

/// A sequence draws m of T topics without replacement; each of its s tokens takes one of these m and one of
/// the q clusters of that topic, both uniformly, and is
///   x_t = μ_c + σ g,  g ~ N(0, I_d),  μ_c = a_τ + cluster_std · b_c,
/// with a_τ ~ N(0, mean_std² I) and b_c ~ N(0, I): clusters of a topic lie near one another. A token's label
/// is its cluster c = τ q + j, (n, s); its target, (n, s, o), depends on that cluster alone:
///   `constant`      y_t = v_c, v_c ~ N(0, I)
///   `linear`        y_t = W_c (x_t − μ_c), rows of W_c ~ N(0, I / d)
///   `class`         the indicator of a class that the cluster has; the classes share the clusters evenly
///   `linear_class`  the indicator of argmax_j (W_c (x_t − μ_c))_j, so that experts have something to learn
/// The source has text and images instead; this is the least law under which similar tokens belong together.
const Kind& token_topics_kind();

/// A sequence has at most as many topics as there are, and a class at least one cluster.
void check_token_topics(const Json& data);

/// E[y_t | x_1, …, x_s] is computed over the sets of m topics where there are at most 200 of them.
std::unique_ptr<Problem> draw_token_topics(const Json& data, const Seeds& seeds);

}  // namespace moelab
