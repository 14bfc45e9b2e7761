#pragma once

#include <optional>

#include "sim/model/router/router.h"

namespace moelab {

/// γ_e(x) = w_e^T x, no bias (Dikkala et al. 2023, section 2), or with `bias` w_e^T x + b_e (Nguyen et al.,
/// Statistical Advantages of Perturbing Cosine Router). Rows start by the start law `init`, biases at zero.
/// With `temperature`, the start of a learned t > 0, all of that over t.
///
/// Arrays: "router_weight" (E, d), "router_bias" (E) with `bias`, "router_log_scale" (1), log 1/t, with
/// `temperature`.
struct LinearRouterOptions {
  bool trainable = true;
  std::string init = "normal";
  double init_scale = 1.0;
  std::optional<bool> bias = {};
  std::optional<double> temperature = {};  ///< where t starts; unset: t = 1
  void bind(Fields& fields);
};

/// The same as a part of another router, whose rows always start at random.
struct LinearBaseOptions {
  bool trainable = true;
  double init_scale = 1.0;
  std::optional<bool> bias = {};
  void bind(Fields& fields);
};
RouterKind linear_base();

/// For routers that are made of linear ones and have their fields. The linear router is without state, and
/// without arrays in its scratch.
template <class Real>
std::unique_ptr<Router<Real>> make_linear_router(const LinearRouterOptions& options,
                                                 const RouterSetting& setting);

void bind_linear_fields(Fields& fields, bool& trainable, std::string& init, double& init_scale,
                        std::optional<bool>& bias);
template <class Options>
LinearRouterOptions linear_part(const Options& options) {
  return {options.trainable, options.init, options.init_scale, options.bias};
}

/// See RouterKind::needs_train_rows, for options with those fields.
template <class Options>
bool starts_at_train_rows(const AnyOptions& options) {
  return start_law(options.get<Options>().init).needs_train_rows;
}

}  // namespace moelab
