#pragma once

/// Shared parts of the bindings. Documents are passed as JSON text, which preserves doubles exactly. Arrays
/// are passed directly. Data frames, figures and progress displays are written in Python.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/scenario/scenario.h"
#include "sim/base/kernels/kernels.h"

namespace moelab::python {

namespace nb = nanobind;

void bind_documents(nb::module_& module);
void bind_arrays(nb::module_& module);
void bind_runs(nb::module_& module);
void bind_training(nb::module_& module);

/// Runs `work` without the interpreter's lock. Throws UserError for an unknown MOELAB_VECTOR_LEVEL.
template <class Work>
auto released(const Work& work) {
  const nb::gil_scoped_release unlocked;
  kernels::check_vector_level();
  return work();
}

/// A scenario from Python: the name of a file, or a document's text if the name is empty.
struct GivenScenario {
  std::string file, document, profile;

  Scenario load(const std::vector<std::string>& settings) const;
};

/// A NumPy array that owns `values` and uses their memory.
template <class Value, class Values>
nb::ndarray<nb::numpy, Value> owning_array(Values values, const std::vector<std::int64_t>& shape) {
  auto kept = std::make_unique<Values>(std::move(values));
  Value* const data = kept->data();
  const nb::capsule owner(kept.release(),
                          [](void* pointer) noexcept { delete static_cast<Values*>(pointer); });
  const std::vector<std::size_t> sizes(shape.begin(), shape.end());
  return nb::ndarray<nb::numpy, Value>(data, sizes.size(), sizes.data(), owner);
}

}  // namespace moelab::python
