#pragma once

/// The gates and experts whose rates of estimation the literature gives or leaves open, with what their
/// regression functions cannot see (Nguyen et al.; the papers are named at each rate).

#include <string>
#include <vector>

#include "sim/data/mixing_measure.h"

namespace moelab {

/// A form with its name in ids.
struct NamedForm {
  std::string name;
  MixtureForm form;
};

/// Gates, with linear experts: linear, cosine and perturbed cosine scores (τ of the order of ‖β1‖: at .1 the
/// perturbed router is nearly the cosine router), a learned temperature, squared distances and two levels,
/// all of them under a softmax; the softmax of the K = 2 largest of three linear scores; sigmoids of linear
/// ones, normalised or not, and normalised ones beside a shared expert.
std::vector<NamedForm> gate_forms();

/// The gate with linear experts, (a^T x + b)² and rectifiers.
std::vector<NamedForm> with_experts(const NamedForm& gate);

/// What is printed of the rate at which experts of over-specified fits are found, with where it is from;
/// "none found" where there is none.
std::string published_rate(const NamedForm& gate, const NamedForm& expert);

/// A truth in two dimensions. Of two components, that of scenarios/perturbed_cosine/rates.json; two levels
/// have four, and K of them at a time has three.
MixingMeasure example_measure(const MixtureForm& form);

/// A family of measures through `measure` that have its regression function.
struct Invariance {
  std::string name;
  int dimension;        ///< of the family
  MixingMeasure moved;  ///< one of them, away from the measure
};

/// All that f_G cannot see near a measure with as many components as the truth.
std::vector<Invariance> invariances(const MixingMeasure& measure);

}  // namespace moelab
