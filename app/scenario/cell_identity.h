#pragma once

/// What a cell's id is made of.

#include <string>

#include "app/json/json.h"
#include "sim/base/random.h"
#include "sim/data/file_contents.h"

namespace moelab {

/// The ids of a configuration's cells: two that give the same numbers for sure have the same. Fields at their
/// defaults are left out, and every file that is read counts by what it holds, of the data and of those of
/// evaluations; a folder by the files in it.
class CellIds {
 public:
  /// `config` as CellConfig has it. Throws EnvironmentError where a file cannot be read.
  CellIds(const Json& config, FileContents& contents);
  /// 16 hexadecimal digits.
  std::string id(const Seeds& seeds) const;

 private:
  std::string before_, after_;  ///< the hashed text, around that of the seeds
};

}  // namespace moelab
