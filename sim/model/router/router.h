#pragma once

/// The axis of routers: scores γ(x; W) (n, E), from which gating makes gates.

#include <memory>
#include <vector>

#include "sim/base/random.h"
#include "sim/base/schema.h"
#include "sim/base/types.h"
#include "sim/data/layout.h"
#include "sim/model/named_array.h"

namespace moelab {

/// What a router may look at: rows (n, d), row-major; the tokens of a sequence are s rows one after another.
template <class Real>
struct RouterContext {
  const Real* x = nullptr;
  int rows = 0;
  std::ptrdiff_t stride = 0;  ///< entries from a row of x to the next
  /// The inputs (n, d), same stride, and the routing probabilities (n, previous_stride) of the layer before;
  /// null in the first layer, and where the router is placed in others only.
  const Real* previous_x = nullptr;
  const Real* previous_probabilities = nullptr;
  int previous_stride = 0;
  const Real* first_x = nullptr;  ///< the model's own inputs (n, d), same stride
  bool training = false;          ///< a training step, for routers that keep statistics
  double progress = 0;            ///< share of the training's steps that are done
};

/// What a backward pass reads and writes. Arrays that nobody asked for are null.
template <class Real>
struct RouterGradients {
  const Real* scores = nullptr;    ///< ∂L/∂γ (n, padded(E)), padding zero
  const Real* features = nullptr;  ///< ∂L/∂features (n, feature_dim); null where no expert reads them
  Real* parameters = nullptr;      ///< ∂L/∂parameters, overwritten
  Real* inputs = nullptr;          ///< ∂L/∂x (n, padded(d)), overwritten
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
  /// Row e of a router that is linear in x ← init_scale times row e of `rows` (E, d), for kinds that have the
  /// field `init`: a router that starts at training samples (Dikkala et al. 2023, Theorem 2).
  virtual void start_at(const Matrix& /*rows*/, Real* /*parameters*/) const {}
  /// scores (n, padded(E)) ← γ(x).
  virtual void forward(const RouterContext<Real>& context, const Real* parameters, Real* scores) = 0;
  /// For the batch of the last forward pass: ∂L/∂parameters = (∂γ/∂parameters)^T ∂L/∂γ, and so on.
  virtual void backward(const RouterContext<Real>& context, const Real* parameters,
                        const RouterGradients<Real>& gradients) = 0;
  /// What a training step adds to the loss for the router's own sake, for the batch of the last forward pass.
  virtual double added_loss() const { return 0; }
  /// Width of what the router hands on to the experts, beside their own inputs: 0 for most.
  virtual int feature_dim() const { return 0; }
  /// features (n, feature_dim) of the last forward pass.
  virtual const Real* features() const { return nullptr; }
  /// Arrays for saving. One named "router_weight" (E, d) holds the rows that meet the input, where γ is
  /// linear in x.
  virtual std::vector<NamedArray<Real>> arrays(const Real* parameters) const = 0;
};

/// The kinds of routers with their fields: from the one table in routers.cpp.
std::vector<Kind> router_kinds();

/// A router for inputs of that layout and `experts` scores, from a resolved `model.router` object. Throws
/// UserError where the router cannot read such inputs.
template <class Real>
std::unique_ptr<Router<Real>> make_router(const Json& spec, const Layout& layout, int experts);

}  // namespace moelab
