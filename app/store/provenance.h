#pragma once

/// Which program, on which machine, made the results.

#include <filesystem>
#include <string>
#include <vector>

#include "app/scenario/json.h"

namespace moelab {

// What this program was built from. A file of its own, since it is compiled anew after every commit.

/// "0.1.0".
std::string program_version();
/// The commit the program was built from, with "-dirty" after local changes; "unknown" outside a checkout.
std::string program_commit();
/// The compiler's options.
std::string program_flags();

std::string host_name();
/// Now, as "2026-01-31T12:00:00Z".
std::string utc_now();

/// What is particular to one start of the program.
struct Session {
  std::vector<std::string> arguments;
  std::string profile;
  int threads = 1;
  std::string journal;                  ///< the journal that this session fills
  std::vector<std::string> files = {};  ///< the scenario file and those that it extends
  Json scenario = {};                   ///< as resolved, written to plan.json too
  std::string plan = {};                ///< the id of the plan that it ran
  int added_seeds_to = 0;               ///< the plan's
  Json decided = {};                    ///< likewise
};

/// Program, build, libraries, machine and session as one object, at the session's start.
Json provenance_json(const Session& session);

/// Adds how the session ended to its provenance: "ended_at" and the most memory that the process held, in
/// bytes.
void add_end(Json& provenance);

/// Writes a session's provenance to sessions/<journal>.json, then provenance.json: the newest session of all,
/// with those before it under "earlier", oldest first.
void write_provenance(const std::filesystem::path& directory, const Json& provenance);

/// The provenance of a journal; null where it is missing. Throws UserError where it is damaged.
Json read_journal_provenance(const std::filesystem::path& journal);

/// The provenance of every session of a run directory, oldest first, without those that are damaged.
std::vector<Json> read_sessions(const std::filesystem::path& directory);

/// What provenance.json is to say, of the sessions that ran a plan alone unless it is empty; null without
/// any.
Json gathered_provenance(const std::filesystem::path& directory, const std::string& plan = "");

/// "0.1.0 (commit 0123abc, g++ 12.2.0, flags 0123abcd)": what two sessions must share to be of one build. The
/// flags stand as a checksum; processors without fused multiply-add, whose results differ in the last digits,
/// count as another build. "unknown" for null.
std::string build_name(const Json& provenance);

}  // namespace moelab
