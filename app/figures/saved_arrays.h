#pragma once

/// What figures of single cells draw: the arrays that a cell saved.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "analysis/metrics/metric_groups.h"
#include "app/figures/figure_kind.h"
#include "app/scenario/scenario.h"
#include "sim/base/arrays.h"

namespace moelab {

/// The arm's first seed that is done, at the last sweep point of `where`; null where there is none.
const ResultRow* shown_row(const ResultTable& table, const std::string& arm, const Json& where);

/// " Shown: samples = 640.", of the shown rows, or where they differ each arm's; nothing where `where` leaves
/// one sweep point alone, or no row is shown.
std::string shown_points_text(const ResultTable& table, const std::vector<const ResultRow*>& shown,
                              const Json& where, const DisplayNames& names);

/// The rows of an array (n, …, width), tokens flattened.
Matrix read_rows(const std::filesystem::path& file);
/// The entries of an array of labels.
std::vector<int> read_cluster_labels(const std::filesystem::path& file);

/// Of `count` recorded steps those that a page shows: 24 at most, evenly, the last included.
std::vector<std::size_t> shown_steps(std::size_t count);

/// E[row | cluster] for clusters in the order in which they are first seen.
Matrix cluster_means(const Matrix& rows, const std::vector<int>& labels);

// What the cells save that a figure of arrays shows, as much as is known of it before anything is trained.

/// Calls `check` with each of these arms and, for each different model on different data that it has at the
/// sweep points of the figure's "where", the test set of which arrays are saved: that of the last phase.
void check_saved_cells(const Scenario& scenario, const std::vector<std::string>& arms, const Json& figure,
                       const std::function<void(const std::string& arm, const MetricSubject&)>& check);

}  // namespace moelab
