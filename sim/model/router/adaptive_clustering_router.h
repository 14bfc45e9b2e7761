#pragma once

#include "sim/model/router/cluster_dispersion.h"
#include "sim/model/router/cluster_weights.h"
#include "sim/model/router/linear_router.h"

namespace moelab {

/// The AC router (Nielsen et al. 2025, Definition 2): γ_e(x) = x^T M_{k*} w_e, k* the row's likeliest expert
/// in the layer before, M_k = diag of weights that are large on the features on which cluster k is tight, of
/// mean 1 over the features. The dispersions s_qk are taken, in every batch, in measuring in every group of
/// rows, over those of which k is the likeliest expert; with `frozen` statistics, outside training, they are
/// a running mean of those of training. No gradient goes through M, so ∂L/∂x holds M fixed. In a first layer,
/// and where the router is not placed, M = I: a linear router. With `own` memberships k* is the row's
/// likeliest expert under w_e^T x of this router, with `oracle` ones the row's true cluster (mod E), so that
/// a first layer has M, too. With `weighted_experts` the experts read M x as well, as those of the paper's
/// released image code do.
///
/// State, where the router is placed: "router_feature_weights" (E, d), M; unless it is drawn,
/// "router_dispersion" (E, d), s of the last step's batch or the running mean, and
/// "router_dispersion_batches" (1), the steps that it is of. Before the first step a batch has its own.
/// "router_weight_draws" (3), a key and the step in two parts, where M is drawn anew at every step.
struct AdaptiveClusteringRouterOptions {
  enum class Weights { inverse, optimal, random, redrawn };
  using Dispersion = DispersionMeasure;
  enum class Representations { previous, current };
  enum class Statistics { batch, frozen };
  enum class Memberships { previous, own, oracle };
  enum class Placement { full, skip_1, alternating, back_half };
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<bool> bias = {};
  Weights weights = Weights::inverse;
  Dispersion dispersion = Dispersion::mad;
  double lambda = 1.0;
  int mixed_clusters = 1;  ///< 0 for all
  Representations representations = Representations::previous;
  Memberships memberships = Memberships::previous;
  Statistics statistics = Statistics::batch;
  Placement placement = Placement::full;
  ClusterWeighting weighting = {};  ///< of inverse weights
  bool weighted_experts = false;
  void bind(Fields& fields);
};

}  // namespace moelab
