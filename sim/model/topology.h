#pragma once

/// The lists of blocks that models are: the one place that knows them.

#include "sim/model/network.h"

namespace moelab {

/// The gatings of a model that its mixtures keep something for; null for none. They outlive the blocks.
template <class Real>
struct Gatings {
  const Gating<Real>* learned = nullptr;  ///< parameters
  const Gating<Real>* train = nullptr;    ///< state
};

/// The blocks of a model in their order, places in the buffers left open.
template <class Real>
std::vector<PlacedBlock<Real>> make_blocks(const ModelOptions& options, const Layout& data_layout,
                                           const Gatings<Real>& gatings);

}  // namespace moelab
