#pragma once

/// What the report's page draws by itself, from data that stand in it.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace moelab {

/// Data for one of the drawers of the page's script, which data["draw"] names: "lines", "heatMap" or "plane".
std::string page_data(const nlohmann::ordered_json& data);

/// Null for an absent number.
nlohmann::ordered_json number_json(const std::optional<double>& value);

}  // namespace moelab
