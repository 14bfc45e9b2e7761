#pragma once

/// Contamination of test inputs: `data.contamination`. Targets and labels stay those of the clean samples.

#include "sim/base/random.h"
#include "sim/base/schema.h"
#include "sim/base/types.h"
#include "sim/data/layout.h"

namespace moelab {

/// none; noise and replaced, which need no model; and the attacks fgsm, pgd and spsa, which do (see
/// sim/train/attacks.h).
const Shape& contamination_shape();

/// Whether the kind is an attack on a model.
bool is_attack(const Json& contamination);

/// Adds noise to the rows (n, s·d) or replaces some of them by one fixed row; nothing for `none` and attacks.
/// Throws UserError where the standard deviations are not one for each column.
void contaminate(const Json& contamination, const Layout& layout, const Seeds& seeds, Matrix& x);

}  // namespace moelab
