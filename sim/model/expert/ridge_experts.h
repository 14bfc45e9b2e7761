#pragma once

#include "sim/model/expert/expert.h"

namespace moelab {

/// φ, entry by entry: z, z^power or (z)_+ (slope 0 at 0).
struct Activation {
  enum class Kind { identity, power, relu };
  Kind kind = Kind::identity;
  int power = 1;
};

/// A bank of ridge functions expert_e(x) = φ(A_e x + b_e), A_e (o, d): linear, polynomial and one-neuron
/// experts. Entries of A_e start N(0, init_scale² / d), b_e zero. All experts are computed at once, active or
/// not: for few outputs their rows are too short for gathering to pay.
template <class Real>
std::unique_ptr<ExpertBank<Real>> make_ridge_bank(const Activation& activation, double init_scale,
                                                  const ExpertSetting& setting);

}  // namespace moelab
