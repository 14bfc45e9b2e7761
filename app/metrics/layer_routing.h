#pragma once

/// How the test rows go through a layer.

#include <cstdint>
#include <vector>

#include "app/metrics/test_pass.h"

namespace moelab {

/// A layer with a router under the evaluation gating. What needs probabilities throws NotFinite
/// (app/metrics/finite.h) where they are not finite.
template <class Real>
class LayerRouting {
 public:
  LayerRouting(const TestMoment<Real>& moment, const MeasuredData<Real>& data, int layer)
      : moment_(moment), data_(data), layer_(layer) {}

  int layer() const { return layer_; }
  /// r (rows, E).
  MatrixView probabilities() { return rows_of(routed().probabilities); }
  /// r before tokens mixed it; empty where they do not.
  MatrixView base_probabilities() { return rows_of(routed().base_probabilities); }
  /// The serving expert of each row, (rows); −1 where it has none.
  const std::vector<int>& serving() { return routed().serving; }
  /// Whether each expert is selected (rows · E), 1 or 0.
  const std::vector<unsigned char>& selected() { return routed().selected; }
  /// Rows to which each expert is selected, (E). A gating that activates every expert says nothing of
  /// balance: first choices under gating `top1` are counted then.
  std::vector<std::int64_t> loads();

 private:
  const RoutedRows& routed() { return moment_.pass.routed(layer_); }
  MatrixView rows_of(const std::vector<double>& values) const {
    const Eigen::Index experts = moment_.model.network->experts();
    return {values.data(), static_cast<Eigen::Index>(values.size()) / experts, experts};
  }

  TestMoment<Real> moment_;
  const MeasuredData<Real>& data_;
  int layer_;
};

/// What metrics of a layer look at.
template <class Real>
struct LayerMoment {
  Moment<Real> moment;
  LayerRouting<Real>& here;
  LayerRouting<Real>* before = nullptr;  ///< the layer before; null for the first

  int layer() const { return here.layer(); }
};

}  // namespace moelab
