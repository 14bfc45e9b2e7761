#pragma once

/// Which arms a figure shows, and how those that were imported are told.

#include <string>
#include <string_view>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/figures/display_names.h"

namespace moelab {

/// How the `cell` of a row begins whose numbers were made elsewhere; no cell's id does.
inline constexpr std::string_view kImportedCell = "imported-";

bool is_imported(const ResultRow& row);

/// The imported arms of a table, in its order.
std::vector<std::string> imported_arms(const ResultTable& table);

/// The arm's name for people: with "(imported)" where it is.
std::string shown_arm(const DisplayNames& names, const ResultTable& table, const std::string& arm);

/// The arms that a figure shows: its "arms", or else all, and in any case those imported.
std::vector<std::string> shown_arms(const Json& figure, const ResultTable& table);
/// The same without those imported: of a figure of saved arrays, or with a place for each arm.
std::vector<std::string> own_shown_arms(const Json& figure, const ResultTable& table);

}  // namespace moelab
