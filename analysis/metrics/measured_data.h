#pragma once

/// A trained model at a recorded step and the data that it is measured on.
///
/// The rule for numbers that are not finite: a comparison with NaN is false. The entropy of NaN would be 0,
/// and a loss of NaN would have reached every target. So every array that a model gives to be measured is
/// checked once, where it is made: parameters, inputs in the precision of training, outputs, probabilities
/// and losses. The first one that is not finite leaves the test set without any metric at that step;
/// Measurement catches NotFinite. At the last step, on the cell's own data, that is divergence. Scores of −∞
/// are probabilities of 0, which are finite.

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "analysis/metrics/layer_rows.h"
#include "analysis/metrics/voronoi.h"
#include "sim/base/numerics.h"
#include "sim/data/layout.h"
#include "sim/data/mixing_measure.h"
#include "sim/data/problem.h"
#include "sim/model/model.h"

namespace moelab {

/// what() names the array, "outputs on the test data".
class NotFinite : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws NotFinite with that name unless all values are finite.
template <class Real>
void check_finite(std::span<const Real> values, const char* name) {
  if (!all_finite(values)) throw NotFinite(name);
}

/// The training loss is taken over the first training samples: as many as a test set has by default.
constexpr int kMeasuredTrainSamples = 10000;
/// The most training samples that are measured. Sequences of ids are long: there it counts tokens.
int most_measured_train_samples(const DataOptions& data);

/// A model at a recorded step.
template <class Real>
struct Moment {
  const Model<Real>& model;
  const Objective<Real>& objective;
  Workspace<Real>& workspace;
  std::int64_t step = 0;
};

/// A test set and training samples, as drawn and in the precision of training.
template <class Real>
class MeasuredData {
 public:
  /// `train` holds the first kMeasuredTrainSamples of the training set at most; it is empty for the data of
  /// an evaluation. Both sets must outlive the object.
  MeasuredData(const Layout& layout, const LossOptions& loss, const Dataset& train, const Dataset& test);

  const Layout& layout() const { return layout_; }
  const Dataset& train() const { return train_; }
  const Dataset& test() const { return test_; }
  bool has_train() const { return train_.y.size() > 0; }
  int train_samples() const { return static_cast<int>(train_.x.rows()); }
  int samples() const { return static_cast<int>(test_.x.rows()); }
  /// Rows of the test set, a token a row; as a matrix (rows, d).
  Eigen::Index rows() const { return test_.x.rows() * layout_.tokens; }
  MatrixView test_rows() const { return {test_.x.data(), rows(), layout_.input_dim}; }
  Samples<Real> train_inputs() const { return samples_of(train_inputs_, train_); }
  Samples<Real> test_inputs() const { return samples_of(test_inputs_, test_); }
  /// The test set's clusters.
  const std::vector<ClusterLabels>& clusters() const { return clusters_; }

  /// Whether the task loss is cross-entropy, and of softmax(f) (TaskLossKind::of_softmax); whether targets
  /// are classes.
  bool cross_entropy() const { return cross_entropy_; }
  bool of_softmax() const { return of_softmax_; }
  bool class_targets() const { return layout_.class_targets || (cross_entropy_ && !has_ids()); }
  /// Whether inputs and targets are ids of tokens. A model then has an output for each id, and outputs are
  /// not kept.
  bool has_ids() const { return layout_.vocabulary > 0; }
  /// Targets or outputs of a set as rows (n, o), a token a row where each has a target.
  MatrixView target_rows(const Matrix& values) const {
    return {values.data(), values.size() / layout_.output_dim, layout_.output_dim};
  }

  /// Throws NotFinite where inputs are not finite in the precision of training.
  void check_inputs() const;
  /// The model's outputs under `gating`, in the shape of the targets. Throws NotFinite.
  Matrix train_outputs(const Moment<Real>& moment, const Gating<Real>& gating) const;
  Matrix test_outputs(const Moment<Real>& moment, const Gating<Real>& gating) const;
  /// The task loss of the model under `gating` on a set; for ids in nats a token. Throws NotFinite.
  double train_loss(const Moment<Real>& moment, const Gating<Real>& gating) const;
  double test_loss(const Moment<Real>& moment, const Gating<Real>& gating) const;
  /// Loss ÷ label variance on the training samples under `gating`. It may be NaN: no model is judged finite
  /// by it. None where the labels do not vary.
  std::optional<double> train_nmse(const Moment<Real>& moment, const Gating<Real>& gating) const;
  /// The task loss of outputs on a set without ids: the mean over rows and outputs (cross-entropy: over rows,
  /// nats). Throws NotFinite.
  double task_loss(const Matrix& outputs, const Matrix& targets) const;
  /// r (rows, E) of a layer; see route(). Throws NotFinite, except for a permutation: a run does not train
  /// permuted routers.
  Matrix test_probabilities(const Moment<Real>& moment, int layer,
                            std::span<const int> permutation = {}) const;

