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
#include "sim/data/npy.h"
#include "sim/model/router/router.h"

namespace moelab::python {

namespace nb = nanobind;

void bind_documents(nb::module_& module);
void bind_arrays(nb::module_& module);
void bind_runs(nb::module_& module);
void bind_training(nb::module_& module);

/// During its lifetime, notes of the program ("moelab: …" on std::cerr) are collected. Its destructor passes
/// them to Python's logging. Other text passes through. The caller holds the interpreter's lock.
class CollectedNotes {
 public:
  CollectedNotes();
  ~CollectedNotes();
  CollectedNotes(const CollectedNotes&) = delete;
  CollectedNotes& operator=(const CollectedNotes&) = delete;
};

/// Passes the notes collected so far to Python's logging. The caller holds the interpreter's lock.
void pass_on_notes();

/// Runs `work` without the interpreter's lock. Throws UserError for an unknown MOELAB_VECTOR_LEVEL.
template <class Work>
auto released(const Work& work) {
  const CollectedNotes notes;
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

/// A contiguous read-only array from Python, used without a copy.
using GivenArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

/// Views the entries of an array. Throws UserError at `path` for an unsupported value type.
MemoryArray memory_array(const GivenArray& array, const std::string& path);

// Routers with scores and gradients from Python functions

/// The name of the kind. Scenarios may not use it.
constexpr const char* kPythonRouter = "python";

/// Adds the kind to the table of routers. Call it once, before other threads read the table.
void add_python_router_kind();

/// The functions of a router and its start. Python owns it. Options and models share it, so it lives as long
/// as they do.
///   forward(x (n, d), w) → scores (n, E)
///   backward(x, w, ∂L/∂scores (n, E), whether ∂L/∂x is needed) → (∂L/∂w, ∂L/∂x (n, d))
struct RegisteredRouter {
  nb::object forward, backward;
  std::vector<std::int64_t> shape;  ///< shape of w; empty for (E, d)
  std::vector<double> start;        ///< values of w; empty for the start of a linear router
  double init_scale = 1;
};

/// `start` is the initial w, a contiguous array. With None, w has shape (E, d) and the initial values of a
/// linear router.
RegisteredRouter registered_router(const nb::object& forward, const nb::object& backward,
                                   const nb::object& start, double init_scale);

RouterOptions router_options(std::shared_ptr<const RegisteredRouter> router, bool trainable);

/// Throws UserError if a scenario uses such a router. The router exists in one process only, and cell ids do
/// not cover it.
void refuse_python_routers(const Scenario& scenario);

}  // namespace moelab::python
