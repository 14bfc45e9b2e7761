#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/model/router/router.h"

namespace moelab {

/// A parameter of a formula: {"shape": "d"}, "d" for short, is a vector for each expert, {"start": 1} a
/// number for each, {"shape": [8, "d"]} a matrix. With `shared` there is one for all experts. Vectors and
/// matrices start N(0, init_scale² / columns), the first vector from a linear router's draws, unless `start`
/// is given. A learned number below `min` counts as that. {"value": v}, v for short, is a constant.
struct FormulaParameterOptions {
  static constexpr const char* kTextField = "shape";
  static constexpr const char* kNumberField = "value";
  std::vector<std::string> shape;
  bool shared = false;
  std::optional<double> start, min, value;
  void bind(Fields& fields);
};

/// γ_e(x) by a formula of x and of named parameters.
///
/// Arrays: "router_formula_<name>" of each parameter, (E, shape) or (shape) where shared.
struct FormulaRouterOptions {
  bool trainable = true;
  std::string score;
  Named<FormulaParameterOptions> parameters;
  std::string init = "normal";
  double init_scale = 1.0;
  void bind(Fields& fields);
};

/// Numbers that a formula's results take for each row of a batch.
double formula_numbers_per_row(const FormulaRouterOptions& options, int input_dim, int experts);

}  // namespace moelab
