#pragma once

/// What starting values may be drawn from.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/random.h"
#include "sim/base/types.h"

namespace moelab {

/// The streams of a model's or a layer's starting values, and the first rows (≥ E, d) of the training set for
/// the start laws that need them (null where there are none).
struct Start {
  Seeds seeds;
  const Matrix* train_rows = nullptr;

  Start of_layer(int layer) const { return {seeds.of_layer(layer), layer == 0 ? train_rows : nullptr}; }
};

/// A law from which the rows w_e of a router that is linear in x start.
struct StartLaw {
  std::string name;
  std::string help;
  bool needs_train_rows = false;
  /// row (d) ← the start of w_e, with the router's init_scale; expert e's does not depend on E.
  void (*fill)(const Start& start, int expert, double init_scale, std::span<double> row) = nullptr;
};

/// The table of start laws: adding one is a new file in sim/model/router/start/ and a line in start_laws.cpp.
const std::vector<StartLaw>& start_laws();
const StartLaw& start_law(const std::string& name);
std::vector<std::string> start_law_names();

}  // namespace moelab
