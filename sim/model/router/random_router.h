#pragma once

#include "sim/model/router/router.h"

namespace moelab {

/// γ_e(x) = scale · u_e, u_e ~ U[0, 1) independent for every token and expert, whatever the token is: routing
/// that carries no information. A token is known by its row of the model's inputs, so that it is routed alike
/// wherever it stands. `fixed`: a token keeps its draws (a random table); `redrawn`: every training step has
/// new ones, and measuring those of the last step.
///
/// State: "router_draws" (3), a key and the number of the step in two parts.
struct RandomRouterOptions {
  enum class Draws { fixed, redrawn };
  static constexpr bool trainable = true;  ///< there is nothing to freeze
  Draws draws = Draws::fixed;
  double scale = 1.0;
  void bind(Fields& fields);
};

}  // namespace moelab
