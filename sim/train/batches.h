#pragma once

/// The sources of training gradients: batches of a training set, or rules for the whole population.

#include <memory>
#include <optional>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/random.h"
#include "sim/data/problem.h"
#include "sim/model/model.h"
#include "sim/train/train_options.h"

namespace moelab {

/// A training set in the precision of training: x (n, s·d), y (n, o) or (n, s·o), and, if requested, the true
/// clusters (n·s).
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

/// The tasks of rounds. A task is a true cluster.
class TaskRounds {
 public:
  /// Another `engine` gives another sequence of tasks.
  TaskRounds(const RoundOptions& options, int tasks, Engine engine);
  /// Moves to the next step, which may begin a round.
  void advance();
  int task() const { return task_; }
  /// Whether the present step is the last one of its round.
  bool is_last_step() const { return step_ % options_.steps == 0; }

 private:
  RoundOptions options_;
  int tasks_;
  Engine engine_;
  std::int64_t step_ = 0;
  int task_ = 0;
  std::vector<int> order_;
};

/// The rounds of a training; none without train.rounds. Each phase has its own sequence of tasks.
std::optional<TaskRounds> task_rounds(const TrainOptions& options, int tasks, const Seeds& seeds, int phase);

/// A source of batches. Each batch has contiguous arrays x (rows, s·d) and y (rows, o) or (rows, s·o).
template <class Real>
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Moves to the next batch and returns its number of samples.
  virtual int advance() = 0;
  const Real* x() const { return x_.data(); }
  /// The inputs with the true clusters of their rows, if the batches have them.
  Samples<Real> samples() const { return {x_.data(), labels_.empty() ? nullptr : labels_.data()}; }
  const Real* y() const { return y_.data(); }
  /// The task of the round that ends with this batch; none if no round ends.
  std::optional<int> finished_task() const {
    return rounds_ && rounds_->is_last_step() ? std::optional(rounds_->task()) : std::nullopt;
  }

 protected:
  /// Masks the tokens of a new batch. Each batch gets new masks.
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
  std::optional<TaskRounds> rounds_;

 private:
  TokenMasks masks_;
  int mask_columns_ = 1;
  Engine mask_engine_;
};

/// Mini-batches drawn without replacement. Each epoch visits every sample once in a new random order. Its
/// last batch may be smaller. With rounds each task has its own samples and epochs.
template <class Real>
class SampleBatches final : public BatchSource<Real> {
 public:
  /// Another `stream` gives independent orders.
  SampleBatches(const TrainingSet<Real>& data, const Layout& layout, int batch_size, const Seeds& seeds,
                std::uint64_t stream = 0, const TokenMasks& masks = {},
                std::optional<TaskRounds> rounds = {});
  int advance() override;

 private:
  const TrainingSet<Real>& data_;
  std::size_t input_dim_;
  std::size_t output_dim_;
  std::size_t tokens_;
  std::size_t batch_size_;
  Engine engine_;
  /// An order of samples and the place in it.
  struct Order {
    std::vector<int> rows;
    std::size_t next = 0;
  };
  std::vector<Order> orders_;  ///< one of all samples, or one for each task
};

/// Integration rules for the expectation over the population: `points` samples with equal weights.
///
/// Rule "monte_carlo" has independent samples. Rule "quasi_monte_carlo" maps Sobol points with a random
/// digital shift, for generators that map uniforms. Both give an unbiased gradient. Every step has a new rule
/// unless `redraw` is false. No finite training set limits what the model can learn.
template <class Real>
class PopulationBatches final : public BatchSource<Real> {
 public:
  /// Uses options with gradient "population". `problem` must outlive the object. Another `stream` gives
  /// independent rules. Throws InvalidOption if the generator has no map from uniforms.
  PopulationBatches(const Problem& problem, const TrainOptions& options, const Seeds& seeds,
                    std::uint64_t stream = 0, const TokenMasks& masks = {},
                    std::optional<TaskRounds> rounds = {});
  int advance() override;

 private:
  Dataset draw();

  const Problem& problem_;
  int points_;
  bool redraw_;
  Engine engine_;
  std::unique_ptr<QuasiRandom> quasi_random_;  // null for rule "monte_carlo"
  std::int64_t drawn_ = 0;
};

/// The options of gradient "population", with defaults filled in.
struct PopulationRule {
  int points = 4096;
  TrainOptions::Rule rule = TrainOptions::Rule::monte_carlo;
  bool redraw = true;
};
PopulationRule population_rule(const TrainOptions& options);
/// Throws InvalidOption at "train.rule" if the generator has no map from uniforms, which rule
/// "quasi_monte_carlo" needs.
void check_uniform_map(const Problem& problem);

}  // namespace moelab
