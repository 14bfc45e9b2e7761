#pragma once

/// The lists of blocks that models are: the one place that knows them.

#include "sim/model/network.h"

namespace moelab {

/// The blocks of a model in their order, places in the buffers left open. `learned_gating` (null for none)
/// outlives the network.
template <class Real>
std::vector<PlacedBlock<Real>> make_blocks(const ModelOptions& options, const Layout& data_layout,
                                           const Gating<Real>* learned_gating);

}  // namespace moelab
