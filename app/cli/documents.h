#pragma once

/// Documents made from the program's own tables, so that they say what it does.

#include <string>
#include <vector>

#include "analysis/metrics/metric_groups.h"
#include "analysis/theory/check.h"
#include "app/scenario/json.h"
#include "app/scenario/schema.h"

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

// What a field may be, and what a metric needs, in a few words.

/// "whole number ≥ 1", "number in [0, 1]", "soft | top1 | topk", "list of number > 0", …
std::string shape_text(const Shape& shape);

/// "required", "optional" or "default 1.5".
std::string default_text(const Field& field);

/// The needs that not every run meets, "a model with a router; two experts or more"; empty where there are
/// none.
std::string needs_text(const std::vector<const Need*>& all);

/// The same for what all metrics of a group need.
std::string needs_of_group_text(const std::string& group);

/// The answer of `moelab list --json`: {axis: {"path", "kinds": [{"name", "help", "fields", …}]}} of all
/// axes, or of the one that is named. Throws UserError for a name that is none.
Json list_json(const std::string& axis);

}  // namespace moelab
