#pragma once

/// Trained models for Python.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/array_problem.h"
#include "sim/model/parameters.h"
#include "sim/train/experiment.h"

namespace moelab::python {

/// The true clusters of the rows, if known.
using Labels = std::optional<MemoryArray>;

/// A trained model in single or double precision. All members are const, so several threads may call them.
class TrainedModel {
 public:
  virtual ~TrainedModel() = default;
  virtual const Layout& layout() const = 0;
  virtual int layers() const = 0;  ///< number of layers with a router
  virtual int experts() const = 0;
  virtual TrainOutcome outcome() const = 0;
  /// Outputs (n, o), or (n, s, o) with a target per token, under a gating: "eval", "train", "soft" or "top1".
  /// `labels` are (n) or (n, s). Throws UserError for an unknown gating, and at "x" for a wrong number of
  /// columns. It throws at "labels" if their shape does not match x, or if the router needs missing labels.
  virtual Matrix predict(const MemoryArray& x, const std::string& gating, const Labels& labels) const = 0;
  /// Routing probabilities r (n·s, E) of a layer. Throws UserError at "layer", "x" and "labels".
  virtual Matrix route(const MemoryArray& x, int layer, const Labels& labels) const = 0;
  virtual std::vector<NamedArray<double>> arrays() const = 0;
};

/// The training setup: model, loss and train as in a scenario, and the seed index below root seed 1.
struct TrainingSpec {
  ExperimentOptions options;
  int seed = 0;
};

struct TrainingCallbacks {
  std::function<bool(double)> progress;  ///< receives the share of steps done; true interrupts the training
  /// Receives a copy of the model at each record; true ends the training there. Null if nobody asks.
  std::function<bool(std::int64_t step, std::shared_ptr<TrainedModel>)> record = nullptr;
};

/// Trains a model on the arrays. Throws UserError at the path of an option or an array.
std::shared_ptr<TrainedModel> train_model(TrainingSpec spec, const TrainingArrays& arrays,
                                          const TrainingCallbacks& callbacks);

/// Restores a model with this layout from the arrays() of another model. Throws UserError at "file" if names
/// or shapes differ.
std::shared_ptr<TrainedModel> restored_model(const TrainingSpec& spec, const Layout& layout,
                                             const TrainOutcome& outcome,
                                             const std::vector<NamedArray<double>>& arrays);

}  // namespace moelab::python
