#include "app/figures/figure_kind.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>
#include <vector>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/result_table.h"
#include "app/scenario/checks.h"
#include "app/scenario/overrides.h"
#include "sim/base/error.h"

// To add a figure kind, add a file that defines <name>_kind() and a line here. The first kind is the default.
// clang-format off
#define MOELAB_FIGURE_KINDS(entry) \
  entry(lines)                     \
  entry(heat_map)                  \
  entry(rate_panels)               \
  entry(embedding)                 \
  entry(cluster_map)               \
  entry(load_map)                  \
  entry(claim)                     \
  entry(crossing)
// clang-format on

namespace moelab {

#define MOELAB_DECLARE(name) FigureKind name##_kind();
MOELAB_FIGURE_KINDS(MOELAB_DECLARE)
#undef MOELAB_DECLARE

const std::vector<FigureKind>& figure_kinds() {
#define MOELAB_CALL(name) name##_kind(),
  static const std::vector<FigureKind> kinds = {MOELAB_FIGURE_KINDS(MOELAB_CALL)};
#undef MOELAB_CALL
  return kinds;
}

Drawing drawing_of(const AnyFigure& figure) {
  return std::visit([](const auto& own) { return drawing_of(own); }, figure);
}

const FigureKind& kind_of(const Json& figure) {
  const std::vector<FigureKind>& kinds = figure_kinds();
  const std::string name = figure.value("kind", kinds.front().name);
  const auto found =
      std::find_if(kinds.begin(), kinds.end(), [&](const FigureKind& kind) { return kind.name == name; });
  if (found != kinds.end()) return *found;
  std::vector<std::string> names;
  for (const FigureKind& kind : kinds) names.push_back(kind.name);
  throw UserError("figures." + figure.value("id", ""), unknown_name("kind", name, names));
}

Shape figure_shape() {
  std::vector<Kind> kinds;
  for (const FigureKind& kind : figure_kinds()) {
    std::vector<Field> fields = {
        {"id", Shape::text(), "name of the figure's files: letters, digits, . _ -"},
        {"title", Shape::text(), "title (default: the scenario's; of several figures, what each shows)",
         kOptional},
        {"where", Shape::map(Shape::any()), "values of other swept paths: {path: value}", kOptional},
        {"arms", Shape::list(Shape::text(), 1), "arms to show (default: all)", kOptional},
    };
    fields.insert(fields.end(), kind.fields.begin(), kind.fields.end());
    kinds.push_back({kind.name, kind.help, std::move(fields)});
  }
  return Shape::variant_with_default(std::move(kinds));
}

void check_figures(const Scenario& scenario) {
  std::vector<std::string> ids;
  for (const Json& figure : scenario.figures) ids.push_back(figure.at("id"));
  check_ids(ids, "figures");
  const References references(scenario);
  for (std::size_t i = 0; i < scenario.figures.size(); ++i) {
    const Json& figure = scenario.figures[i];
    const FigureKind& kind = kind_of(figure);
    kind.check(references, figure, join_path("figures", i));
    if (kind.check_cells)
      kind.check_cells(scenario, own_shown_arms(figure, references.table()), figure, join_path("figures", i));
  }
}

std::string figure_title(const Json& figure, const FigureSource& source, const std::string& subject) {
  if (figure.contains("title")) return figure.at("title");
  const std::string title = source.plan.value("title", "");
  if (subject.empty() || source.plan.value("figures", Json::array()).size() < 2) return title;
  std::string own = subject;
  own.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(own.front())));
  const DisplayNames names(source.plan);
  for (const auto& [path, value] : where_of(figure)) own += ", " + names.value(path, value_text(value));
  return own;
}

