#pragma once

/// Experts behind slots: between the rows of a mixture and its bank, where the gating mixes rows into slots.

#include "sim/model/expert/expert.h"

namespace moelab {

/// What the passes of a batch leave. Slots of all groups lie one after another, expert by expert in each.
template <class Real>
struct SlotScratch {
  Routing<Real> routing;                    ///< slot to expert, gates 1
  AlignedVector<Real> gates;                ///< of it
  AlignedVector<Real> rows;                 ///< X (n, padded(d))
  AlignedVector<Real> slots, of_slots;      ///< D^T X (slots, padded(d)) and ∂L/∂ them
  AlignedVector<Real> outputs, of_outputs;  ///< of the experts (slots, padded(o)) and ∂L/∂ them
};

/// outputs (n, padded(o)) ← C f(D^T X), group by group; `gating` holds D and C.
template <class Real>
void forward_slots(const View<const Real>& x, const GatingScratch<Real>& gating, const ExpertBank<Real>& bank,
                   const Real* parameters, Scratch& bank_scratch, SlotScratch<Real>& scratch,
                   const View<Real>& outputs, bool keep);

/// From gradients.outputs those of the bank's parameters, of D and C (in `gating`) and, unless null, of X
/// (n, padded(d)); gradients.gates is not touched. For the batch of the last forward pass that kept.
template <class Real>
void backward_slots(GatingScratch<Real>& gating, const ExpertBank<Real>& bank, const Real* parameters,
                    Scratch& bank_scratch, SlotScratch<Real>& scratch, int input_dim, int output_dim,
                    const ExpertGradients<Real>& gradients);

}  // namespace moelab
