#pragma once

/// What a cell's id is made of.

#include <boost/uuid/detail/sha1.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "app/scenario/cell_config.h"
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
  boost::uuids::detail::sha1 before_;  ///< has taken the hashed text up to that of the seeds
  std::string after_;                  ///< and what follows
};

/// The ids of many configurations, of whose parts most are the same objects. Several threads may ask.
class CellIdentities {
 public:
  /// `contents` has to outlive it.
  explicit CellIdentities(FileContents& contents) : contents_(contents) {}
  /// Throws EnvironmentError where a file cannot be read.
  CellIds of(const CellConfig& config);

 private:
  using SharedPart = std::shared_ptr<const CellConfig::Part>;
  std::string text_of(const SharedPart& part);

  FileContents& contents_;
  std::mutex mutex_;
  std::unordered_map<SharedPart, std::string> texts_;  ///< of each part that was met
};

}  // namespace moelab
