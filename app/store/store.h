#pragma once

/// What a run directory stores of its cells: journal/*.jsonl and cells/<id>/*.npy. Beside them stand
/// plan.json, plans/<id>/plan.json (app/store/run_folder.h), provenance.json and sessions/*.json
/// (app/store/provenance.h).
///
/// Every process appends to its own journal, one line per finished cell, after the cell's arrays are on disk.
/// So a crash loses at most the cells that were running, several processes may fill one directory, and
/// directories may be merged by copying their journals, sessions and cells together.

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/scenario/scenario.h"
#include "app/store/durable_file.h"
#include "app/store/record.h"

namespace moelab {

/// Records by cell id. Cells that are no longer planned are among them.
using Records = std::unordered_map<std::string, Record>;

/// Reads every journal of `directory`; none is an empty result. A last line without its newline, which a
/// killed process leaves, is dropped. Of a cell that failed and was run again the later record counts. Throws
/// UserError naming file, line and byte for a damaged line, and for a cell with two records of other numbers,
/// naming both places, a number, and what wrote each.
Records read_records(const std::filesystem::path& directory, RecordPart part = RecordPart::all);
/// The same, but with every such error added to `problems` as "place: message" and its line left out.
Records read_records(const std::filesystem::path& directory, std::vector<std::string>& problems);

/// cells/<id>/<name>.npy.
std::filesystem::path array_file(const std::filesystem::path& directory, const std::string& cell,
                                 const std::string& name);
/// The bytes of that file.
std::string array_bytes(const SavedArray& array);

/// What is wrong with an array's file whose bytes were recorded with that checksum: "missing" or "other bytes
/// than were recorded"; empty where nothing is.
std::string array_problem(const std::filesystem::path& file, const std::string& recorded);

/// What a cell's run leaves in its record, but for the checksums of its arrays.
Record numbers_of(const std::string& cell_id, const CellResult& result, double seconds);

/// Writes a cell's arrays that are missing or damaged anew, from a further run of it, which is to have the
/// numbers of its record; where it has others nothing is written, and the answer says which. Throws
/// EnvironmentError.
std::string restore_arrays(const std::filesystem::path& directory, const Record& recorded,
                           const CellResult& again);

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

// The way out where a cell is recorded twice with other numbers.

/// What was set aside.
struct SetAside {
  int records = 0;
  std::vector<std::filesystem::path> files;  ///< that hold it
};

/// For each cell with records of different numbers keeps the one in `journal`, the only journal whose name
/// begins so, or of "newest" the one that finished last. Lines with other numbers move from their journals to
/// <journal>.aside; a cell that `journal` does not hold keeps all of its records. Whole lines are never lost:
/// they are in the one file before they leave the other. Throws UserError at --keep for a name that no
/// journal, or more than one, begins with, and where a process that lives writes a journal that would change;
/// EnvironmentError when the disk refuses.
SetAside set_others_aside(const std::filesystem::path& directory, const std::string& journal);

}  // namespace moelab
