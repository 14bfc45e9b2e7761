#pragma once

/// The results of a run directory, as recorded so far.

#include <filesystem>
#include <map>
#include <string>

#include "analysis/stats/result_table.h"
#include "app/json/json.h"
#include "app/run/record.h"

namespace moelab {

/// What `plan.json` and the journals of a run directory say.
struct RunResults {
  Json
      plan;  ///< {"name", "title", "source", "profile", "scenario", "claims", "figures", …} without the cells
  std::map<std::string, int> builds;  ///< programs that recorded the planned cells (build_name), with counts
  double seconds = 0;                 ///< of the recorded cells of the plan; 0 where their times are left out
  ResultTable table;                  ///< every planned cell, `missing` where no journal holds it
};

/// Throws UserError when `directory` holds no plan. What lies behind `part` of the records is left out.
RunResults load_results(const std::filesystem::path& directory, RecordPart part = RecordPart::all);

/// "Cells come from 2 builds of moelab: 0.1.0 (…) 12, …", which may differ in numbers; empty for one build.
std::string builds_text(const RunResults& results);

/// For a figure's caption: " Cells come from 2 builds of moelab.", or nothing.
std::string builds_footnote(const RunResults& results);

/// builds_text as a line on stderr.
void warn_of_builds(const RunResults& results);

}  // namespace moelab
