#pragma once

/// Single auxiliary losses by name ("aux", "variance", "orthogonality", …), see sim/model/loss/.

#include <string>

#include "sim/model/loss/auxiliary_loss.h"

namespace moelab {

/// The term of that name on a batch, unweighted. Throws std::invalid_argument where there is none.
double term_value(const std::string& term, const RoutedBatch<double>& batch);

/// The term alone, with coefficient 1.
AuxiliaryLosses losses_with(const std::string& term);

}  // namespace moelab
