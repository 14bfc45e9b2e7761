#include "plots/kinds/figure_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>
#include <vector>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/result_table.h"
#include "plots/texts.h"
#include "sim/base/error.h"

// To add a figure kind, add a file that defines <name>_kind() and a line here. The first kind is the default.
// clang-format off
#define MOELAB_FIGURE_KINDS(entry) \
  entry(lines_kind)                \
  entry(heat_map_kind)             \
  entry(rate_panels_kind)          \
  entry(embedding_kind)            \
  entry(cluster_map_kind)          \
  entry(load_map_kind)             \
  entry(claim_kind)                \
  entry(crossing_kind)
// clang-format on

namespace moelab {

MOELAB_TABLE(FigureAxis, MOELAB_FIGURE_KINDS)

void FigureCommon::bind(Fields& fields) {
  fields.required().add("id", id, "name of the figure's files: letters, digits, . _ -");
  fields.add("title", title,
             "title (default: the scenario's, or what the figure shows if several figures have no title)");
  fields.optional().add("where", where, "values of other swept paths: {path: value}");
  fields.optional().add_list("arms", arms, 1, "arms to show (default: all)");
  fields.add("style", style, "how the figure is set on its page; plot --style goes before it");
}

void AxisLabels::bind(Fields& fields) {
  fields.add("x_label", x_label, "label of the x axis");
  fields.add("y_label", y_label, "label of the y axis");
}

Drawing drawing_of(const AnyFigure& figure) {
  return std::visit([](const auto& own) { return drawing_of(own); }, figure);
}

const FigureCommon& common_of(const FigureOptions& figure) {
  return figure.entry().common(figure.options());
}

bool takes_automatic_title(const FigureOptions& figure) {
  return !common_of(figure).title && figure.entry().name != "claim";
}

AnyFigure build_figure(const FigureOptions& figure, const FigureSource& source, const FigureStyle& style) {
  AnyFigure built = figure.entry().build(figure.options(), source);
  const FigureStyle own = style.over(common_of(figure).style.value_or(FigureStyle()));
  std::visit([&](auto& shown) { shown.style = own; }, built);
  return built;
}

std::vector<std::string> metrics_of(const FigureOptions& figure) {
  return figure.entry().metrics(figure.options());
}

std::string figure_title(const FigureCommon& figure, const FigureSource& source, const std::string& subject) {
  if (figure.title) return *figure.title;
  if (subject.empty() || source.run.untitled < 2) return source.run.title;
  std::string own = subject;
  own.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(own.front())));
  const DisplayNames names(source.run);
  if (!figure.where.empty()) own += " (" + names.point(figure.where) + ")";
  return own;
}

std::string over_text(const std::string& y_label, const std::string& x_label) {
  // A label that says "over" or has several parts would run on.
  const bool has_parts =
      y_label.find(" over ") != std::string::npos || y_label.find(", ") != std::string::npos;
  return y_label + (has_parts ? ", over " : " over ") +
         (x_label == axis_label("step") ? "training" : x_label);
}

std::string scenario_sentences(const std::string& title, const FigureSource& source) {
  std::string text;
  for (std::string own : {source.run.title, source.run.source}) {
    if (own.empty() || own == title) continue;
    // The source starts a sentence here: "After Dikkala et al."
    if (own[0] >= 'a' && own[0] <= 'z') own[0] = static_cast<char>(own[0] - 'a' + 'A');
    text += own + (own.ends_with('.') || own.ends_with('?') ? " " : ". ");
  }
  return text;
}

std::vector<std::string> checked_arms(const FigureReferences& references, const FigureCommon& figure,
                                      const std::string& path) {
  const std::vector<std::string> arms = own_shown_arms(figure.arms, references.table());
  for (std::size_t i = 0; i < arms.size(); ++i)
    references.check_arm(arms[i], fmt::format("{}.arms[{}]", path, i));
  return arms;
}

