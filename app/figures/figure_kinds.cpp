#include <algorithm>
#include <cctype>

#include "app/figures/display_names.h"
#include "app/figures/figure_kind.h"
#include "app/figures/shown_arms.h"
#include "app/metrics/metric_groups.h"
#include "app/scenario/cross_checks.h"
#include "app/scenario/references.h"
#include "app/scenario/sweep_values.h"
#include "sim/base/error.h"

// Adding a kind of figure is a new file that defines <name>_kind() and a line here; the first is the default.
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
  check_ids(scenario.figures, "figures");
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
    // "after Dikkala et al." begins a sentence here.
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

}  // namespace moelab