std::string scenario_sentences(const std::string& title, const FigureSource& source) {
  std::string text;
  for (const char* part : {"title", "source"}) {
    std::string own = source.plan.value(part, "");
    if (own.empty() || own == title) continue;
    // The source starts a sentence here: "After Dikkala et al."
    if (own[0] >= 'a' && own[0] <= 'z') own[0] = static_cast<char>(own[0] - 'a' + 'A');
    text += own + (own.ends_with('.') || own.ends_with('?') ? " " : ". ");
  }
  return text;
}

std::vector<std::string> checked_arms(const References& references, const Json& figure,
                                      const std::string& path) {
  const std::vector<std::string> arms = own_shown_arms(figure, references.table());
  for (std::size_t i = 0; i < arms.size(); ++i)
    references.check_arm(arms[i], join_path(join_path(path, "arms"), i));
  return arms;
}

void check_saved_arrays(const References& references, const Json& figure, const std::string& arrays,
                        const std::string& path) {
  const std::vector<std::string> arms = checked_arms(references, figure, path);
  for (std::size_t i = 0; i < arms.size(); ++i) {
    references.check_saved(arms[i], arrays,
                           figure.contains("arms") ? join_path(join_path(path, "arms"), i) : path);
  }
  references.check_where(where_of(figure), path);
}

namespace {

/// The swept paths of a plan. `shown` has the paths whose values figures name: of paths that vary together,
/// only the first. `all` has every path.
struct SweptPaths {
  std::vector<std::string> shown, all;
};

SweptPaths swept_paths(const Json& sweep) {
  SweptPaths paths;
  if (!sweep.is_object()) return paths;
  for (const auto& [path, values] : sweep.items()) {
    if (path != "zip" || !values.is_object()) {
      paths.shown.push_back(path);
      paths.all.push_back(path);
      continue;
    }
    if (!values.empty()) paths.shown.push_back(values.begin().key());
    for (const auto& zipped : values.items()) paths.all.push_back(zipped.key());
  }
  return paths;
}

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

DisplayNames::DisplayNames(const Json& plan) {
  const Json scenario = plan.value("scenario", Json::object());
  if (!scenario.is_object()) return;
  // A path without a label is named by its shortest unique ending.
  const SweptPaths paths = swept_paths(scenario.value("sweep", Json()));
  for (const std::string& path : paths.all)
    if (legend_label(path) == path && find_metric(path) == nullptr)
      labels_[path] = short_path(path, paths.shown);
  if (!scenario.contains("labels")) return;
  for (const auto& [name, label] : scenario.at("labels").items()) labels_[name] = label.get<std::string>();
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
  std::istringstream parts(text);
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

std::string DisplayNames::value(const std::string& path, const std::string& text) const {
  return or_else(path + "=" + text, legend(path) + " = " + text);
}
std::string DisplayNames::bare_value(const std::string& path, const std::string& text) const {
  return or_else(path + "=" + text, text);
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

std::vector<std::string> own_shown_arms(const Json& figure, const ResultTable& table) {
  if (figure.contains("arms")) return figure.at("arms").get<std::vector<std::string>>();
  const std::size_t imported = imported_arms(table).size();
  return {table.arms.begin(), table.arms.end() - static_cast<std::ptrdiff_t>(imported)};
}

std::vector<std::string> shown_arms(const Json& figure, const ResultTable& table) {
  std::vector<std::string> arms = own_shown_arms(figure, table);
  for (std::string& arm : imported_arms(table)) arms.push_back(std::move(arm));
  return arms;
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

void check_plotted_value(const References& references, const std::string& arm, const std::string& text,
                         const std::string& path) {
  const Expression expression = Expression::parse(text, path);
  if (expression.is_name()) return references.check_metric(arm, text, path);
  for (const std::string& name : expression.names()) references.check_part(arm, name, path);
}

void check_plotted_path(const References& references, const std::string& text, const std::string& other,
                        const std::string& path) {
  if (text.find(' ') == std::string::npos) return references.check_swept(text, other, path);
  for (const std::string& name : Expression::parse(text, path).names()) {
    references.check_number(name, path);
  }
}

}  // namespace moelab
