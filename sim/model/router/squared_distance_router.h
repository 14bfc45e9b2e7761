#pragma once

#include <optional>

#include "sim/model/router/router.h"

namespace moelab {

/// γ_e(x) = −‖x − w_e‖² / (2 s_e²): the logarithm of a spherical Gaussian's density but for its factor, so
/// that soft gates are the responsibilities of a mixture of equal weights and widths. s_e = 1, or learned
/// from `std` on; below kLeastRouterStd it counts as that, and what would lower it further is left out of its
/// gradient. With `bias` + b_e, the logarithm of a weight, started at zero.
///
/// Arrays: "router_centers" (E, d), "router_std" (E) where it is learned, and "router_bias" (E) with `bias`.
struct SquaredDistanceRouterOptions {
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<double> std = std::nullopt;
  bool bias = false;
  void bind(Fields& fields);
};

constexpr double kLeastRouterStd = 0.01;

}  // namespace moelab
