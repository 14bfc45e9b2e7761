#pragma once

/// Models that Python holds.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/array_problem.h"
#include "sim/model/parameters.h"
#include "sim/train/experiment.h"

namespace moelab::python {

/// The true clusters of rows, where they are known.
using Labels = std::optional<MemoryArray>;

/// A trained model in either precision. Nothing here changes it, so that several threads may ask at once.
class TrainedModel {
 public:
  virtual ~TrainedModel() = default;
  virtual const Layout& layout() const = 0;
  virtual int layers() const = 0;  ///< with a router
  virtual int experts() const = 0;
  virtual TrainOutcome outcome() const = 0;
  /// Outputs (n, o), or (n, s, o) with a target for each token, under a gating: "eval", "train", "soft" or
  /// "top1". Throws UserError at "x" where its columns are not the model's, and for another gating; at
  /// "labels" (n) or (n, s) where these do not fit x, or are missing and the router needs them.
  virtual Matrix predict(const MemoryArray& x, const std::string& gating, const Labels& labels) const = 0;
  /// r (n·s, E) of a layer. Throws UserError at "layer", "x" and "labels".
  virtual Matrix route(const MemoryArray& x, int layer, const Labels& labels) const = 0;
  virtual std::vector<NamedArray<double>> arrays() const = 0;
};

/// How a model is trained: model, loss and train as a scenario writes them, the seed's index of root seed 1.
struct TrainingSpec {
  ExperimentOptions options;
  int seed = 0;
};

/// Throws UserError, at the path of the option or the array.
std::shared_ptr<TrainedModel> train_model(TrainingSpec spec, const TrainingArrays& arrays,
                                          const std::function<bool(double)>& progress);

/// A model of that layout with the values of arrays() of another. Throws UserError at "file" unless their
/// names and shapes are the model's.
std::shared_ptr<TrainedModel> restored_model(const TrainingSpec& spec, const Layout& layout,
                                             const TrainOutcome& outcome,
                                             const std::vector<NamedArray<double>>& arrays);

}  // namespace moelab::python
