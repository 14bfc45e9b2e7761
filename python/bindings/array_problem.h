#pragma once

/// Uses arrays in memory as training data.

#include <memory>
#include <optional>
#include <vector>

#include "sim/data/npy.h"
#include "sim/data/problem.h"
#include "sim/model/model_options.h"

namespace moelab::python {

/// The arrays of a training set: x (n, d) or (n, s, d); y (n), (n, o), or (n, s, o) for sequences; clusters
/// (n) or (n, s). All must outlive the problem.
struct TrainingArrays {
  MemoryArray x, y;
  std::optional<MemoryArray> labels;
};

/// The layout of the arrays. Throws UserError at "x", "y" or "labels" for shapes that do not match.
Layout layout_of(const TrainingArrays& arrays);

/// A problem with these rows as its training set and no other set.
/// Throws UserError at "labels" for negative labels. When the set is drawn, it throws at "x" and "y" for
/// non-finite entries.
std::unique_ptr<Problem> problem_of(const TrainingArrays& arrays);

/// Throws UserError at "labels" if the router of `options` needs the true clusters and there are none.
void require_labels(const ModelOptions& options, bool has_labels);

/// The labels of inputs with shape `inputs` in this layout. Throws UserError at "labels" for another shape
/// and for negative labels.
std::vector<int> labels_of(const MemoryArray& labels, const Layout& layout,
                           const std::vector<std::int64_t>& inputs);

/// Checks that each row of y is a class indicator or class probabilities. Throws UserError at "y".
void check_classes(const TrainingArrays& arrays);

}  // namespace moelab::python
