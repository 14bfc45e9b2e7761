#pragma once

/// Arrays of the user's own as data: .npy files of inputs, targets and labels.

#include <optional>
#include <string>

#include "sim/data/problem.h"

namespace moelab {

/// x = inputs (n, d), y = targets (n, o) or (n), cluster = labels (n) where given, else 0 for every row. With
/// test_inputs the first train_samples rows are the training set and the first test_samples rows of the test
/// files the test set; without, the last test_samples rows of `inputs` are the test set, which the training
/// set may not reach. Nothing is drawn: seeds change the initial weights and the batches only.
///
/// Drawing the problem opens the files and checks shapes, sample counts and labels, as check() does; the
/// samples are read when they are drawn. What files hold is a UserError at the field that names them
/// (data.targets, …), with row and column where an entry is not finite; sample counts that files do not have
/// and sets other than those for training and testing, for which a file has no rows, are InvalidOption.
struct FileOptions {
  std::string inputs = "";
  std::string targets = "";
  std::optional<std::string> labels = std::nullopt;
  std::optional<std::string> test_inputs = std::nullopt;
  std::optional<std::string> test_targets = std::nullopt;
  std::optional<std::string> test_labels = std::nullopt;

  void bind(Fields& fields);
};

/// Checks data of FileOptions and reads every row that a run would read. With `class_targets` rows of targets
/// have to be probabilities.
void check_file_values(const DataOptions& data, bool class_targets = false);

}  // namespace moelab
