#pragma once

/// The pass of a test set under the evaluation gating, which most metrics look at.

#include <optional>
#include <vector>

#include "app/metrics/measured_data.h"

namespace moelab {

/// Made once for a recorded step, when first asked for; once more where only then routing is asked for, which
/// takes memory of its own. What is asked for throws NotFinite (app/metrics/finite.h) where it is not finite.
template <class Real>
class TestPass {
 public:
  TestPass(const Moment<Real>& moment, const MeasuredData<Real>& data) : moment_(moment), data_(data) {}

  /// How the rows went through a layer with a router.
  const RoutedRows& routed(int layer);
  /// The model's outputs in the shape of the targets; of models that are not on ids.
  Matrix outputs();
  /// The losses of all tokens that have a target, nats; of models on ids.
  const std::vector<double>& token_losses();
  /// The task loss, of ids in nats a token.
  double loss();

 private:
  const EvaluatedSamples<Real>& evaluated(bool with_routing = false);

  Moment<Real> moment_;
  const MeasuredData<Real>& data_;
  std::optional<EvaluatedSamples<Real>> evaluated_;
};

/// A model at a recorded step, and its pass over the test set.
template <class Real>
struct TestMoment : Moment<Real> {
  TestPass<Real>& pass;
};

}  // namespace moelab
