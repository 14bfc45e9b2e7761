#pragma once

#include <string>

#include "bindings/bindings.h"
#include "sim/data/npy.h"

namespace moelab::python {

/// A contiguous array of Python, whose entries are shared.
using GivenArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

/// Throws UserError at `path` for values of a type that is not read.
MemoryArray memory_array(const GivenArray& array, const std::string& path);

}  // namespace moelab::python
