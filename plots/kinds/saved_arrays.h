#pragma once

/// Saved arrays of single cells, for figures.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plots/kinds/figure_kind.h"
#include "sim/data/row_array.h"

namespace moelab {

/// The field of figures that show the routing of one mixture layer.
struct RoutedLayer {
  std::optional<int> layer;  ///< absent: the last one
  void bind(Fields& fields);
};

/// The layer that a figure shows of a cell: the chosen one, or the last one that saved `array`. Unset for a
/// model with a single layer.
std::optional<int> shown_layer(const RoutedLayer& chosen, const FigureSource& source, const std::string& cell,
                               const std::string& array);

/// Caption text " in layer 2" about the layers of the shown rows. Empty if all models have a single layer.
std::string layers_text(const std::vector<std::optional<int>>& layers,
                        const std::vector<const ResultRow*>& shown, const DisplayNames& names);

/// Checks that each shown model has the layer. Throws UserError at `path`.layer.
void check_layer(const RoutedLayer& chosen, const FigureReferences& references, const FigureCommon& figure,
                 const std::string& path);

/// The arm's first finished seed at the last sweep point of `where`; null if there is none.
const ResultRow* shown_row(const ResultTable& table, const std::string& arm, const SweepPoint& where);

/// Caption text " Shown: samples = 640." about the shown rows, listed by arm if they differ. Empty if `where`
/// leaves one sweep point, or if no row is shown.
std::string shown_points_text(const ResultTable& table, const std::vector<const ResultRow*>& shown,
                              const SweepPoint& where, const DisplayNames& names);

/// The routing of a cell's test rows. A token of a sequence is a row. All members have one entry per row.
struct SavedRows {
  RowArray probabilities;  ///< (n · s, E)
  /// (n · s, d); for token ids (n · s, 2): the id and its position in the sequence. Empty if not read.
  RowArray inputs;
  std::vector<int> labels;  ///< empty if rows share labels or have several
  bool has_ids = false;
};
/// Reads the routing of `layer` in a stack. Throws UserError if a file is missing or the shapes do not match.
SavedRows saved_rows(const FigureSource& source, const std::string& cell, int layer, bool with_inputs);

/// All rows of an array (n, …, width).
RowArray read_rows(const std::filesystem::path& file);
/// The entries of an array of labels.
std::vector<int> read_cluster_labels(const std::filesystem::path& file);

/// At most 24 of `count` recorded steps, evenly spaced, including the last.
std::vector<std::size_t> shown_steps(std::size_t count);

/// E[row | cluster], with clusters in order of first occurrence.
Matrix cluster_means(const Matrix& rows, const std::vector<int>& labels);

}  // namespace moelab
