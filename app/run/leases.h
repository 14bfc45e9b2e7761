#pragma once

/// Which process on a run directory is at which cell, so that any number of them share one without a
/// coordinator.

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>

namespace moelab {

/// A lease is a lock on one byte of the file `leases`, at a place that the cell's id gives. It ends with the
/// process, however that ends. On a disk without locks every lease is given: cells then may run twice, with
/// the same numbers.
class Leases {
 public:
  /// `retries_failed`: a cell that is recorded as failed may be taken. Throws EnvironmentError where the file
  /// cannot be opened.
  Leases(std::filesystem::path directory, bool retries_failed);
  ~Leases();
  Leases(const Leases&) = delete;
  Leases& operator=(const Leases&) = delete;

  /// Takes a cell, unless another process is at it or, but for `is_recorded`, has recorded it.
  bool take(const std::string& cell, bool is_recorded = false);
  void give_back(const std::string& cell);

 private:
  bool lock(const std::string& cell, bool taken);
  void read_on();

  std::filesystem::path directory_;
  bool retries_failed_;
  int descriptor_;
  std::mutex mutex_;                               ///< guards what follows
  std::unordered_set<std::string> recorded_;       ///< cells of all journals, as far as they were read
  std::map<std::string, std::uintmax_t> read_to_;  ///< by journal, bytes
};

}  // namespace moelab
