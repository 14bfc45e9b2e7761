#pragma once

/// Routers with scores and gradients from Python functions.

#include "bindings/bindings.h"
#include "sim/model/router/router.h"

namespace moelab::python {

/// The name of the kind. Scenarios may not use it.
constexpr const char* kPythonRouter = "python";

/// Adds the kind to the table of routers. Call it once, before other threads read the table.
void add_python_router_kind();

/// Registers a router for the lifetime of the process and returns a handle for router_options().
///   forward(x (n, d), w) → scores (n, E)
///   backward(x, w, ∂L/∂scores (n, E)) → (∂L/∂w, ∂L/∂x (n, d))
/// `start` is the initial w, a contiguous array. With None, w has shape (E, d) and the initial values of a
/// linear router.
int register_router(const nb::object& forward, const nb::object& backward, const nb::object& start,
                    double init_scale);

/// The options of the router with this handle.
RouterOptions router_options(int handle, bool trainable);

/// Throws UserError if a scenario uses such a router. The router exists in one process only, and cell ids do
/// not cover it.
void refuse_python_routers(const Scenario& scenario);

}  // namespace moelab::python
