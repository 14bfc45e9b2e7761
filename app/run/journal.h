#pragma once

/// The journals of a run directory, line by line.

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "app/run/record.h"

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

}  // namespace moelab
