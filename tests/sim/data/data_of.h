#pragma once

/// Data options from the JSON that a scenario would say them in.

#include "app/scenario/schema.h"
#include "sim/data/problem.h"

namespace moelab {

inline DataOptions data_of(const Json& given) {
  return resolve_options<DataOptions>(given, "data");
}

}  // namespace moelab
