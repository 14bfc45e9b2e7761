#pragma once

/// The kinds of figures that a scenario can ask for, and what they are made from.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/stats/expression.h"
#include "analysis/stats/result_table.h"
#include "app/scenario/json.h"
#include "app/scenario/schema.h"
#include "plots/figure.h"

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

// How arms, swept paths and values, and metrics are called in figures.

/// The scenario's "labels", before what analysis/metrics/measured_data.h knows, before the last components of
/// a swept path that tell it from the others. A key is an arm, a swept path, a metric, or "path=value".
class DisplayNames {
 public:
  /// Of a plan.
  explicit DisplayNames(const Json& plan);
  std::string arm(const std::string& name) const;
  /// Of a path or a metric, or an expression of them, for an axis and for a legend.
  std::string axis(const std::string& name) const;
  std::string legend(const std::string& name) const;
  /// "samples = 640".
  std::string value(const std::string& path, const std::string& text) const;
  /// The value alone: "640".
  std::string bare_value(const std::string& path, const std::string& text) const;

 private:
  /// With the labels that its parts have at axes and printed operators.
  std::string expression(const std::string& text) const;
  std::string or_else(const std::string& name, const std::string& otherwise) const;
  std::map<std::string, std::string> labels_;
};

// Which arms a figure shows, and how those that were imported are told.

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

// What stands at an axis of a figure: a metric, a swept path, or an arithmetic expression of them and of
// numbers that all cells have.

class References;

class PlottedValue {
 public:
  /// Throws InvalidOption for a text that is no expression.
  PlottedValue(std::string text, const ResultTable& table);

  const std::string& text() const { return text_; }
  const std::vector<std::string>& names() const { return expression_.names(); }
  bool is_name() const { return expression_.is_name(); }
  /// Whether a metric is among the names.
  bool is_measured() const;
  /// The row's value with these of its metrics; an interval where a metric is right-censored (observation.h).
  std::optional<Interval> of(const ResultRow& row, const MetricValues& metrics) const;
  /// Above 0 by definition, so that its logarithms are averaged.
  bool is_positive() const { return is_positive_; }
  /// A metric of it may be right-censored, so that its medians are shown.
  bool may_be_censored() const { return may_be_censored_; }

 private:
  std::string text_;
  Expression expression_;
  std::map<std::string, double> fixed_;
  bool is_positive_ = false, may_be_censored_ = false;
};

/// Whether a text for an axis names a metric. Throws UserError at `path` for a wrong expression.
bool names_metric(const std::string& text, const std::string& path);

/// The arm measures every metric of the expression, and what else it names is a number that is swept or that
/// all cells have. Throws UserError at `path`.
void check_plotted_value(const References& references, const std::string& arm, const std::string& text,
                         const std::string& path);

/// A swept path, `other` unless that is empty, or an expression of paths of numbers.
void check_plotted_path(const References& references, const std::string& text, const std::string& other,
                        const std::string& path);

}  // namespace moelab
