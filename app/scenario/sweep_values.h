#pragma once

/// Swept values between JSON and the tables of results.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/stats/sweep_value.h"
#include "app/json/json.h"

namespace moelab {

SweepValue read_sweep_value(const Json& value);
Json to_json(const SweepValue& value);

/// A swept value as a scenario writes it, names without their quotes.
std::string value_text(const SweepValue& value);

/// What a person wrote for a swept value: JSON, else a number as C++ reads it (.5, +0.5, 1.), else a text.
Json read_written_value(const std::string& text);
/// The same of a value that was read as JSON or else a text, as --at does.
Json read_written_value(const Json& value);

/// A finite number as C++ reads it, with a sign + as well; none of any other text.
std::optional<double> read_written_number(const std::string& text);

/// From {"path": value, …}.
SweepPoint read_point(const Json& object);
/// From the point of a scenario's cell.
SweepPoint read_point(const std::vector<std::pair<std::string, Json>>& coordinates);
/// {"path": value, …}.
Json point_json(const SweepPoint& point);
Json point_json(const std::vector<std::pair<std::string, Json>>& coordinates);

}  // namespace moelab
