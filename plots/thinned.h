#pragma once

/// Figures of very many points, for a page that has to stay small.

#include <cstddef>

#include "plots/figure.h"

namespace moelab {

/// The figure with `most` numbers or about as many; the same where it has no more. Each of equally wide
/// stretches of the x axis keeps a line's first, last, lowest and highest point, so that lines keep their
/// shape; seeds stay where they are drawn (below ten). The caption says what was left out, and that
/// figures/<id>.csv has it.
Figure thinned(const Figure& figure, std::size_t most);

}  // namespace moelab
