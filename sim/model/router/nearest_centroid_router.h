#pragma once

#include <cstdint>
#include <optional>

#include "sim/model/router/router.h"

namespace moelab {

/// γ_e(x) = −‖x − c_e‖² / 2 with the centroids of k-means online (MacQueen 1967): no gradient moves c_e, but
/// the end of every training step, c_e ← c_e + Σ_{i nearest to e} (x_i − c_e) / N_e over the batch, N_e the
/// rows that e was nearest to so far, this batch included. The start has no weight: the first row replaces
/// it. With `memory` N_e counts at most that many rows of the past, so that centroids follow rows that move.
///
/// State: "router_centroids" (E, d), "router_centroid_rows" (E), N_e.
struct NearestCentroidRouterOptions {
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<std::int64_t> memory = std::nullopt;
  void bind(Fields& fields);
};

}  // namespace moelab
