#pragma once

/// Documents that the program makes from its own tables: references of scenarios, commands and theorem
/// checks.

#include <string>
#include <vector>

#include "analysis/metrics/metric_groups.h"
#include "analysis/theory/check.h"
#include "app/scenario/json.h"
#include "app/scenario/schema.h"

namespace moelab {

/// The reference of scenario files as Markdown. Each object and each axis of kinds has a section, with the
/// value, default and meaning of every field.
std::string scenario_reference();

/// The JSON Schema of scenario files, as text.
std::string scenario_schema();

/// The catalogue of theorem checks as Markdown: the source, statement, hypotheses and expected verdict of
/// each. The hypotheses come from `findings`, one for each check. The catalogue leaves measured numbers out.
std::string theorem_catalogue(const std::vector<const Check*>& checks,
                              const std::vector<CheckFinding>& findings);

/// The reference of the command line as Markdown: every verb of the table with its options.
std::string command_reference();

// Short texts: the values of a field, and the needs of a metric.

/// "whole number ≥ 1", "number in [0, 1]", "soft | top1 | topk", "list of number > 0", …
std::string shape_text(const Shape& shape);

/// "required", "optional" or "default 1.5".
std::string default_text(const Field& field);

/// The needs that some runs do not meet: "a model with a router; two experts or more". Empty without such
/// needs.
std::string needs_text(const std::vector<const Need*>& all);

/// The same for the needs that all metrics of a group share.
std::string needs_of_group_text(const std::string& group);

/// The answer of `moelab list --json`: {axis: {"path", "kinds": [{"name", "help", "fields", …}]}}. It holds
/// all axes for an empty name, otherwise the axis, kind or metric of this name. Throws UserError for an
/// unknown name.
Json list_json(const std::string& name);

}  // namespace moelab
