#pragma once

/// Reads the journals of a run directory line by line. Leases let several processes share one directory.

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

/// The place of a record: `size` bytes from `start`, on line `number` of `journal`.
struct JournalPlace {
  const std::filesystem::path* journal = nullptr;
  std::size_t number = 0, start = 0, size = 0;
};

/// Names the place: "run/journal/a.jsonl:3".
std::string name_of(const JournalPlace& place);
/// Reads the line at this place again.
std::string line_at(const JournalPlace& place);

/// A line of a journal: its record, or a description of the damage.
struct JournalLine {
  JournalPlace place;
  Record record;
  std::string damage;
};

/// The journals of a run directory, sorted by name.
std::vector<std::filesystem::path> journal_files(const std::filesystem::path& directory);

/// Reads the lines of a journal and verifies their checksums. A last line without a newline is skipped: its
/// process was killed or is still writing. The places point to `journal`. Throws EnvironmentError if the file
/// cannot be read.
std::vector<JournalLine> read_journal(const std::filesystem::path& journal, RecordPart part);

// Leases

/// Lets several processes share one run directory without a coordinator. A lease marks a cell as running. It
/// is a lock on one byte of the file `leases`; the cell's id determines the offset. The lease ends when the
/// process ends. A disk without locks is an EnvironmentError.
class Leases {
 public:
  /// With `retries_failed`, a cell that is recorded as failed may be taken. Throws EnvironmentError if the
  /// file cannot be opened.
  Leases(std::filesystem::path directory, bool retries_failed);
  ~Leases();
  Leases(const Leases&) = delete;
  Leases& operator=(const Leases&) = delete;

  /// Takes a cell and returns true, unless another process runs it or has recorded it. With `is_recorded`, a
  /// cell that is already recorded may be taken too.
  bool take(const std::string& cell, bool is_recorded = false);
  void give_back(const std::string& cell);

 private:
  bool lock(const std::string& cell, bool taken);
  void read_on();

  std::filesystem::path directory_;
  bool retries_failed_;
  int descriptor_;
  std::mutex mutex_;                               ///< guards the members below
  std::unordered_set<std::string> recorded_;       ///< cells of all journals, as far as they have been read
  std::map<std::string, std::uintmax_t> read_to_;  ///< bytes read, by journal
};

}  // namespace moelab
