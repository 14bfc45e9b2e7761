#pragma once

#include <optional>

#include "sim/model/router/mixing_router.h"
#include "sim/model/temperature.h"

namespace moelab {

/// Similarity-aware routing (Nguyen et al. 2025, Definition 2): p_i = Σ_j S_ij r(u_j) over all tokens of the
/// sequence, S = row-softmax(U W_s U^T / τ), r the routing of `base`; see MixingRouter. W_s = I (the source's
/// practice), or learned (d, d) from the start I. In a causal model the sum and the softmax are over j ≤ i. τ
/// may move to `tau_end` over the training steps; at test time it is that of the last step. Differentiated
/// are r, and S in u on both sides and in W_s.
///
/// Arrays: those of the base, and "router_similarity" (d, d) where W_s is learned.
struct SimilarityAwareRouterOptions {
  using Schedule = TauSchedule;
  enum class Similarity { identity, learned };
  bool trainable = true;
  BaseRouterOptions base = LinearBaseOptions{};
  double tau = 1.0;
  std::optional<double> tau_end = {};  ///< unset: tau throughout
  Schedule tau_schedule = Schedule::linear;
  Similarity similarity = Similarity::identity;
  void bind(Fields& fields);
};

}  // namespace moelab
