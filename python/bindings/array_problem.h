#pragma once

/// Arrays in memory as the data of a training.

#include <memory>
#include <optional>
#include <vector>

#include "sim/data/npy.h"
#include "sim/data/problem.h"
#include "sim/model/model_options.h"

namespace moelab::python {

/// x (n, d) or (n, s, d); y (n, o), (n), or (n, s, o) of sequences; clusters (n) or (n, s). All outlive the
/// problem.
struct TrainingArrays {
  MemoryArray x, y;
  std::optional<MemoryArray> labels;
};

/// The layout that the arrays have. Throws UserError at "x", "y" or "labels" where their shapes do not fit.
Layout layout_of(const TrainingArrays& arrays);

/// The rows as a training set; there is no other set. Throws UserError at "labels" for negative ones; at "x"
/// and "y", when they are drawn, for entries that are not finite.
std::unique_ptr<Problem> problem_of(const TrainingArrays& arrays);

/// Throws UserError at "labels" where the router of `options` needs the true clusters and they are missing.
void require_labels(const ModelOptions& options, bool has_labels);

/// The labels of inputs of that layout. Throws UserError at "labels" for another shape, and for negative
/// ones.
std::vector<int> labels_of(const MemoryArray& labels, const Layout& layout,
                           const std::vector<std::int64_t>& inputs);

/// Throws UserError at "y" unless its rows are indicators (or probabilities) of classes.
void check_classes(const TrainingArrays& arrays);

}  // namespace moelab::python
