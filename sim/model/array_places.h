#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/model/network.h"

namespace moelab {

/// Names for the flat buffer: where the entries of each array of Network::arrays() lie in it, in the array's
/// order. Together they are the free parameters, each once.
using ArrayPlaces = std::vector<std::pair<std::string, std::vector<std::size_t>>>;
template <class Real>
ArrayPlaces array_places(const Network<Real>& network);

}  // namespace moelab
