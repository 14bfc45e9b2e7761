#pragma once

/// Documents made from the program's own tables, so that they say what it does.

#include <string>
#include <vector>

#include "analysis/theory/check.h"

namespace moelab {

/// The reference of scenario files as Markdown: every field of the scenario's shape with its value, default
/// and meaning, a section for each object and each axis of kinds.
std::string scenario_reference();

/// The JSON Schema of scenario files, as text.
std::string scenario_schema();

/// The catalogue of theorem checks as Markdown: source, statement, hypotheses and expected verdict of each.
/// The hypotheses are those of the findings, one for each check; numbers that were found are left out.
std::string theorem_catalogue(const std::vector<const Check*>& checks,
                              const std::vector<CheckFinding>& findings);

}  // namespace moelab
