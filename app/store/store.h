#pragma once

/// The store of a run directory: journal/*.jsonl and cells/<id>/*.npy.
///
/// The same directory has plan.json, plans/<id>/plan.json (app/store/run_folder.h), provenance.json and
/// sessions/*.json (app/store/provenance.h).
///
/// Each process appends to its own journal. It writes one line per finished cell, after the cell's arrays are
/// on disk. This has three effects:
/// - A crash loses at most the cells that were running.
/// - Several processes may fill one directory.
/// - Directories can be merged: copy their journals, sessions and cells together.

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/scenario/scenario.h"
#include "app/store/durable_file.h"
#include "app/store/record.h"

namespace moelab {

/// Records by cell id. They include cells that are not in the plan.
using Records = std::unordered_map<std::string, Record>;

/// Reads every journal of `directory`. Without journals the result is empty. A last line without a newline is
/// dropped, because a killed process leaves one. If a failed cell was run again, the later record counts.
///
/// Throws UserError for a damaged line, with file, line and byte. Throws UserError if two records of a cell
/// have different numbers, with both places, one number and both builds.
Records read_records(const std::filesystem::path& directory, RecordPart part = RecordPart::all);
/// Reads every journal. Adds each error to `problems` as "place: message" and skips its line.
Records read_records(const std::filesystem::path& directory, std::vector<std::string>& problems);

/// The path cells/<id>/<name>.npy in the directory.
std::filesystem::path array_file(const std::filesystem::path& directory, const std::string& cell,
                                 const std::string& name);
/// The bytes of an array's file.
std::string array_bytes(const SavedArray& array);

/// Compares an array's file with the recorded checksum of its bytes. Returns "missing", "other bytes than
/// were recorded", or an empty string if they match.
std::string array_problem(const std::filesystem::path& file, const std::string& recorded);

/// Makes a cell's record from its result, without the checksums of its arrays.
Record numbers_of(const std::string& cell_id, const CellResult& result, double seconds);

/// Writes the missing or damaged arrays of a cell from a second run of the cell. If the second run has other
/// numbers than the record, the function writes nothing and returns the differences. Throws EnvironmentError.
std::string restore_arrays(const std::filesystem::path& directory, const Record& recorded,
                           const CellResult& again);

/// Writes the results of a process. A process has only one writer.
class StoreWriter {
 public:
  /// Creates a new journal. Throws EnvironmentError.
  explicit StoreWriter(const std::filesystem::path& directory);
  const std::string& journal_name() const { return journal_name_; }
  /// Writes the cell's arrays, then its record, and flushes both to disk. Throws EnvironmentError.
  void write(const std::string& cell_id, const CellResult& result, double seconds);

 private:
  std::filesystem::path directory_;
  std::string journal_name_;
  AppendedFile journal_;
};

// Conflicting records

/// The records that were set aside.
struct SetAside {
  int records = 0;
  std::vector<std::filesystem::path> files;  ///< the files that contain the records
};

/// Resolves cells that were recorded twice with different numbers.
///
/// `journal` is the prefix of exactly one journal's name. For each conflict, the function keeps this
/// journal's record. With "newest" it keeps the record that finished last. Lines with other numbers move to
/// <journal>.aside. If the chosen journal does not have the cell, all records of the cell stay. No line is
/// lost in a crash: the function writes it to the new file before it removes it from the old one.
///
/// Throws UserError at --keep if no journal or several journals match the prefix. Throws UserError if a
/// running process writes a journal that would change. Throws EnvironmentError when the disk refuses.
SetAside set_others_aside(const std::filesystem::path& directory, const std::string& journal);

}  // namespace moelab