 private:
  double mean_token_loss(const Moment<Real>& moment, const Gating<Real>& gating,
                         const std::vector<Real>& inputs, const Dataset& data) const;
  /// With the true clusters of the rows, where each row has one.
  Samples<Real> samples_of(const std::vector<Real>& inputs, const Dataset& data) const {
    const bool has_labels =
        data.cluster.size() * static_cast<std::size_t>(layout_.input_dim) == inputs.size();
    return {inputs.data(), has_labels ? data.cluster.data() : nullptr};
  }

  Layout layout_;
  const Dataset& train_;
  const Dataset& test_;
  std::vector<ClusterLabels> clusters_;
  bool cross_entropy_, of_softmax_;
  std::vector<Real> train_inputs_, test_inputs_;
};

/// The mean over tokens.
double mean_loss(const std::vector<double>& token_losses);

/// Numbers in double.
template <class Real>
Matrix widen(const std::vector<Real>& values, Eigen::Index rows, Eigen::Index columns) {
  return Eigen::Map<const MatrixOf<Real>>(values.data(), rows, columns).template cast<double>();
}

/// The pass of the test set under the evaluation gating, which most metrics look at. It runs at the first
/// request, and once more if routing is requested only later, because routing takes memory. Requests throw
/// NotFinite.
template <class Real>
class TestPass {
 public:
  TestPass(const Moment<Real>& moment, const MeasuredData<Real>& data) : moment_(moment), data_(data) {}

  /// How a layer routed the rows.
  const RoutedRows& routed(int layer);
  /// The model's outputs in the shape of the targets; not for models on ids.
  Matrix outputs();
  /// The losses of all tokens that have a target, nats; for models on ids.
  const std::vector<double>& token_losses();
  /// The task loss; for ids in nats a token.
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

/// The test rows as a layer of a model routes them under the evaluation gating. Requests throw NotFinite
/// where probabilities are not finite.
template <class Real>
class ModelRows final : public LayerRows {
 public:
  /// `router_columns` is the width that the router reads; `seeds` draw permutations of its columns. All
  /// references must outlive the object.
  ModelRows(const TestMoment<Real>& moment, const MeasuredData<Real>& data, const Seeds& seeds,
            int router_columns, int layer, LayerRows* before)
      : moment_(moment),
        data_(data),
        seeds_(seeds),
        router_columns_(router_columns),
        layer_(layer),
        before_(before) {}

  std::int64_t step() const override { return moment_.step; }
  int layer() const override { return layer_; }
  int experts() const override { return network().experts(); }
  Eigen::Index rows() const override { return data_.rows(); }
  LayerRows* before() override { return before_; }

  MatrixView probabilities() { return rows_of(routed().probabilities); }
  void visit(const std::function<void(const RowBlock&)>& visit) override {
    visit({.probabilities = probabilities()});
  }
  MatrixView base_probabilities() override { return rows_of(routed().base_probabilities); }
  std::span<const int> serving() override { return routed().serving; }
  std::span<const unsigned char> selected() override { return routed().selected; }
  std::vector<std::int64_t> loads() override;

  const std::vector<ClusterLabels>& clusters() override { return data_.clusters(); }
  std::vector<int> token_ids() override;

  /// Ids are names, not points.
  bool has_points(Space space) const override { return space == Space::layer || !data_.has_ids(); }
  void visit_points(Space space, const PointBlock& visit) override;
  /// The first served rows.
  std::vector<std::int64_t> compared_rows(std::int64_t most) override;

  Matrix router_weight() override;
  MatrixView feature_weights() override;
  bool has_shuffles() const override { return true; }
  Eigen::Ref<const Matrix> shuffled(const RowBlock& block, int s) override;
  void visit_expert_outputs(const PointBlock& visit) override;
  Matrix error_gradients() override;

 private:
  const Network<Real>& network() const { return *moment_.model.network; }
  const RoutedRows& routed() { return moment_.pass.routed(layer_); }
  MatrixView rows_of(const std::vector<double>& values) const {
    return {values.data(), static_cast<Eigen::Index>(values.size()) / experts(), experts()};
  }
  /// What the layer's block reads of every test row under the evaluation gating, (rows, d).
  Matrix read_block_inputs() const;

  TestMoment<Real> moment_;
  const MeasuredData<Real>& data_;
  Seeds seeds_;
  int router_columns_, layer_;
  LayerRows* before_;
  Matrix shuffled_, block_inputs_;
};

/// What voronoi_errors() compares of a measure.
inline MixtureComponents components_of(const MixingMeasure& measure) {
  return {effective_directions(measure), gates_at_zero(measure), measure.slope, measure.intercept,
          shifted_columns(measure.form, static_cast<int>(measure.gate.cols()))};
}

}  // namespace moelab
