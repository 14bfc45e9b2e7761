#pragma once

/// The axis of routers: scores γ(x; W) (n, E), from which gating makes gates.

#include <memory>
#include <vector>

#include "sim/base/random.h"
#include "sim/base/schema.h"
#include "sim/model/named_array.h"

namespace moelab {

/// What a router may look at: a batch of inputs (n, d), row-major.
template <class Real>
struct RouterContext {
  const Real* x = nullptr;
  int rows = 0;
};

/// Parameters live in the model's flat buffer; a router knows their layout. Called once per batch.
template <class Real>
class Router {
 public:
  virtual ~Router() = default;
  /// Free parameters.
  virtual std::size_t parameter_count() const = 0;
  /// Entries of the parameter block, padding included; a multiple of kernels::kPadding.
  virtual std::size_t block_size() const = 0;
  /// Starting values. Expert e's row does not depend on E.
  virtual void initialize(const Seeds& seeds, Real* parameters) const = 0;
  /// scores (n, padded(E)) ← γ(x).
  virtual void forward(const RouterContext<Real>& context, const Real* parameters, Real* scores) = 0;
  /// gradient ← (∂γ/∂parameters)^T score_gradient (overwritten), for the batch of the last forward pass.
  virtual void backward(const RouterContext<Real>& context, const Real* parameters,
                        const Real* score_gradient, Real* gradient) = 0;
  /// Arrays for saving. One named "router_weight" (E, d) holds the rows that meet the input, where γ is
  /// linear in x.
  virtual std::vector<NamedArray<Real>> arrays(const Real* parameters) const = 0;
};

/// The kinds of routers with their fields: from the one table in routers.cpp.
std::vector<Kind> router_kinds();

/// A router for inputs of width `input_dim` and `experts` scores, from a resolved `model.router` object.
template <class Real>
std::unique_ptr<Router<Real>> make_router(const Json& spec, int input_dim, int experts);

}  // namespace moelab