void check_saved_arrays(const FigureReferences& references, const FigureCommon& figure,
                        const std::string& arrays, const std::string& path) {
  const std::vector<std::string> arms = checked_arms(references, figure, path);
  for (std::size_t i = 0; i < arms.size(); ++i)
    references.check_saved(arms[i], arrays, figure.arms.empty() ? path : fmt::format("{}.arms[{}]", path, i));
  references.check_where(figure.where, path);
}

namespace {

/// The last components of a path: "router.tau1" of "model.router.tau1" for two. A path ending in ".kind" is
/// named by its parent.
std::string last_components(const std::string& path, std::size_t count) {
  constexpr std::string_view kKind = ".kind";
  const std::string whole = path.ends_with(kKind) ? path.substr(0, path.size() - kKind.size()) : path;
  std::size_t start = whole.size();
  for (; count > 0 && start != std::string::npos && start > 0; --count) start = whole.rfind('.', start - 1);
  return start == std::string::npos || start == 0 ? whole : whole.substr(start + 1);
}

/// The shortest ending of a path that distinguishes it from the other paths.
std::string short_path(const std::string& path, const std::vector<std::string>& paths) {
  const auto components = static_cast<std::size_t>(std::count(path.begin(), path.end(), '.')) + 1;
  for (std::size_t count = 1; count < components; ++count) {
    const std::string shortest = last_components(path, count);
    if (std::none_of(paths.begin(), paths.end(), [&](const std::string& other) {
          return other != path && last_components(other, count) == shortest;
        }))
      return shortest;
  }
  return path;
}

/// A label for use in an expression. A label that contains an operator gets parentheses.
std::string as_operand(const std::string& label) {
  const auto has = [&](const char* sign) { return label.find(sign) != std::string::npos; };
  return has(" ÷ ") || has(" × ") || has(" + ") || has(" − ") ? "(" + label + ")" : label;
}

}  // namespace

DisplayNames::DisplayNames(const FigureRun& run) {
  // A path without a label is named by its shortest unique ending.
  for (const std::string& path : run.swept_paths)
    if (legend_label(path) == path && find_metric(path) == nullptr)
      labels_[path] = short_path(path, run.shown_paths);
  for (const auto& [name, label] : run.labels) labels_[name] = label;
}

std::string DisplayNames::or_else(const std::string& name, const std::string& otherwise) const {
  const auto found = labels_.find(name);
  return found == labels_.end() ? otherwise : found->second;
}

std::string DisplayNames::arm(const std::string& name) const {
  return or_else(name, name);
}
std::string DisplayNames::axis(const std::string& name) const {
  return name.find(' ') == std::string::npos ? or_else(name, axis_label(name)) : expression(name);
}
std::string DisplayNames::legend(const std::string& name) const {
  return name.find(' ') == std::string::npos ? or_else(name, legend_label(name)) : expression(name);
}

std::string DisplayNames::expression(const std::string& text) const {
  static const std::map<std::string, std::string> operators = {{"-", "−"}, {"*", "×"}, {"/", "÷"},
                                                               {"+", "+"}, {"(", "("}, {")", ")"}};
  std::string label;
  std::istringstream parts(with_replaced(with_replaced(text, "(", " ( "), ")", " ) "));
  bool is_tight = true;  // after an opening parenthesis
  for (std::string part; parts >> part;) {
    const auto found = operators.find(part);
    const bool is_call = part == "(" && label.ends_with("log");
    label += is_tight || is_call || part == ")" ? "" : " ";
    // Legend labels can be too short outside a legend, such as "router".
    label += found != operators.end() ? found->second : as_operand(or_else(part, axis_label(part)));
    is_tight = part == "(";
  }
  return label;
}

