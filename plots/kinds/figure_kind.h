#pragma once

/// The figure kinds of a scenario, and the data that figures use.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/stats/claims.h"
#include "analysis/stats/crossing.h"
#include "analysis/stats/expression.h"
#include "analysis/stats/result_table.h"
#include "plots/painters/gnuplot.h"
#include "sim/base/options.h"

namespace moelab {

class MetricSubject;

// Options

/// The fields of every kind.
struct FigureCommon {
  std::string id;  ///< names the files
  std::optional<std::string> title;
  SweepPoint where;
  std::vector<std::string> arms;  ///< empty: all
  std::optional<FigureStyle> style;
  void bind(Fields& fields);
};

/// Labels of the axes that replace the default ones.
struct AxisLabels {
  std::optional<std::string> x_label, y_label;
  void bind(Fields& fields);
};

enum class Scale { linear, log };

// Results

/// The part of a run's plan that figures show.
struct FigureRun {
  std::string title, source;
  std::size_t untitled = 0;  ///< number of the scenario's figures that take an automatic title
  std::map<std::string, std::string> labels;  ///< display names
  std::vector<std::string> swept_paths;
  std::vector<std::string> shown_paths;  ///< of paths that vary together only the first
  std::vector<Claim> claims;
  std::optional<CrossingRule> crossing;
  std::optional<int> fixed_seeds;  ///< seeds of every arm and point in a sequential run
};

/// The results of a run, for figures. The table must outlive this object.
struct FigureSource {
  FigureRun run;
  const ResultTable& table;
  std::string footnote;  ///< ends every caption
  /// The path of an array that a cell saved. In a stack of layers, it is the array of `layer`.
  std::function<std::filesystem::path(const std::string& cell, const std::string& name, int layer)> array;
};

/// A figure as data, independent of the output format.
using AnyFigure = std::variant<Figure, HeatMap, RatePanels, Embedding, Forest>;
Drawing drawing_of(const AnyFigure& figure);

// Checks

/// Checks references to arms, metrics and sweep points of a scenario. Each check throws UserError at `path`.
class FigureReferences {
 public:
  virtual ~FigureReferences() = default;

  /// A table without results: the arms and one row per sweep point.
  virtual const ResultTable& table() const = 0;
  virtual const std::vector<Claim>& claims() const = 0;

