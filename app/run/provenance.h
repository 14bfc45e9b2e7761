#pragma once

/// Which program, on which machine, made the results.

#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/json.h"

namespace moelab {

/// "0.1.0".
std::string program_version();
/// The commit the program was built from, with "-dirty" after local changes; "unknown" outside a checkout.
std::string program_commit();
std::string host_name();
/// Now, as "2026-01-31T12:00:00Z".
std::string utc_now();

/// What is particular to one start of the program.
struct Session {
  std::vector<std::string> arguments;
  std::string profile;
  int threads = 1;
  std::string journal;  ///< the journal that this session fills
};

/// Program, build, libraries, machine and session as one object.
Json provenance_json(const Session& session);

/// Writes provenance.json: the newest session, with the sessions before it under "earlier", oldest first.
void write_provenance(const std::filesystem::path& directory, const Session& session);

}  // namespace moelab
