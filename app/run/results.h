#pragma once

/// The results of a run directory, as recorded so far.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/json/json.h"
#include "app/run/record.h"
#include "app/run/run_folder.h"

namespace moelab {

/// What a plan and the journals of a run directory say.
struct RunResults {
  Json plan;  ///< {"id", "name", "title", "source", "profile", "scenario", "claims", …} without the cells
  std::map<std::string, int> builds;  ///< programs that recorded the planned cells (build_name), with counts
  double seconds = 0;                 ///< of the recorded cells of the plan; 0 where their times are left out
  double told_seconds = 0;            ///< of those cells whose records tell what they were spent on
  TimeSpent spent = {};               ///< of these
  ResultTable table;                  ///< every planned cell, `missing` where no journal holds it
  std::filesystem::path outputs = {};   ///< where claims and figures go, below the run directory
  std::vector<std::string> notes = {};  ///< on the plan that was read
  /// The arrays that the planned cells saved, by cell and name, with the checksum of their bytes.
  std::map<std::string, std::map<std::string, std::string>> arrays = {};
};

/// The plan that is asked for. Throws UserError when there is none. What lies behind `part` of the records is
/// left out.
RunResults load_results(const RunAddress& address, RecordPart part = RecordPart::all);
/// The results of a scenario whose plan has that id in the directory.
RunResults load_results(const std::filesystem::path& directory, const Scenario& scenario,
                        const std::string& id);

/// "Cells come from 2 builds of moelab: 0.1.0 (…) 12, …", which may differ in numbers; empty for one build.
std::string builds_text(const RunResults& results);

/// For a figure's caption: " Cells come from 2 builds of moelab.", or nothing.
std::string builds_footnote(const RunResults& results);

/// The notes and builds_text, a line each on stderr.
void print_notes(const RunResults& results);

}  // namespace moelab
