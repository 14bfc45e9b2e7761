#pragma once

/// The data that metrics look at.

#include <optional>
#include <span>
#include <vector>

#include "app/metrics/cluster_labels.h"
#include "sim/data/problem.h"
#include "sim/model/model.h"

namespace moelab {

/// The training loss is taken over the first training samples: as many as a test set has by default.
constexpr int kMeasuredTrainSamples = 10000;
/// That many at most; of ids of tokens, which come in long sequences, as many tokens.
int most_measured_train_samples(const DataOptions& data);

/// A model at a recorded step.
template <class Real>
struct Moment {
  const Model<Real>& model;
  const Objective<Real>& objective;
  Workspace<Real>& workspace;
  std::int64_t step = 0;
};

/// A test set, and training samples, as drawn and in the precision of training.
template <class Real>
class MeasuredData {
 public:
  /// `train` holds the first kMeasuredTrainSamples of the training set at most, or nothing where the data are
  /// those of an evaluation. Both sets must outlive the object.
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

  /// Whether the task loss is cross-entropy; whether targets are classes.
  bool cross_entropy() const { return cross_entropy_; }
  bool class_targets() const { return layout_.class_targets || (cross_entropy_ && !has_ids()); }
  /// Whether inputs and targets are ids of tokens: outputs then are as many as there are ids, and are not
  /// kept.
  bool has_ids() const { return layout_.vocabulary > 0; }
  /// Targets or outputs of a set as rows (n, o), a token a row where each has a target.
  MatrixView target_rows(const Matrix& values) const {
    return {values.data(), values.size() / layout_.output_dim, layout_.output_dim};
  }

  /// Throws NotFinite (app/metrics/finite.h) where inputs are not finite in the precision of training.
  void check_inputs() const;
  /// The model's outputs under `gating`, in the shape of the targets. Throws NotFinite.
  Matrix train_outputs(const Moment<Real>& moment, const Gating<Real>& gating) const;
  Matrix test_outputs(const Moment<Real>& moment, const Gating<Real>& gating) const;
  /// The task loss of the model under `gating` on a set, of ids in nats a token. Throws NotFinite.
  double train_loss(const Moment<Real>& moment, const Gating<Real>& gating) const;
  double test_loss(const Moment<Real>& moment, const Gating<Real>& gating) const;
  /// Loss ÷ label variance on the training samples under `gating`, by which a model is not told to be finite:
  /// may be NaN. None where the labels do not vary.
  std::optional<double> train_nmse(const Moment<Real>& moment, const Gating<Real>& gating) const;
  /// The task loss of outputs on a set that are no ids, averaged over rows and outputs (cross-entropy: over
  /// rows, nats). Throws NotFinite.
  double task_loss(const Matrix& outputs, const Matrix& targets) const;
  /// r (rows, E) of a layer; see route(). Throws NotFinite, but for a permutation: routers that no run trains
  /// are no part of the model.
  Matrix test_probabilities(const Moment<Real>& moment, int layer,
                            std::span<const int> permutation = {}) const;

 private:
  double mean_token_loss(const Moment<Real>& moment, const Gating<Real>& gating,
                         const std::vector<Real>& inputs, const Dataset& data) const;
  /// With the true clusters of their rows, where those have one each.
  Samples<Real> samples_of(const std::vector<Real>& inputs, const Dataset& data) const {
    const bool has_labels =
        data.cluster.size() * static_cast<std::size_t>(layout_.input_dim) == inputs.size();
    return {inputs.data(), has_labels ? data.cluster.data() : nullptr};
  }

  Layout layout_;
  const Dataset& train_;
  const Dataset& test_;
  std::vector<ClusterLabels> clusters_;
  bool cross_entropy_;
  std::vector<Real> train_inputs_, test_inputs_;
};

/// Of tokens.
double mean_loss(const std::vector<double>& token_losses);

/// Numbers in double.
template <class Real>
Matrix widen(const std::vector<Real>& values, Eigen::Index rows, Eigen::Index columns) {
  return Eigen::Map<const MatrixOf<Real>>(values.data(), rows, columns).template cast<double>();
}

}  // namespace moelab
