#pragma once

/// Arrays of the user's own as data: .npy files of inputs, targets and labels.

#include "sim/data/problem.h"

namespace moelab {

/// x = inputs (n, d), y = targets (n, o) or (n), cluster = labels (n) where given, else 0 for every row. With
/// test_inputs the first train_samples rows are the training set and the first test_samples rows of the test
/// files the test set; without, the last test_samples rows of `inputs` are the test set, which the training
/// set may not reach. Nothing is drawn: seeds change the initial weights and the batches only.
const Kind& file_data_kind();

/// Opens the files and checks shapes, sample counts and labels. Throws UserError at the field (data.targets,
/// data.train_samples, …). The samples are read when they are drawn; then entries that are not finite throw,
/// with file, row and column. Sets other than those for training and testing are
/// refused: a file has no further rows to draw.
std::unique_ptr<Problem> draw_file_data(const Json& data, const Seeds& seeds);

/// Opens and closes the files, with the checks of draw_file_data().
void check_file_data(const Json& data);

/// Does both for a resolved `data` of this kind, and reads every row that a run would read. With
/// `class_targets` rows of targets have to be probabilities.
void check_file_values(const Json& data, bool class_targets = false);

}  // namespace moelab
