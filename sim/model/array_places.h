#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/json.h"
#include "sim/data/layout.h"

namespace moelab {

/// Where the entries of Model::arrays() lie in the flat buffer of a model of the resolved `model` object: the
/// places of each array, in its order. Together they are the free parameters, each once.
using ArrayPlaces = std::vector<std::pair<std::string, std::vector<std::size_t>>>;
ArrayPlaces array_places(const Json& spec, const Layout& layout);

}  // namespace moelab
