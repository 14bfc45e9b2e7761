#pragma once

/// What a cell's id is made of.

#include <mutex>
#include <string>
#include <unordered_map>

#include "app/json/json.h"
#include "sim/base/random.h"
#include "sim/data/file_contents.h"

namespace moelab {

/// The ids of a configuration's cells: two that give the same numbers for sure have the same. Fields at their
/// defaults are left out, and every file that is read counts by what it holds, of the data and of those of
/// evaluations; a folder by the files in it.
class CellIds {
 public:
  /// 16 hexadecimal digits.
  std::string id(const Seeds& seeds) const;

 private:
  friend class CellIdentities;
  std::string before_, after_;  ///< the hashed text, around that of the seeds
};

/// The ids of many configurations, of whose parts most are the same. Several threads may ask.
class CellIdentities {
 public:
  /// `contents` has to outlive it.
  explicit CellIdentities(FileContents& contents) : contents_(contents) {}
  /// `config` as CellConfig has it. Throws EnvironmentError where a file cannot be read.
  CellIds of(const Json& config);

 private:
  std::string text_of(const std::string& part, const Json& value);

  FileContents& contents_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::string> texts_;  ///< by a part's name and text
};

}  // namespace moelab