std::string DisplayNames::value(const std::string& path, const SweepValue& value) const {
  const std::string text = value_text(value);
  return or_else(path + "=" + text, legend(path) + " = " + text);
}
std::string DisplayNames::bare_value(const std::string& path, const SweepValue& value) const {
  const std::string text = value_text(value);
  return or_else(path + "=" + text, text);
}
std::string DisplayNames::point(const SweepPoint& point) const {
  std::vector<std::string> parts;
  for (const auto& [path, own] : point) parts.push_back(value(path, own));
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool is_imported(const ResultRow& row) {
  return row.cell.starts_with(kImportedCell);
}

std::vector<std::string> imported_arms(const ResultTable& table) {
  std::vector<std::string> arms;
  for (const std::string& arm : table.arms) {
    const auto is_of_arm = [&](const ResultRow& row) { return row.arm == arm; };
    const auto row = std::find_if(table.rows.rbegin(), table.rows.rend(), is_of_arm);
    if (row != table.rows.rend() && is_imported(*row)) arms.push_back(arm);
  }
  return arms;
}

std::string shown_arm(const DisplayNames& names, const ResultTable& table, const std::string& arm) {
  const std::vector<std::string> imported = imported_arms(table);
  const bool is_own = std::find(imported.begin(), imported.end(), arm) == imported.end();
  return names.arm(arm) + (is_own ? "" : " (imported)");
}

std::vector<std::string> own_shown_arms(const std::vector<std::string>& arms, const ResultTable& table) {
  if (!arms.empty()) return arms;
  const std::size_t imported = imported_arms(table).size();
  return {table.arms.begin(), table.arms.end() - static_cast<std::ptrdiff_t>(imported)};
}

std::vector<std::string> shown_arms(const std::vector<std::string>& arms, const ResultTable& table) {
  std::vector<std::string> shown = own_shown_arms(arms, table);
  for (std::string& arm : imported_arms(table)) shown.push_back(std::move(arm));
  return shown;
}

namespace {

bool is_positive_part(const std::string& name, const ResultTable& table) {
  if (const auto fixed = table.fixed.find(name); fixed != table.fixed.end()) return fixed->second > 0;
  if (std::find(table.sweep_paths.begin(), table.sweep_paths.end(), name) == table.sweep_paths.end())
    return is_declared_positive(name);
  return std::all_of(table.rows.begin(), table.rows.end(), [&](const ResultRow& row) {
    const SweepValue* const value = row.coordinate(name);
    return value == nullptr || value->number().value_or(0) > 0;
  });
}

}  // namespace

PlottedValue::PlottedValue(std::string text, const ResultTable& table)
    : text_(std::move(text)), expression_(Expression::parse(text_, "figure")), fixed_(table.fixed) {
  is_positive_ =
      expression_.is_positive([&](const std::string& name) { return is_positive_part(name, table); });
  may_be_censored_ = std::any_of(names().begin(), names().end(), moelab::may_be_censored);
}

bool PlottedValue::is_measured() const {
  return has_metric(names());
}

std::optional<Interval> PlottedValue::of(const ResultRow& row, const MetricValues& metrics) const {
  return expression_.evaluate([&](const std::string& name) -> std::optional<Interval> {
    if (const SweepValue* const swept = row.coordinate(name)) {
      if (!swept->number()) return std::nullopt;
      return Interval{*swept->number(), *swept->number()};
    }
    if (const auto fixed = fixed_.find(name); fixed != fixed_.end())
      return Interval{fixed->second, fixed->second};
    return observed(row, metrics, name);
  });
}

bool names_metric(const std::string& text, const std::string& path) {
  if (text.find(' ') == std::string::npos) return find_metric(text) != nullptr;
  return has_metric(Expression::parse(text, path).names());
}

void check_plotted_value(const FigureReferences& references, const std::string& arm, const std::string& text,
                         const std::string& path) {
  const Expression expression = Expression::parse(text, path);
  if (expression.is_name()) return references.check_metric(arm, text, path);
  for (const std::string& name : expression.names()) references.check_part(arm, name, path);
}

void check_plotted_path(const FigureReferences& references, const std::string& text, const std::string& other,
                        const std::string& path) {
  if (text.find(' ') == std::string::npos) return references.check_swept(text, other, path);
  for (const std::string& name : Expression::parse(text, path).names()) {
    references.check_number(name, path);
  }
}

}  // namespace moelab
