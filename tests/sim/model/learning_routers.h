#pragma once

/// Which routers have something to learn.

#include "sim/model/router/router.h"

namespace moelab {

/// Whether the example of a kind has parameters that training moves.
inline bool learns(const RouterKind& kind) {
  if (kind.needs_image) return true;
  return kind.make.in_double(kind.example, {.input_dim = 5, .experts = 4})->parameter_count() > 0;
}

}  // namespace moelab
