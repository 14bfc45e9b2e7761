#include "app/store/provenance.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlopt.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/Version.hpp>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <boost/version.hpp>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <utility>

#include "app/store/durable_file.h"
#include "app/store/record.h"
#include "commit.h"
#include "sim/base/error.h"
#include "sim/base/folder.h"
#include "sim/base/kernels/kernels.h"

// The build defines these three macros, the commit through a header.
#ifndef MOELAB_VERSION
#define MOELAB_VERSION "unknown"
#endif
#ifndef MOELAB_COMMIT
#define MOELAB_COMMIT "unknown"
#endif
#ifndef MOELAB_FLAGS
#define MOELAB_FLAGS "unknown"
#endif

namespace moelab {

std::string program_version() {
  return MOELAB_VERSION;
}

std::string program_commit() {
  return MOELAB_COMMIT;
}

namespace {

namespace fs = std::filesystem;

#ifdef __clang__
constexpr const char* kCompiler = __VERSION__;  // begins with its name
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

/// Returns sessions/<name>.json for journal/<name>.jsonl.
fs::path session_file(const fs::path& journal) {
  return journal.parent_path().parent_path() / "sessions" / (journal.stem().string() + ".json");
}

constexpr const char* kSessionWayOut =
    "remove it; the cells of its journal then count as cells of an unknown build";

/// Describes the Slurm job of this process. Null outside Slurm.
Json slurm_json() {
  Json slurm = Json::object();
  for (const auto& [key, variable] :
       {std::pair("job", "SLURM_JOB_ID"), std::pair("array_job", "SLURM_ARRAY_JOB_ID"),
        std::pair("array_task", "SLURM_ARRAY_TASK_ID"), std::pair("restarts", "SLURM_RESTART_COUNT")}) {
    if (const char* value = std::getenv(variable)) slurm[key] = value;
  }
  return slurm.empty() ? Json() : slurm;
}

std::string nlopt_text() {
  int major = 0, minor = 0, patch = 0;
  ::nlopt_version(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

std::string processor_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

/// Throws EnvironmentError if another program has replaced a session's file by other valid JSON. This is not
/// damage, so it is not a UserError.
void check_session_types(const fs::path& file, const Json& session) {
  if (session.is_discarded()) return;
  const auto refuse = [&](const std::string& place, const Json& given, const char* needed) {
    throw EnvironmentError(
        fmt::format("{}: got {}, needs {}; {}", place, abbreviated(given), needed, kSessionWayOut));
  };
  if (!session.is_object()) refuse(file.string(), session, "the object of a session");
  for (const char* field :
       {"version", "commit", "compiler", "flags", "vector_level", "started_at", "journal"}) {
    const Json value = session.value(field, Json(""));
    if (!value.is_string()) refuse(file.string() + ": " + field, value, "a text");
  }
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return file_name_part(name.data());
}

std::string file_name_part(std::string_view text) {
  constexpr std::size_t kLongest = 64;  // Linux's limit for host names
  std::string part(text.substr(0, kLongest));
  for (char& letter : part) {
    const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (letter >= '0' && letter <= '9') || letter == '-' || letter == '_' || letter == '.';
    if (!is_plain) letter = '-';
  }
  if (part.starts_with('.')) part.front() = '-';  // no hidden file, and not ".."
  return part.empty() ? "unknown" : part;
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

Json provenance_json(const Session& session, const Scenario& scenario) {
  Json provenance = {
      {"program", "moelab"},
      {"version", program_version()},
      {"commit", program_commit()},
      {"compiler", kCompiler},
      {"flags", MOELAB_FLAGS},
      {"libraries",
       {{"Eigen", fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)},
        {"Boost",
         fmt::format("{}.{}.{}", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100)},
        {"nlohmann_json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                      NLOHMANN_JSON_VERSION_PATCH)},
        {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
        {"Highway", kernels::highway_version()},
        {"NLopt", nlopt_text()},
        {"CLI11", CLI11_VERSION}}},
      {"processor", processor_model()},
      {"vector_level", kernels::vector_level_name()},
      {"hostname", host_name()},
      {"threads", session.threads},
      {"arguments", session.arguments},
      {"profile", scenario.profile},
      {"started_at", utc_now()},
      {"journal", session.journal},
      {"slurm", slurm_json()},
      {"files", scenario.files},
      {"plan", session.plan},
      {"added_seeds_to", scenario.added_seeds_to},
      {"scenario", scenario.document},
  };
  if (scenario.decided) provenance["decided"] = scenario.decided->to_json();
  return provenance;
}

void add_end(Json& provenance) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  provenance["ended_at"] = utc_now();
#ifdef __APPLE__  // counts in bytes, Linux in kilobytes
  constexpr std::int64_t kUnit = 1;
#else
  constexpr std::int64_t kUnit = 1024;
#endif
  provenance["peak_memory_bytes"] = std::int64_t{usage.ru_maxrss} * kUnit;
}

Json read_journal_provenance(const fs::path& journal) {
  const fs::path file = session_file(journal);
  std::error_code unseen;
  if (fs::status(file, unseen).type() == fs::file_type::not_found) return {};
  Json session;
  try {
    session = read_sealed(file, kSessionWayOut);
  } catch (const UserError&) {
    check_session_types(file, Json::parse(read_bytes(file), nullptr, false));
    throw;
  }
  check_session_types(file, session);
  return session;
}

std::vector<Json> read_sessions(const fs::path& directory) {
  std::vector<Json> sessions;
  for (const fs::path& file : entries_of(directory / "sessions")) {
    if (file.extension() != ".json") continue;
    try {
      sessions.push_back(read_sealed(file, kSessionWayOut));
    } catch (const UserError&) {
      // read_journal_provenance reports the damage to a caller that needs this file.
    }
  }
  const auto started = [](const Json& session) {
    return std::pair(session.value("started_at", ""), session.value("journal", ""));
  };
  std::sort(sessions.begin(), sessions.end(),
            [&](const Json& left, const Json& right) { return started(left) < started(right); });
  return sessions;
}

Json gathered_provenance(const fs::path& directory, const std::string& plan) {
  std::vector<Json> sessions = read_sessions(directory);
  if (!plan.empty())
    std::erase_if(sessions, [&](const Json& session) { return session.value("plan", "") != plan; });
  if (sessions.empty()) return {};
  Json newest = std::move(sessions.back());
  sessions.pop_back();
  newest["earlier"] = std::move(sessions);
  return newest;
}

void write_provenance(const fs::path& directory, const Json& provenance) {
  const fs::path journal = directory / "journal" / provenance.at("journal").get<std::string>();
  replace_file(session_file(journal), sealed_text(provenance));
  // Gathers from the sessions' own files. The lock keeps a process from replacing a newer list.
  const FolderLock lock(directory);
  replace_file(directory / "provenance.json", sealed_text(gathered_provenance(directory)));
}

std::string build_name(const Json& provenance) {
  if (!provenance.is_object()) return "unknown";
  const auto field = [&](const char* name) { return provenance.value(name, "unknown"); };
  return fmt::format("{} (commit {}, {}, flags {}{})", field("version"), field("commit"), field("compiler"),
                     checksum(field("flags")),
                     field("vector_level") == "sse" ? ", no fused multiply-add" : "");
}

}  // namespace moelab
