#pragma once

/// `moelab check`: theorem checks, run in parallel, and their answer.

#include "analysis/theory/check.h"
#include "app/cli/arguments.h"
#include "app/scenario/json.h"
#include "plots/rate_panels.h"

namespace moelab {

/// The checks of `table` that are named: an id names itself, and its beginning up to a dot ("dikkala2023",
/// "dikkala2023.theorem4") all that follow it. In the order of the table, each once; all without names.
/// Throws UserError for a name that fits none.
std::vector<const Check*> chosen_checks(const std::vector<Check>& table,
                                        const std::vector<std::string>& names);

/// One finding per check, in order and the same whatever the number of threads. Throws what the first of the
/// checks that threw has thrown.
std::vector<CheckFinding> run_checks(const std::vector<const Check*>& chosen, const CheckEffort& effort,
                                     int threads);

/// An entry of the answer of `moelab check --json`; a number that is not finite becomes null.
Json finding_json(const Check& check, const CheckFinding& finding);
/// An entry of the answer of `moelab check --list --json`.
Json check_json(const Check& check);

/// The command over a table of checks: prints the answer and returns the exit status, 1 when a verdict
/// differs from the expected one.
int answer_checks(const std::vector<Check>& table, const Arguments& arguments);

// The curves behind checks of slopes, as figures.

/// A figure for checks whose ids begin and end alike ("identifiability.….flatness"), in the order of the
/// checks: a row for each second part of an id, a column for what stands between it and the last. Checks
/// without a curve are in none.
std::vector<RatePanels> check_figures(const std::vector<const Check*>& chosen,
                                      const std::vector<CheckFinding>& findings);

}  // namespace moelab
