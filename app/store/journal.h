#pragma once

/// The journals of a run directory, line by line.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "app/store/record.h"

namespace moelab {

/// Where a record stands: its line is `size` bytes from `start`.
struct JournalPlace {
  const std::filesystem::path* journal = nullptr;
  std::size_t number = 0, start = 0, size = 0;
};

/// "run/journal/a.jsonl:3".
std::string name_of(const JournalPlace& place);
/// The line that stands there, read once more.
std::string line_at(const JournalPlace& place);

/// A line of a journal: its record, or what is wrong with it.
struct JournalLine {
  JournalPlace place;
  Record record;
  std::string damage;
};

/// The journals of a run directory, by name.
std::vector<std::filesystem::path> journal_files(const std::filesystem::path& directory);

/// The lines of a journal, each held against its checksum, but for a last one without its newline: it is of a
/// killed process, or of one that is writing. Their places point to `journal`. Throws EnvironmentError where
/// it cannot be read.
std::vector<JournalLine> read_journal(const std::filesystem::path& journal, RecordPart part);

// Which process on a run directory is at which cell, so that any number of them share one without a
// coordinator.

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
