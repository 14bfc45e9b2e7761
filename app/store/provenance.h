#pragma once

/// Provenance: which program made the results, and on which machine.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/scenario/scenario.h"

namespace moelab {

// Build. These functions have their own source file, which is recompiled after every commit.

/// The version, such as "0.1.0".
std::string program_version();
/// The commit of the build, with "-dirty" for local changes. "unknown" outside a git checkout.
std::string program_commit();

/// The host's name as file_name_part() writes it, because journals are named after the host.
std::string host_name();
/// A text from the machine as a part of a file name, at most 64 characters. Characters other than ASCII
/// letters, digits, '-', '_' and '.' become '-'. Well-formed host names do not change.
std::string file_name_part(std::string_view text);
/// The current time in UTC, such as "2026-01-31T12:00:00Z".
std::string utc_now();

/// The properties of one start of the program.
struct Session {
  std::vector<std::string> arguments;
  int threads = 1;
  std::string journal;    ///< the journal that this session writes
  std::string plan = {};  ///< the id of the plan that the session runs
};

/// Describes program, build, libraries, machine, session and its scenario at the session's start, as one
/// object.
Json provenance_json(const Session& session, const Scenario& scenario);

/// Adds the end of the session: "ended_at", and the peak memory of the process in bytes.
void add_end(Json& provenance);

/// Writes a session's provenance to sessions/<journal>.json. Then updates provenance.json: the newest
/// session, with the earlier sessions under "earlier", oldest first.
void write_provenance(const std::filesystem::path& directory, const Json& provenance);

/// Reads the provenance of a journal. Returns null if the file is missing. Throws UserError if it is damaged.
Json read_journal_provenance(const std::filesystem::path& journal);

/// Reads the provenance of every session of a run directory, oldest first. Skips damaged files.
std::vector<Json> read_sessions(const std::filesystem::path& directory);

/// Returns the content of provenance.json. If `plan` is not empty, only sessions that ran this plan count.
/// Returns null if there is no session.
Json gathered_provenance(const std::filesystem::path& directory, const std::string& plan = "");

/// Names the build of a session: "0.1.0 (commit 0123abc, g++ 12.2.0, flags 0123abcd)".
///
/// Two sessions have the same build if their names are equal. The flags appear as a checksum. Processors
/// without fused multiply-add count as another build, because their results differ in the last digits.
/// Returns "unknown" for null.
std::string build_name(const Json& provenance);

}  // namespace moelab
