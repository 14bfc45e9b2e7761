#pragma once

/// Readers of what a run folder holds beside its journals, as those of targets.h.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "app/run/provenance.h"
#include "app/run/record.h"
#include "app/run/results.h"
#include "sim/base/error.h"
#include "tests/temporary_folder.h"

namespace moelab {

/// The text with a checksum line that is right for what follows it, in place of its own where it has one: so
/// that what lies behind the checksum is reached, too.
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
    std::filesystem::remove(file);
    std::ofstream(file, std::ios::binary) << text;
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

}  // namespace moelab
