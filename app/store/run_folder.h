#pragma once

/// The plans of a run directory, and which of them is asked for.
///
/// plans/<id>/plan.json is every plan that was run there; plan.json is a copy of the one that was run last,
/// whose claims, figures and report stand beside it; those of another stand in plans/<id>.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/store/plan.h"

namespace moelab {

/// Which plan of which run directory a verb is asked about.
class RunAddress {
 public:
  /// `given` is a folder, or FOLDER@ID where there is nothing of that name. ID and `plan` are beginnings of
  /// ids, and empty for the plan last run. Throws UserError where both are given and neither begins the
  /// other. Implicit: a folder is an address.
  RunAddress(std::filesystem::path given, std::string plan = "");
  const std::filesystem::path& directory() const { return directory_; }
  const std::string& plan() const { return plan_; }

 private:
  std::filesystem::path directory_;
  std::string plan_;
};

/// Throws UserError when `directory` cannot take the scenario's results: it is a file, holds something else,
/// or belongs to a scenario of another name. Writes nothing.
void check_run_directory(const std::filesystem::path& directory, const std::string& scenario_name);

/// The ids of the plans in a directory, by name.
std::vector<std::string> plan_ids(const std::filesystem::path& directory);

/// The id of the plan last run, as plan.json begins; empty where it does not say.
std::string shown_plan(const std::filesystem::path& directory);

struct FoundPlan {
  Plan plan;
  std::filesystem::path outputs;  ///< where its claims and figures go, below the directory; empty for its top
  std::vector<std::string> notes;  ///< which plan this is where there are several, and what was read instead
};

/// A line each on stderr.
void print_notes(const std::vector<std::string>& notes);

/// The plan that is asked for. One whose file is lost or damaged is read from its copy, or else made anew
/// from the scenario in the directory's sessions. Throws UserError when there is none, when it is damaged
/// beyond that, and for an id that no plan, or more than one, begins with.
FoundPlan find_plan(const RunAddress& address);

/// The directory's plan of that id, whole; nothing where it has none.
std::optional<Plan> plan_with_id(const std::filesystem::path& directory, const std::string& id);

/// The id that the scenario's plan has in a directory: where its plan has more seeds there, the one of its
/// own seeds. A fixed and a decided plan are never two.
std::string plan_id_in(const std::filesystem::path& directory, const Scenario& scenario);

/// Where claims and figures of a plan go, below the directory: empty for the plan last run.
std::filesystem::path outputs_of(const std::filesystem::path& directory, const std::string& id);

struct KeptPlan {
  std::string id;
  std::string before;  ///< the id of the plan last run before this one
};

/// Writes the scenario's plan as the one last run, beside those that are there: what the folder showed of
/// another plan moves to plans/<id>. One process at a time does so. Throws UserError where the directory has
/// become that of a scenario of another name, EnvironmentError when the disk refuses. Without `shows` the
/// plan is only kept, where the folder shows another. A plan that says more already stays: one whose search
/// or whose looks went further, and a decided one where the scenario's is fixed.
KeptPlan keep_plan(const std::filesystem::path& directory, const Scenario& scenario, bool shows = true);

}  // namespace moelab
