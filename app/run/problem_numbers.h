#pragma once

/// What problems keep in memory.

#include "sim/data/problem.h"

namespace moelab {

/// Numbers of the problem of each generator that keeps more than a few: the members of its class.
double problem_numbers(const DataOptions& data, const Layout& layout);

}  // namespace moelab
