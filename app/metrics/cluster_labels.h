#pragma once

/// How routing metrics cut rows into clusters.

#include <string>
#include <vector>

#include "sim/data/layout.h"

namespace moelab {

/// Labels of rows that make clusters, one or several to a row: a row counts in the cluster of each.
struct ClusterLabels {
  std::string suffix;                    ///< of the metrics' names
  std::vector<std::vector<int>> labels;  ///< each (rows)
};

/// A row with one label (of a token: its component) is in that label's cluster. A sample made of several
/// parts is in the cluster of its set of parts; with `_per_atom` in the clusters of each of its parts,
/// whatever the others are; with `_overall` in the one cluster of all.
std::vector<ClusterLabels> cluster_labels(const Layout& layout, const std::vector<int>& labels);

}  // namespace moelab
