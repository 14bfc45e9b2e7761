#pragma once

/// Routers whose scores and gradients are computed by functions of Python.

#include "bindings/bindings.h"
#include "sim/model/router/router.h"

namespace moelab::python {

/// The kind's name, which no scenario may give.
constexpr const char* kPythonRouter = "python";

/// Adds the kind to the table of routers: once, before other threads may read it.
void add_python_router_kind();

/// Keeps forward(x (n, d), w) → scores (n, E) and backward(x, w, ∂L/∂scores (n, E)) → (∂L/∂w, ∂L/∂x (n, d))
/// for as long as the process lives; a handle for router_options(). `start` is w at its start (a contiguous
/// array), or None for w (E, d), entry by entry that of a linear router.
int register_router(const nb::object& forward, const nb::object& backward, const nb::object& start,
                    double init_scale);

/// Options of the router of that handle.
RouterOptions router_options(int handle, bool trainable);

/// Throws UserError where a scenario names such a router: it lives in one process, and no id covers it.
void refuse_python_routers(const Scenario& scenario);

}  // namespace moelab::python
