#pragma once

/// Readers of what a run folder holds, as targets.h says.

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/run/results.h"
#include "app/store/provenance.h"
#include "app/store/record.h"
#include "app/store/store.h"
#include "sim/base/error.h"
#include "tests/fuzz/property.h"
#include "tests/temporary_folder.h"

namespace moelab {

/// The text with a correct checksum line, which replaces any present one. So the fuzzer reaches the code
/// behind the checksum.
inline std::string with_checksum(std::string_view text) {
  if (text.starts_with("{\n")) text.remove_prefix(2);
  if (text.find("\"checksum\"") < 4) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return "{\n \"checksum\": \"" + checksum(text) + "\",\n" + std::string(text);
}

/// What `read` makes of the bytes as `file`, and of the same with a right checksum.
template <class Read>
bool fuzz_file(std::string_view bytes, const std::filesystem::path& file, const Read& read) {
  bool accepted = false;
  for (const std::string& text : {std::string(bytes), with_checksum(bytes)}) {
    std::filesystem::create_directories(file.parent_path());
    write_anew(file, text);
    try {
      accepted = read() || accepted;
    } catch (const UserError&) {
    } catch (const EnvironmentError&) {
    }
  }
  return accepted;
}

/// Reads plan.json, with all that verbs ask of it.
inline bool fuzz_plan(std::string_view bytes) {
  static const TemporaryFolder folder;
  return fuzz_file(bytes, folder.path() / "plan.json", [] {
    load_results(folder.path(), RecordPart::state);
    return true;
  });
}

/// Reads a session's file.
inline bool fuzz_session(std::string_view bytes) {
  static const TemporaryFolder folder;
  return fuzz_file(bytes, folder.path() / "sessions" / "x.json", [] {
    const Json provenance = read_journal_provenance(folder.path() / "journal" / "x.jsonl");
    build_name(provenance);
    return provenance.is_object();
  });
}

/// What a directory holds whose one journal is these bytes; reading that stops at the first problem and
/// reading that collects problems agree.
struct JournalReading {
  Records records;
  std::vector<std::string> problems;
};

inline JournalReading read_journal(std::string_view bytes) {
  static const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "journal");
  write_anew(folder.path() / "journal" / "x.jsonl", bytes);
  JournalReading reading;
  reading.records = read_records(folder.path(), reading.problems);
  try {
    require(read_records(folder.path()).size() == reading.records.size() && reading.problems.empty(),
            "a problem that does not stop reading");
  } catch (const UserError&) {
    require(!reading.problems.empty(), "reading stops without a problem");
  }
  return reading;
}

/// Reads a journal; then, so that what lies behind the checksum is reached, too, its lines as records with
/// right checksums.
inline bool fuzz_journal(std::string_view bytes) {
  JournalReading reading = read_journal(bytes);
  const bool accepted = reading.problems.empty() && !reading.records.empty();
  std::string sealed;
  for (std::size_t start = 0; start < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', start), bytes.size());
    sealed += sealed_line(bytes.substr(start, end - start)) + '\n';
    start = end + 1;
  }
  reading.records.merge(read_journal(sealed).records);
  for (const auto& [cell, record] : reading.records) {
    const std::string line = record_line(record);
    const Record again = parse_record_line(line);
    require(same_numbers(again, record) && record_line(again) == line, "a record reads back as another");
  }
  return accepted;
}

}  // namespace moelab
