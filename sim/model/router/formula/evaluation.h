#pragma once

/// A formula's scores of a batch, and their gradients, operation by operation over all rows and experts.

#include <vector>

#include "sim/base/aligned.h"
#include "sim/base/view.h"
#include "sim/model/router/formula/graph.h"
#include "sim/model/scratch.h"

namespace moelab {

/// The results of a batch and ∂L/∂ each. Results lie as parameters do: (rows, components, padded(E)) where
/// they differ between experts, else (rows, padded(components)), or (rows) of a number. Padding is zero.
template <class Real>
struct FormulaScratch final : Scratch {
  explicit FormulaScratch(std::size_t nodes) : values(nodes), gradients(nodes) {}
  std::vector<AlignedVector<Real>> values, gradients;
};

/// What both passes read: the batch's inputs x (n, d) and the router's block.
template <class Real>
struct FormulaInputs {
  const FormulaGraph* graph = nullptr;
  int experts = 0;
  View<const Real> x = {};
  const Real* parameters = nullptr;
};

/// scores (n, padded(E)), padding zero.
template <class Real>
void evaluate_formula(const FormulaInputs<Real>& of, FormulaScratch<Real>& scratch, Real* scores);

/// From ∂L/∂scores that of the block and, unless null, of x (n, padded(d)); both are overwritten.
template <class Real>
void differentiate_formula(const FormulaInputs<Real>& of, FormulaScratch<Real>& scratch, const Real* scores,
                           Real* parameters, Real* inputs);

}  // namespace moelab
