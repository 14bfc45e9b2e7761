#pragma once

/// Swept values between JSON and the tables of results.

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

/// From {"path": value, …}.
SweepPoint read_point(const Json& object);
/// From the point of a scenario's cell.
SweepPoint read_point(const std::vector<std::pair<std::string, Json>>& coordinates);
/// {"path": value, …}.
Json point_json(const SweepPoint& point);
Json point_json(const std::vector<std::pair<std::string, Json>>& coordinates);

}  // namespace moelab
