#pragma once

/// Where training takes its gradients from: batches of a training set, or rules for the whole population.

#include <memory>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/random.h"
#include "sim/data/problem.h"
#include "sim/model/model.h"
#include "sim/train/train_options.h"

namespace moelab {

/// A training set in the precision of training: x (n, s·d), y (n, o) or (n, s·o), and where they are asked
/// for the true clusters (n·s).
template <class Real>
struct TrainingSet {
  int rows = 0;
  std::vector<Real> x;
  std::vector<Real> y;
  std::vector<int> labels = {};

  /// The samples from `first` on.
  Samples<Real> samples(int first, const Layout& layout) const {
    return {x.data() + entries(first, layout.sample_dim()),
            labels.empty() ? nullptr : labels.data() + entries(first, layout.tokens)};
  }
};

/// One batch after another, each as contiguous arrays x (rows, s·d), y (rows, o) or (rows, s·o).
template <class Real>
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Moves to the next batch and returns its number of samples.
  virtual int advance() = 0;
  const Real* x() const { return x_.data(); }
  /// With the true clusters of their rows, where the batches have them.
  Samples<Real> samples() const { return {x_.data(), labels_.empty() ? nullptr : labels_.data()}; }
  const Real* y() const { return y_.data(); }

 protected:
  /// Masks the tokens of a batch that has just been made; anew in each.
  void mask(int samples) {
    if (masks_) mask_tokens(masks_, mask_engine_, samples, mask_columns_, x_.data(), y_.data());
  }
  void mask_by(const TokenMasks& masks, const Layout& layout, const Engine& engine) {
    masks_ = masks;
    mask_columns_ = layout.tokens;
    mask_engine_ = engine;
  }

  AlignedVector<Real> x_;
  AlignedVector<Real> y_;
  std::vector<int> labels_;

 private:
  TokenMasks masks_;
  int mask_columns_ = 1;
  Engine mask_engine_;
};

/// Mini-batches drawn without replacement: each epoch visits every sample once in a new random order (its
/// last batch may be smaller).
template <class Real>
class SampleBatches final : public BatchSource<Real> {
 public:
  /// Orders of another `stream` are independent of these.
  SampleBatches(const TrainingSet<Real>& data, const Layout& layout, int batch_size, const Seeds& seeds,
                std::uint64_t stream = 0, const TokenMasks& masks = {});
  int advance() override;

 private:
  const TrainingSet<Real>& data_;
  std::size_t input_dim_;
  std::size_t output_dim_;
  std::size_t tokens_;
  std::size_t batch_size_;
  Engine engine_;
  std::vector<int> order_;
  std::size_t next_;
};

/// Rules for the expectation over the population: `points` samples with equal weights, independent
/// (rule "monte_carlo") or images of Sobol points under a random digital shift ("quasi_monte_carlo", for
/// generators that map uniforms). Either way the gradient over a rule is unbiased, and every step has a new
/// rule unless `redraw` is false. There is no training set whose size could limit what is learned.
template <class Real>
class PopulationBatches final : public BatchSource<Real> {
 public:
  /// From options with gradient "population"; `problem` must outlive the object. Rules of another `stream`
  /// are independent of these. Throws InvalidOption where the generator has no map from uniforms.
  PopulationBatches(const Problem& problem, const TrainOptions& options, const Seeds& seeds,
                    std::uint64_t stream = 0, const TokenMasks& masks = {});
  int advance() override;

 private:
  Dataset draw();

  const Problem& problem_;
  int points_;
  bool redraw_;
  Engine engine_;
  std::unique_ptr<QuasiRandom> quasi_random_;  // null for independent samples
  std::int64_t drawn_ = 0;
};

/// What options have with gradient "population" only, defaults filled in.
struct PopulationRule {
  int points = 4096;
  TrainOptions::Rule rule = TrainOptions::Rule::monte_carlo;
  bool redraw = true;
};
PopulationRule population_rule(const TrainOptions& options);
/// Rule "quasi_monte_carlo" has a generator with a map from uniforms. Throws InvalidOption at "train.rule".
void check_uniform_map(const Problem& problem);

}  // namespace moelab
