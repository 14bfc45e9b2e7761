#pragma once

/// What gatings are made for and what they see.

#include "sim/base/view.h"

namespace moelab {

/// Where a gating stands.
struct GatingSetting {
  int input_dim = 0;  ///< d, columns of the rows that the router reads
  int experts = 0;    ///< E
};

/// A batch as a gating sees it.
template <class Real>
struct GatingContext {
  const Real* scores = nullptr;  ///< γ (n, padded(E))
  int rows = 0;
  int experts = 0;
  /// (E), added to r when experts are selected (loss-free balancing); null where there are none.
  const double* selection_bias = nullptr;
  const Real* parameters = nullptr;  ///< the gating's own block
  View<const Real> x = {};           ///< (n, d), what the router reads
  bool training = false;             ///< a step's pass: noise is drawn in no other
  double progress = 0;               ///< State::progress
  int group_rows = 0;                ///< rows that are routed together, one after another; 0 for all
  const double* state = nullptr;     ///< the gating's own part of State::values, in training alone
};

}  // namespace moelab
