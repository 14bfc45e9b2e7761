#pragma once

/// The plans of a run directory, and the choice of one of them.
///
/// Each plan that was run is stored as plans/<id>/plan.json. The top-level plan.json is a copy of the plan
/// that was run last. The claims, figures and report of that plan are also at the top level. The outputs of
/// every other plan are in plans/<id>.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/store/plan.h"

namespace moelab {

/// The run directory and the plan that a command refers to.
class RunAddress {
 public:
  /// Parses an address. `given` is a folder, or FOLDER@ID if no file has this name. ID and `plan` are
  /// prefixes of plan ids; an empty prefix means the plan that was run last. Throws UserError if both are
  /// given and neither is a prefix of the other. The constructor is implicit, because a folder is an address.
  RunAddress(std::filesystem::path given, std::string plan = "");
  const std::filesystem::path& directory() const { return directory_; }
  const std::string& plan() const { return plan_; }

 private:
  std::filesystem::path directory_;
  std::string plan_;
};

/// Throws UserError if `directory` cannot take the scenario's results. Reasons: it is a file, it has other
/// content, or it belongs to a scenario with another name. Writes nothing.
void check_run_directory(const std::filesystem::path& directory, const std::string& scenario_name);

/// The ids of the plans in a directory, sorted by name.
std::vector<std::string> plan_ids(const std::filesystem::path& directory);

/// Reads the id of the plan last run from the beginning of plan.json. Empty if it is not there.
std::string shown_plan(const std::filesystem::path& directory);

struct FoundPlan {
  Plan plan;
  std::filesystem::path outputs;   ///< outputs_of() this plan
  std::vector<std::string> notes;  ///< which of several plans this is, and which file was read instead
};

/// Prints each note as a line on stderr.
void print_notes(const std::vector<std::string>& notes);

/// Finds the plan of an address. If its file is lost or damaged, the plan is read from the copy or rebuilt
/// from the scenario in the directory's sessions. Throws UserError if there is no plan, if the plan cannot be
/// restored, or if the id prefix matches no plan or several.
FoundPlan find_plan(const RunAddress& address);

/// Reads the plan with this complete id. Returns nothing if the directory does not have it.
std::optional<Plan> plan_with_id(const std::filesystem::path& directory, const std::string& id);

/// Returns the id of the scenario's plan in a directory. If the plan there has more seeds than the scenario,
/// the id also covers the number of seeds (plan_id with `of_its_seeds`). A fixed and a decided plan of one
/// scenario share their id.
std::string plan_id_in(const std::filesystem::path& directory, const Scenario& scenario);

/// The folder of a plan's claims and figures, relative to the directory. Empty for the plan that was run
/// last.
std::filesystem::path outputs_of(const std::filesystem::path& directory, const std::string& id);

struct KeptPlan {
  std::string id;
  std::string before;  ///< the id of the plan that was run before this one
};

/// Writes the scenario's plan as the plan last run, and keeps the other plans. The outputs of the previous
/// plan move to plans/<id>. Only one process does this at a time.
///
/// With `shows` = false, the plan is only stored if the folder shows another one. A plan that contains more
/// than the scenario's plan stays. This holds if its search or its looks went further, or if it is decided
/// and the scenario's plan is fixed.
///
/// Throws UserError if the directory now belongs to a scenario with another name. Throws EnvironmentError
/// when the disk refuses.
KeptPlan keep_plan(const std::filesystem::path& directory, const Scenario& scenario, bool shows = true);

}  // namespace moelab