  virtual void check_arm(const std::string& arm, const std::string& path) const = 0;
  /// Checks for a swept path; `other` is accepted too unless it is empty.
  virtual void check_swept(const std::string& name, const std::string& other,
                           const std::string& path) const = 0;
  /// Checks that the arm measures the metric.
  virtual void check_metric(const std::string& arm, const std::string& metric,
                            const std::string& path) const = 0;
  /// Checks for a numeric swept path, or a path with one number in all cells.
  virtual void check_number(const std::string& name, const std::string& path) const = 0;
  /// Checks a name in an expression: a metric that the arm measures, or a path that check_number() accepts.
  virtual void check_part(const std::string& arm, const std::string& name, const std::string& path) const = 0;
  /// Checks that the metric has a value at the step. The start has no previous step to compare with. Some
  /// metrics exist only at the end.
  virtual void check_metric_at(const std::string& metric, const ClaimStep& step,
                               const std::string& path) const = 0;
  /// Checks that every cell of the arm saves these arrays ("routing" or "weights") and has routing.
  virtual void check_saved(const std::string& arm, const std::string& arrays,
                           const std::string& path) const = 0;
  /// Calls `check` with each arm and the test set whose arrays it saves, the one of the last phase. Each
  /// distinct pair of model and data at the sweep points of `where` is checked once.
  virtual void check_saved_cells(
      const std::vector<std::string>& arms, const SweepPoint& where,
      const std::function<void(const std::string& arm, const MetricSubject&)>& check) const = 0;
  /// The distinct column counts of the test inputs that the arm's cells at `where` save. Draws small
  /// problems.
  virtual std::set<int> saved_input_widths(const std::string& arm, const SweepPoint& where) const = 0;
  /// The sweep points that match `where`. `path` is the path of the claim or figure. The keys must be swept
  /// paths, and at least one point must match.
  virtual std::vector<const SweepPoint*> check_where(const SweepPoint& where,
                                                     const std::string& path) const = 0;
  /// Checks the sizes n along a path: numbers above 1, with at least three in `window` (all if it is empty).
  /// Each coordinate on `axes` must belong to one sweep point of `where`. `path` is the path of the claim or
  /// figure.
  virtual void check_sizes(const SweepPoint& where, const std::vector<double>& window,
                           const std::string& along, const std::vector<std::string>& axes,
                           const std::string& path, const std::string& along_path) const = 0;
};

// Kinds

/// A figure kind: one entry of the table. figure_kind() makes it from functions of the kind's own options.
struct FigureKind : KindEntry {
  /// Checks the options beyond their shapes. Throws UserError below `path`.
  std::function<void(const FigureReferences&, const AnyOptions&, const std::string& path)> check;
  /// Builds the figure. Throws UserError at "figures.<id>" if it cannot show the saved data.
  std::function<AnyFigure(const AnyOptions&, const FigureSource&)> build;
  std::function<const FigureCommon&(const AnyOptions&)> common;
  /// The shown metrics or expressions; empty for kinds that show none.
  std::function<std::vector<std::string>(const AnyOptions&)> metrics;
};

/// An entry of the table. `Options` derives from FigureCommon. If a kind shows metrics, `Options` has
/// `std::vector<std::string> metrics() const`.
template <class Options, class Built>
FigureKind figure_kind(const std::string& name, const std::string& help,
                       void (*check)(const FigureReferences&, const Options&, const std::string& path),
                       Built (*build)(const Options&, const FigureSource&)) {
  return {{name, help, Options(), Options()},
          [check](const FigureReferences& references, const AnyOptions& options, const std::string& path) {
            check(references, options.get<Options>(), path);
          },
          [build](const AnyOptions& options, const FigureSource& source) -> AnyFigure {
            return build(options.get<Options>(), source);
          },
          [](const AnyOptions& options) -> const FigureCommon& { return options.get<Options>(); },
          [](const AnyOptions& options) {
            if constexpr (requires(const Options& own) { own.metrics(); }) {
              return options.get<Options>().metrics();
            } else {
              return std::vector<std::string>();
            }
          }};
}

/// The axis "kind" of figures. To add a kind, add a file and a line in figure_kind.cpp.
struct FigureAxis {
  using Entry = FigureKind;
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "figure kind";
  static constexpr bool kFirstIsDefault = true;
  static const std::vector<FigureKind>& table();
};
/// An entry of "figures".
using FigureOptions = OneOf<FigureAxis>;

const FigureCommon& common_of(const FigureOptions& figure);
/// Whether figure_title() makes the title: the figure has none of its own, and shows no claim.
bool takes_automatic_title(const FigureOptions& figure);
/// `style` goes before the figure's own.
AnyFigure build_figure(const FigureOptions& figure, const FigureSource& source,
                       const FigureStyle& style = {});
/// The metrics or expressions that a figure shows.
std::vector<std::string> metrics_of(const FigureOptions& figure);
/// The figure of kind "claim" for a claim, with the claim's id.
FigureOptions claim_figure(const std::string& claim);
/// The forest plot of all claims; none without claims.
std::optional<Forest> claims_forest(const FigureSource& source, const std::string& id);

// Helpers of several kinds

/// "y over x" as the subject of a title. Training steps are "training".
std::string over_text(const std::string& y_label, const std::string& x_label);

/// The figure's own title. Without one, the scenario's title if no other figure needs it, otherwise `subject`
/// with the figure's `where`: "Test loss over training (samples = 20480)".
std::string figure_title(const FigureCommon& figure, const FigureSource& source, const std::string& subject);
/// The first sentences of a caption: "Learned and frozen routers. Dikkala et al. 2023, Fig. 3a. ". They are
/// the scenario's title, unless the figure has the same title, and the source.
std::string scenario_sentences(const std::string& title, const FigureSource& source);
/// The scenario's arms that a figure shows. Checks each arm.
std::vector<std::string> checked_arms(const FigureReferences& references, const FigureCommon& figure,
                                      const std::string& path);
/// Checks that every shown arm saves these arrays, and that `where` matches the sweep.
void check_saved_arrays(const FigureReferences& references, const FigureCommon& figure,
                        const std::string& arrays, const std::string& path);

// Display names

/// Display names of arms, swept paths, values and metrics. A name comes from the scenario's "labels", then
/// from analysis/metrics/metric_groups.h, then from the shortest unique ending of a swept path. A label's key
/// is an arm, a swept path, a metric, or "path=value".
class DisplayNames {
 public:
  explicit DisplayNames(const FigureRun& run);
  std::string arm(const std::string& name) const;
  /// The name of a path, a metric or an expression of them. axis() returns the axis label, and legend() the
  /// legend label.
  std::string axis(const std::string& name) const;
  std::string legend(const std::string& name) const;
  /// The value with its path: "samples = 640".
  std::string value(const std::string& path, const SweepValue& value) const;
  /// The value without its path: "640".
  std::string bare_value(const std::string& path, const SweepValue& value) const;
  /// All values of a point: "samples = 640, experts = 8".
  std::string point(const SweepPoint& point) const;

 private:
  /// An expression with axis labels and typographic operators.
  std::string expression(const std::string& text) const;
  std::string or_else(const std::string& name, const std::string& otherwise) const;
  std::map<std::string, std::string> labels_;
};

/// The place of a claim's point with its paths: "samples = 320 against samples = 5120".
std::string shown_point(const ClaimPoint& point, const DisplayNames& names);

/// The judged statement with display names. Equals `result.statement` if nothing has a label.
std::string shown_statement(const Claim& claim, const ClaimResult& result, const DisplayNames& names);

// Shown and imported arms

/// The prefix of `cell` in rows with imported results. Cell ids never start with it.
inline constexpr std::string_view kImportedCell = "imported-";

bool is_imported(const ResultRow& row);

/// The imported arms of a table, in its order.
std::vector<std::string> imported_arms(const ResultTable& table);

/// The display name of an arm, with "(imported)" for imported arms.
std::string shown_arm(const DisplayNames& names, const ResultTable& table, const std::string& arm);

/// The arms that a figure shows: these arms, or all if there are none. Imported arms are always shown.
std::vector<std::string> shown_arms(const std::vector<std::string>& arms, const ResultTable& table);
/// The shown arms without imported ones, for figures of saved arrays or with one place per arm.
std::vector<std::string> own_shown_arms(const std::vector<std::string>& arms, const ResultTable& table);

// Plotted values

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
  /// The value of a row with these metrics. It is an interval if a metric is right-censored (see observed()).
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
void check_plotted_value(const FigureReferences& references, const std::string& arm, const std::string& text,
                         const std::string& path);

/// Checks for a swept path, an expression of numeric paths, or `other` unless it is empty. Throws UserError
/// at `path`.
void check_plotted_path(const FigureReferences& references, const std::string& text, const std::string& other,
                        const std::string& path);

}  // namespace moelab
