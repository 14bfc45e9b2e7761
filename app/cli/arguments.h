#pragma once

/// What the verbs take from the command line.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "app/run/results.h"
#include "app/store/run_folder.h"

namespace moelab {

struct Arguments {
  std::filesystem::path file;         ///< a scenario
  std::string name;                   ///< of `new`: the scenario's
  std::filesystem::path directory;    ///< a run directory
  std::string plan;                   ///< of a run directory: the beginning of an id, empty for the last run
  std::string profile;                ///< empty for the full run
  std::vector<std::string> settings;  ///< "path=value"
  std::filesystem::path out;          ///< empty for the verb's default
  int threads = 0;                    ///< 0: one per processor
  bool json = false;
  bool trace = false;
  bool markdown = false;       ///< of `claims`: tables of rates
  std::string axis;            ///< of `list`
  std::string cell;            ///< of `reproduce`
  std::string share;           ///< of `run`: "I/N", empty for all cells
  bool leases = false;         ///< of `run`, `tune`: take cells by leases
  std::string added_seeds;     ///< of `run`, `plan`, `slurm`: "FIRST..LAST", empty for none
  std::string retry;           ///< of `run`: "failed", or empty
  bool fail_fast = false;      ///< of `run`
  bool until_decided = false;  ///< of `run`, `slurm`: add seeds while claims are open
  int max_seeds = 0;           ///< of `run`, `slurm`: see most_seeds(); 0 where it is not given
  double hours = 0;            ///< of `run`, `slurm`: after which no seeds are added; 0 for no limit
  std::string arms;            ///< of `tune`, `slurm`: names with commas between, empty for all
  int budget = 0;              ///< of `tune`, `slurm`: cells an arm; 0 for the default
  bool maximize = false;       ///< of `tune`, `slurm`: the greatest metric is the best
  bool tune = false;           ///< of `slurm`: tasks of `tune`
  bool force = false;          ///< of `run`
  std::string keep;            ///< of `verify`: the beginning of a journal's name, "newest", or empty
  std::vector<std::filesystem::path> directories;  ///< of `compare` and `report`
  std::filesystem::path checks;                    ///< of `report`: an answer of check --json
  bool follow = false;                             ///< of `report`: until the run is complete
  std::filesystem::path ledger;                    ///< of `report`: Markdown instead of HTML
  std::string metric;                              ///< of `compare`, `tune`, `slurm`: empty for the main one
  double minutes_per_task = 30;                    ///< of `slurm`
  double minutes_per_cell = 0;                     ///< of `slurm`: 0 where recorded cells tell
  bool submit = false;                             ///< of `slurm`
  std::vector<std::string> ids;                    ///< of `check`: ids or their beginnings; empty for all
  bool listing = false;                            ///< of `check`: list instead of running
  int seeds = 1;                                   ///< of `check`: multiplies the repetitions
  std::vector<std::string> all;                    ///< the command line as given
};

/// The plan of the run directory that is asked about.
RunAddress run_address(const Arguments& arguments);

/// The number of threads asked for, or that of the processors.
int thread_count(const Arguments& arguments);

/// Throws UserError at `option`, which named `file`, where it cannot be written (check_output_file), or where
/// a run directory keeps its store: plans, journals, sessions and saved arrays are no place for an answer.
void check_written_file(const std::filesystem::path& file, const std::string& option);

/// Throws UserError at --metric where the runs have recorded cells, but neither their plans nor a cell of
/// them has that metric.
void check_measured(const std::string& metric, std::span<const RunResults> runs);

/// Why the text of an option is refused that needs `what` ("minutes"), a number above 0 and at most
/// `maximum`; empty where it is not.
std::string number_problem(const std::string& text, const std::string& what, double maximum);

}  // namespace moelab
