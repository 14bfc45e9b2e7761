#pragma once

/// `moelab check`: theorem checks, run in parallel, and their answer.

#include "analysis/theory/check.h"
#include "app/cli/verbs.h"
#include "app/scenario/json.h"
#include "plots/rate_panels.h"

namespace moelab {

/// The checks of `table` that `names` choose, in the order of the table, each once. A name is an id, or the
/// beginning of ids up to a dot ("dikkala2023", "dikkala2023.theorem4"). Without names it returns all checks.
/// Throws UserError for a name that chooses none.
std::vector<const Check*> chosen_checks(const std::vector<Check>& table,
                                        const std::vector<std::string>& names);

/// One finding for each check, in their order. The findings do not depend on the number of threads. Rethrows
/// the exception of the first check that threw.
std::vector<CheckFinding> run_checks(const std::vector<const Check*>& chosen, const CheckEffort& effort,
                                     int threads);

/// An entry of the answer of `moelab check --json`; a number that is not finite becomes null.
Json finding_json(const Check& check, const CheckFinding& finding);
/// An entry of the answer of `moelab check --list --json`.
Json check_json(const Check& check);

struct CheckOptions {
  std::vector<std::string> ids;   ///< ids or their beginnings; empty for all
  bool listing = false;           ///< list the checks and run none
  bool explains = false;          ///< say of each how it is measured and what would refute it
  int seeds = 1;                  ///< multiplies the random repetitions
  std::filesystem::path figures;  ///< folder for the figures; empty for none
  int threads = 0;
  bool json = false;

  void bind(VerbOptions& options);
};

/// The help of --threads for verbs that run checks.
constexpr const char* kCheckThreads = "checks run at a time (default: one per processor)";

/// The verb over a table of checks: prints the answer and returns the exit status, 1 when a verdict differs
/// from the expected one.
int answer_checks(const std::vector<Check>& table, const CheckOptions& options);

/// The measured curves of checks of slopes, as figures. An id is "figure.row.column.figure": ids with the
/// same first and last part ("identifiability.….flatness") share a figure, the second part is the row of
/// panels, and the parts between it and the last are the column. Checks without a curve are left out.
std::vector<RatePanels> check_figures(const std::vector<const Check*>& chosen,
                                      const std::vector<CheckFinding>& findings);

}  // namespace moelab
