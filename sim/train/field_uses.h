#pragma once

/// Fields that are given although nothing reads them next to the other options.
///
/// The rules are about one experiment. A study may give a field in all its cells and read it in some of them.
/// The caller therefore compares the cells: see scenario_hints().

#include <string>
#include <vector>

#include "sim/train/experiment.h"

namespace moelab {

/// A given field, and whether anything reads it.
struct FieldUse {
  std::string what;  ///< tells uses apart: the path, or the path and the kind that stands there
  std::string path;
  std::string unread = {};  ///< the note on the field; empty if the field is read

  bool is_read() const { return unread.empty(); }
};

/// One entry for each given field, or kind, that a rule is about. A field at its default counts as not given.
/// The options must pass check(). For phases, give the options of one phase at a time.
std::vector<FieldUse> field_uses(const ExperimentOptions& options);
/// The entries of the data alone.
std::vector<FieldUse> field_uses(const DataOptions& data);

}  // namespace moelab
