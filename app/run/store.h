#pragma once

/// The run directory: plan.json, provenance.json, journal/*.jsonl, sessions/*.json, cells/<id>/*.npy.
///
/// Every process appends to its own journal, one line per finished cell, after the cell's arrays are on disk.
/// So a crash loses at most the cells that were running, several processes may fill one directory, and
/// directories may be merged by copying their journals, sessions and cells together.

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/run/durable_file.h"
#include "app/run/record.h"
#include "app/scenario/scenario.h"

namespace moelab {

/// Records by cell id. Cells that are no longer planned are among them.
using Records = std::unordered_map<std::string, Record>;

/// Reads every journal of `directory`; none is an empty result. A last line without its newline, which a
/// killed process leaves, is dropped. Of a cell that failed and was run again the later record counts. Throws
/// UserError naming file, line and byte for a damaged line, and naming both places when two records of a cell
/// differ in their numbers.
Records read_records(const std::filesystem::path& directory, RecordPart part = RecordPart::all);
/// The same, but with every such error added to `problems` as "place: message" and its line left out.
Records read_records(const std::filesystem::path& directory, std::vector<std::string>& problems);

/// cells/<id>/<name>.npy.
std::filesystem::path array_file(const std::filesystem::path& directory, const std::string& cell,
                                 const std::string& name);
/// The bytes of that file.
std::string array_bytes(const SavedArray& array);

/// The version of the plan's format that this program writes and reads.
constexpr int kPlanVersion = 1;

/// plan.json of a scenario: {"version", "name", "title", "source", "profile", "scenario", "claims",
/// "figures", "arms", "sweep", "cells": [{"id", "arm", "seed", "point"}]}, and "added_seeds_to" where seeds
/// were added.
Json plan_json(const Scenario& scenario);

/// The text of plan.json.
std::string plan_text(const Scenario& scenario);

/// plan.json as written, but for what `take` takes out of it while it is read. Throws UserError when it is
/// missing, not an object, or of another version of its format or of the scenario's; one that says no version
/// is of the first.
Json read_plan(const std::filesystem::path& directory, const Json::parser_callback_t& take = nullptr);

/// Throws UserError when `directory` cannot take the scenario's results: it is a file, holds something else,
/// or belongs to a scenario of another name. Writes nothing.
void check_run_directory(const std::filesystem::path& directory, const std::string& scenario_name);

/// The one writer of a process.
class StoreWriter {
 public:
  /// Opens a journal of its own. Throws EnvironmentError.
  explicit StoreWriter(const std::filesystem::path& directory);
  const std::string& journal_name() const { return journal_name_; }
  /// Writes the cell's arrays, then its record, and flushes both to disk. Throws EnvironmentError.
  void write(const std::string& cell_id, const CellResult& result, double seconds);

 private:
  std::filesystem::path directory_;
  std::string journal_name_;
  AppendedFile journal_;
};

}  // namespace moelab
