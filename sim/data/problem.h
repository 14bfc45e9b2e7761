#pragma once

/// The axis of data: a generator draws a Problem (means, subspaces, teachers); a Problem draws Datasets.

#include <memory>
#include <optional>
#include <vector>

#include "sim/base/random.h"
#include "sim/base/schema.h"
#include "sim/base/types.h"

namespace moelab {

struct Dataset {
  Matrix x;                  ///< (n, d) inputs
  Matrix y;                  ///< (n, o) targets
  std::vector<int> cluster;  ///< (n) latent component of each row
};

/// One drawn world: fixed parameters from which any number of samples come.
class Problem {
 public:
  virtual ~Problem() = default;
  virtual int input_dim() const = 0;   ///< d, spurious dimensions included
  virtual int output_dim() const = 0;  ///< o
  virtual int clusters() const = 0;    ///< k
  /// n samples; the first m of them are the same for every n ≥ m.
  virtual Dataset draw(Engine& engine, int samples) const = 0;
  /// An orthonormal basis (d, s) of the subspace on which the target depends; empty when unknown.
  virtual Matrix signal_basis() const { return {}; }
  /// E[y | x], the predictor of least squared error, (n, o); none where it has no closed form.
  virtual std::optional<Matrix> bayes_prediction(const Matrix& /*x*/) const { return std::nullopt; }
};

/// The shape of a scenario's `data`: a variant on "generator".
const Shape& data_shape();

/// Draws the problem that a resolved `data` object describes. Throws UserError when it cannot be drawn
/// (a c-separation that is not reached).
std::unique_ptr<Problem> draw_problem(const Json& data, const Seeds& seeds);

}  // namespace moelab
