#pragma once

/// The figure kinds of a scenario, and the data that figures use.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/stats/expression.h"
#include "analysis/stats/result_table.h"
#include "app/scenario/json.h"
#include "app/scenario/schema.h"
#include "plots/painters/gnuplot.h"

namespace moelab {

class References;
struct Scenario;

/// The results of a run, for figures. The referenced objects must outlive this one.
struct FigureSource {
  const Json& plan;  ///< title, source, scenario, claims
  const ResultTable& table;
  std::string footnote;  ///< ends every caption
  /// The path of an array that a cell saved.
  std::function<std::filesystem::path(const std::string& cell, const std::string& name)> array;
};

/// A figure as data, independent of the output format.
using AnyFigure = std::variant<Figure, HeatMap, RatePanels, Embedding>;
Drawing drawing_of(const AnyFigure& figure);

/// A figure kind: one entry of the table.
struct FigureKind {
  std::string name;           ///< the value of "kind"
  std::string help;           ///< one sentence
  std::vector<Field> fields;  ///< in addition to id, title, where and arms, which every kind has
  /// Checks the fields beyond their shapes. Throws UserError below `path`.
  void (*check)(const References& references, const Json& figure, const std::string& path);
  /// Builds the figure for a resolved entry of the plan. Throws UserError at "figures.<id>" if it cannot show
  /// the saved data.
  AnyFigure (*build)(const Json& figure, const FigureSource& source);
  const char* metric = nullptr;  ///< the field with the shown metric; null if there is none
  /// Checks the models and data of a figure of saved arrays, after `check`.
  /// Null if the kind accepts all. Throws UserError below `path`.
  void (*check_cells)(const Scenario& scenario, const std::vector<std::string>& arms, const Json& figure,
                      const std::string& path) = nullptr;
};

/// The table of kinds. To add a kind, add a file and a line in figure_kind.cpp. The first kind is the
/// default.
const std::vector<FigureKind>& figure_kinds();
/// The kind of a figure in a plan. Older plans name no kind and get the default.
const FigureKind& kind_of(const Json& figure);

/// The shape of an entry of "figures".
Shape figure_shape();

// Helpers of several kinds

/// The figure's own title. Without one, the scenario's title if it has only this figure, otherwise `subject`
/// with the figure's `where`.
std::string figure_title(const Json& figure, const FigureSource& source, const std::string& subject);
/// The first sentences of a caption: "Learned and frozen routers. Dikkala et al. 2023, Fig. 3a. ". They are
/// the scenario's title, unless the figure has the same title, and the source.
std::string scenario_sentences(const std::string& title, const FigureSource& source);
/// The scenario's arms that a figure shows. Checks each arm.
std::vector<std::string> checked_arms(const References& references, const Json& figure,
                                      const std::string& path);
/// Checks that every shown arm saves these arrays, and that `where` matches the sweep.
void check_saved_arrays(const References& references, const Json& figure, const std::string& arrays,
                        const std::string& path);

// Display names

/// Display names of arms, swept paths, values and metrics. A name comes from the scenario's "labels", then
/// from analysis/metrics/metric_groups.h, then from the shortest unique ending of a swept path. A label's key
/// is an arm, a swept path, a metric, or "path=value".
class DisplayNames {
 public:
  /// Reads the labels of a plan.
  explicit DisplayNames(const Json& plan);
  std::string arm(const std::string& name) const;
  /// The name of a path, a metric or an expression of them. axis() returns the axis label, and legend() the
  /// legend label.
  std::string axis(const std::string& name) const;
  std::string legend(const std::string& name) const;
  /// The value with its path: "samples = 640".
  std::string value(const std::string& path, const std::string& text) const;
  /// The value without its path: "640".
  std::string bare_value(const std::string& path, const std::string& text) const;

 private:
  /// An expression with axis labels and typographic operators.
  std::string expression(const std::string& text) const;
  std::string or_else(const std::string& name, const std::string& otherwise) const;
  std::map<std::string, std::string> labels_;
};

// Shown and imported arms

/// The prefix of `cell` in rows with imported results. Cell ids never start with it.
inline constexpr std::string_view kImportedCell = "imported-";

bool is_imported(const ResultRow& row);

/// The imported arms of a table, in its order.
std::vector<std::string> imported_arms(const ResultTable& table);

/// The display name of an arm, with "(imported)" for imported arms.
std::string shown_arm(const DisplayNames& names, const ResultTable& table, const std::string& arm);

/// The arms that a figure shows: its "arms", or all arms without that field. Imported arms are always shown.
std::vector<std::string> shown_arms(const Json& figure, const ResultTable& table);
/// The shown arms without imported ones, for figures of saved arrays or with one place per arm.
std::vector<std::string> own_shown_arms(const Json& figure, const ResultTable& table);

// Plotted values

class References;

/// A value for an axis: a metric, a swept path, or an arithmetic expression. Expressions may also use numbers
/// that are equal in all cells.
class PlottedValue {
 public:
  /// Throws InvalidOption if the text is not an expression.
  PlottedValue(std::string text, const ResultTable& table);

  const std::string& text() const { return text_; }
  const std::vector<std::string>& names() const { return expression_.names(); }
  bool is_name() const { return expression_.is_name(); }
  /// Whether the expression uses a metric.
  bool is_measured() const;
  /// The value of a row with these metrics. It is an interval if a metric is right-censored (observation.h).
  std::optional<Interval> of(const ResultRow& row, const MetricValues& metrics) const;
  /// Whether the value is positive by definition. Its logarithms are then averaged.
  bool is_positive() const { return is_positive_; }
  /// Whether a metric may be right-censored. Medians are then shown.
  bool may_be_censored() const { return may_be_censored_; }

 private:
  std::string text_;
  Expression expression_;
  std::map<std::string, double> fixed_;
  bool is_positive_ = false, may_be_censored_ = false;
};

/// Whether a text for an axis names a metric. Throws UserError at `path` for a wrong expression.
bool names_metric(const std::string& text, const std::string& path);

/// Checks an expression for an axis. The arm must measure its metrics; other names must be swept numbers or
/// numbers that are equal in all cells. Throws UserError at `path`.
void check_plotted_value(const References& references, const std::string& arm, const std::string& text,
                         const std::string& path);

/// Checks for a swept path, an expression of numeric paths, or `other` unless it is empty. Throws UserError
/// at `path`.
void check_plotted_path(const References& references, const std::string& text, const std::string& other,
                        const std::string& path);

}  // namespace moelab
