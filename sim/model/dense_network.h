#pragma once

/// Dense models that a mixture is compared with.

#include "sim/base/json.h"
#include "sim/data/layout.h"

namespace moelab {

/// How a model of a resolved `model` object reads a sample: the data's layout, or that of one long row for a
/// dense model that reads whole sequences. Throws UserError for such a model with attention.
Layout layout_read_by(const Json& spec, const Layout& layout);

/// The `expert` object of the dense network that a resolved `model` of kind "dense" asks for: one more layer
/// than an expert unless `depth` is given, and the width whose parameter count is nearest to that of one
/// expert or of the whole mixture.
Json dense_network(const Json& spec, const Layout& layout);

}  // namespace moelab
