#pragma once

#include <string>

#include "bindings/bindings.h"
#include "sim/data/npy.h"

namespace moelab::python {

/// A contiguous read-only array from Python, used without a copy.
using GivenArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

/// Views the entries of an array. Throws UserError at `path` for an unsupported value type.
MemoryArray memory_array(const GivenArray& array, const std::string& path);

}  // namespace moelab::python
