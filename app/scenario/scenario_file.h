#pragma once

/// A scenario as its file writes it, with what it takes over from the files that it extends.

#include <filesystem>
#include <string>
#include <vector>

#include "app/json/json.h"
#include "sim/base/error.h"

namespace moelab {

/// The version of the scenario format that this program reads.
constexpr int kScenarioVersion = 1;

struct ScenarioFile {
  Json document;                    ///< complete: without "extends"
  std::vector<std::string> files;   ///< the file itself first, then what it extends, and so on
  std::vector<Json> own_documents;  ///< what each of them writes
};

/// Reads a scenario file. `"extends": "base.json"`, a path relative to the file, starts from that file's
/// scenario: what stands here is set there, field by field as by --set; an object that names another kind
/// than the one it meets, a list, and an entry of arms, sweep, evaluations and profiles are taken whole; null
/// removes. Throws UserError at "file: extends" when that file is missing or extends, in turn, this one, and
/// at "file: version" for another format.
ScenarioFile read_scenario_file(const std::filesystem::path& file);

/// The error with the name of the file in its message where not the scenario's own file wrote the value.
UserError at_file(const InvalidOption& error, const ScenarioFile& file);

/// Throws UserError at `place` unless the document is of a version that this program reads.
void check_version(const Json& document, const std::string& place);

}  // namespace moelab
