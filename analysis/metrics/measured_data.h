#pragma once

/// The data that metrics look at.

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/metrics/voronoi.h"
#include "sim/base/numerics.h"
#include "sim/data/layout.h"
#include "sim/data/mixing_measure.h"
#include "sim/data/problem.h"
#include "sim/model/model.h"

namespace moelab {

// How routing metrics cut rows into clusters.

/// Labels of rows that make clusters, one or several to a row: a row counts in the cluster of each.
struct ClusterLabels {
  std::string suffix;                    ///< of the metrics' names
  std::vector<std::vector<int>> labels;  ///< each (rows)
};

/// A row with one label (of a token: its component) is in that label's cluster. A sample made of several
/// parts is in the cluster of its set of parts; with `_per_atom` in the clusters of each of its parts,
/// whatever the others are; with `_overall` in the one cluster of all.
std::vector<ClusterLabels> cluster_labels(const Layout& layout, const std::vector<int>& labels);

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

  /// Throws NotFinite (analysis/metrics/measured_data.h) where inputs are not finite in the precision of
  /// training.
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

// The pass of a test set under the evaluation gating, which most metrics look at.

/// Made once for a recorded step, when first asked for; once more where only then routing is asked for, which
/// takes memory of its own. What is asked for throws NotFinite (analysis/metrics/measured_data.h) where it is
/// not finite.
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

// How the test rows go through a layer.

/// A layer with a router under the evaluation gating. What needs probabilities throws NotFinite
/// (analysis/metrics/measured_data.h) where they are not finite.
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

// Readable names of what figures show.

/// A swept path or a metric at an axis: "data.train_samples" → "training samples", "test_nmse_top1" → "test
/// loss ÷ label variance (top-1)", as its group declares it. A layer, an entry and an evaluation are appended
/// ("test loss ÷ label variance (top-1), contaminated"); names without a label stand for themselves.
std::string axis_label(const std::string& name);

/// A shorter form for legends: "test, top-1".
std::string legend_label(const std::string& name);

// The rule for numbers that are not finite.
//
// A comparison with NaN is false: the entropy of NaN would be 0, and a loss of NaN would have reached every
// target. So whatever a model gives to be measured is checked where it is made (parameters, inputs in the
// precision of training, outputs, probabilities, losses), once, and the first that is not finite leaves a
// test set without any metric at that step: Measurement catches. On the cell's own data at its last step
// that is divergence. Scores of −∞ are probabilities of 0, which are finite.

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

/// What voronoi_errors() compares of a measure.
inline MixtureComponents components_of(const MixingMeasure& measure) {
  return {effective_directions(measure), gates_at_zero(measure), measure.slope, measure.intercept,
          shifted_columns(measure.form, static_cast<int>(measure.gate.cols()))};
}

}  // namespace moelab
