#pragma once

/// The kinds of figures that a scenario can ask for, and what they are made from.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/json/schema.h"
#include "plots/drawing.h"

namespace moelab {

class References;
struct Scenario;

/// What a run has to show. The references outlive the object.
struct FigureSource {
  const Json& plan;  ///< title, source, scenario, claims
  const ResultTable& table;
  std::string footnote;  ///< ends every caption
  /// The file of an array that a cell saved.
  std::function<std::filesystem::path(const std::string& cell, const std::string& name)> array;
};

/// An entry of the table.
struct FigureKind {
  std::string name;           ///< in "kind"
  std::string help;           ///< one sentence
  std::vector<Field> fields;  ///< besides id, title, where and arms, which all have
  /// What the fields have to satisfy beyond their shapes. Throws UserError below `path`.
  void (*check)(const References& references, const Json& figure, const std::string& path);
  /// One resolved figure of the plan, drawn: its data, the gnuplot script and what the report shows. Throws
  /// UserError at "figures.<id>" where what the run saved cannot be shown so.
  Drawing (*draw)(const Json& figure, const FigureSource& source);
  const char* metric = nullptr;  ///< the field that names what is shown; null where it is no metric
  /// What models and data have to be, of which a checked figure shows saved arrays; null where all will do.
  /// Throws UserError below `path`.
  void (*check_cells)(const Scenario& scenario, const std::vector<std::string>& arms, const Json& figure,
                      const std::string& path) = nullptr;
};

/// The table: adding a kind is a new file and a line in figure_kinds.cpp. The first is the default.
const std::vector<FigureKind>& figure_kinds();
/// The kind of a figure of a plan; plans from before there were kinds name none.
const FigureKind& kind_of(const Json& figure);

/// The shape of an entry of "figures".
Shape figure_shape();

// What several kinds have in common.

/// The title of the figure, or else of the scenario where this is its only figure, or else `subject`, what
/// the figure shows, with its `where`.
std::string figure_title(const Json& figure, const FigureSource& source, const std::string& subject);
/// How captions begin: "Learned and frozen routers. Dikkala et al. 2023, Fig. 3a. ", the scenario's title
/// unless it is the figure's, and its source.
std::string scenario_sentences(const std::string& title, const FigureSource& source);
/// The scenario's arms that a figure shows, each checked.
std::vector<std::string> checked_arms(const References& references, const Json& figure,
                                      const std::string& path);
/// Every shown arm saves these arrays, and `where` is a place of the sweep.
void check_saved_arrays(const References& references, const Json& figure, const std::string& arrays,
                        const std::string& path);

}  // namespace moelab
