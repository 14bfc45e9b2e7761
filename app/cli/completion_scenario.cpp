#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "app/cli/completion.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario.h"
#include "app/scenario/schema.h"
#include "app/store/journal.h"
#include "sim/base/error.h"

// Candidates from the scenario or the run directory that the command line names.

namespace moelab {
namespace {

ScenarioDraft draft_of(const ScenarioChoice& choice) {
  return read_draft(choice.file, choice.profile, choice.settings);
}

/// What a dotted path of --set leads to.
struct SettingNode {
  std::string key;
  std::string help;
  std::vector<const Shape*> shapes;  ///< several where kinds have fields of the same name
  Json value = nullptr;              ///< the scenario's value, or the default
  bool is_tag = false;  ///< the tag of a variant: its value is the name of a kind, without fields
};
using SettingNodes = std::vector<SettingNode>;

void add_node(SettingNode node, SettingNodes& nodes) {
  const auto known = std::find_if(nodes.begin(), nodes.end(),
                                  [&](const SettingNode& other) { return other.key == node.key; });
  if (known == nodes.end()) {
    nodes.push_back(std::move(node));
  } else {
    known->shapes.insert(known->shapes.end(), node.shapes.begin(), node.shapes.end());
  }
}

SettingNodes nodes_below(const SettingNode& node) {
  SettingNodes nodes;
  if (node.is_tag) return nodes;
  for (const Shape* shape : node.shapes) {
    visit_parts(*shape, node.value, [&](const ShapePart& part) {
      std::string help = part.field ? part.field->help : "";
      if (part.is_tag) help = fmt::format("{}", fmt::join(names_of(part.shape->kinds), ", "));
      if (!part.field && !part.is_tag && node.value.is_array()) help = abbreviated(*part.value);
      add_node({part.key, std::move(help), {part.shape}, *part.value, part.is_tag}, nodes);
    });
  }
  return nodes;
}

/// Whether the name of the kind is a whole value.
bool needs_no_field(const Kind& kind) {
  return std::all_of(kind.fields.begin(), kind.fields.end(),
                     [](const Field& field) { return field.default_value.has_value(); });
}

/// Whether some value of the shape has no fields.
bool takes_word(const Shape& shape) {
  if (shape.type == Shape::Type::either)
    return std::any_of(shape.alternatives.begin(), shape.alternatives.end(), takes_word);
  if (shape.type == Shape::Type::variant)
    return std::any_of(shape.kinds.begin(), shape.kinds.end(), needs_no_field);
  return shape.type != Shape::Type::object && shape.type != Shape::Type::map;
}

bool is_free(const Shape* shape) {
  return shape->type == Shape::Type::map && shape->element->type == Shape::Type::any;
}

/// The node at which a path starts after `prefix`.
struct SettingRoot {
  std::string prefix;
  SettingNode node;
};

/// After "sweep.", "arms.NAME." and "evaluations.NAME." comes a path of a cell's configuration.
SettingRoot root_of(const std::string& word, const ScenarioDraft& draft) {
  const Json& scenario = draft.document;
  static const Shape data_alone = Shape::object({{"data", data_shape(), "where samples come from"}});
  if (word.starts_with("sweep.")) return {"sweep.", {"", "", {&config_shape()}, scenario}};
  const std::tuple<const char*, const NamedValues<Json>*, const Shape*> maps[] = {
      {"arms", &draft.arms, &config_shape()}, {"evaluations", &draft.evaluations, &data_alone}};
  for (const auto& [map, entries, shape] : maps) {
    SettingRoot root;
    for (const auto& [name, overrides] : *entries) {
      const std::string prefix = join_path(map, name) + ".";
      if (!word.starts_with(prefix) || prefix.size() < root.prefix.size()) continue;
      root = {prefix, {"", "", {shape}, scenario}};
      try {
        apply_overrides(scenario_shape(), read_overrides(overrides, prefix), root.node.value);
      } catch (const std::exception&) {
        root.node.value = scenario;
      }
    }
    if (!root.prefix.empty()) return root;
  }
  return {"", {"", "", {&scenario_shape()}, scenario}};
}

/// The node at `path`. Each key of the path ends in a dot. None if a key is unknown.
std::optional<SettingNode> node_above(SettingNode node, std::string_view path) {
  while (!path.empty()) {
    const std::string_view key = path.substr(0, path.find('.'));
    const SettingNodes below = nodes_below(node);
    const auto next =
        std::find_if(below.begin(), below.end(), [&](const SettingNode& each) { return each.key == key; });
    if (next == below.end()) return std::nullopt;
    node = SettingNode(*next);
    path.remove_prefix(std::min(path.size(), key.size() + 1));
  }
  return node;
}

void add_values(const Shape& shape, const std::string& path, bool is_tag, Candidates& candidates) {
  if (shape.type == Shape::Type::boolean) {
    for (const char* value : {"true", "false"}) candidates.words.push_back({path + value});
  }
  for (const std::string& choice : shape.choices) candidates.words.push_back({path + choice});
  for (const Kind& kind : shape.kinds) {
    if (is_tag || needs_no_field(kind)) candidates.words.push_back({path + kind.name, kind.help});
  }
  for (const Shape& alternative : shape.alternatives) add_values(alternative, path, is_tag, candidates);
}

/// Candidates for texts that name something: metrics, arms, and swept paths in claims and figures.
void add_named(const std::string& key, const std::string& path, const ScenarioChoice& choice,
               Candidates& candidates) {
  const bool is_figure = path.starts_with("figures."), is_shown = is_figure || path.starts_with("claims.");
  const auto add = [&](const Candidates& named) {
    for (const Candidates::Word& word : named.words)
      candidates.words.push_back({path + word.text, word.help});
  };
  if (key == "metric" || (is_figure && (key == "x" || key == "y" || key == "value"))) add(offer_metrics(""));
  if (is_shown && (key == "arm" || key == "relative_to" || key == "distance_from")) add(offer_arms(choice));
  if (!is_shown || (key != "x" && key != "along" && key != "series")) return;
  Candidates swept = offer_swept_values(choice, "");
  for (Candidates::Word& word : swept.words) word.text.pop_back();  // the "=" of a path
  swept.words.push_back({key == "series" ? "arm" : "step"});
  add(swept);
}

/// Candidates for the value of a path, which ends in "=".
Candidates setting_values(const SettingRoot& root, const std::string& path, const ScenarioChoice& choice) {
  Candidates candidates;
  const std::string_view own = std::string_view(path).substr(root.prefix.size());
  const std::optional<SettingNode> node = node_above(root.node, own.substr(0, own.size() - 1));
  if (!node || root.prefix == "sweep.") return candidates;  // a sweep takes lists
  add_named(node->key, path, choice, candidates);
  for (const Shape* shape : node->shapes) add_values(*shape, path, node->is_tag, candidates);
  std::set<std::string> known;  // fields of one name may take the same values
  std::erase_if(candidates.words,
                [&](const Candidates::Word& word) { return !known.insert(word.text).second; });
  return candidates;
}

/// Whether --set refuses the field since it belongs to the file.
bool is_of_the_file(const std::string& path) {
  return path == "$schema" || path == "version" || path == "extends" || path == "profiles";
}

void add_paths(const std::string& path, const SettingNode& node, const std::vector<std::string>& fixed,
               Candidates& candidates) {
  const auto sets_path = [&](const std::string& other) { return is_within(path, other); };
  const auto sets_below = [&](const std::string& other) { return is_within(other, path); };
  if (std::any_of(fixed.begin(), fixed.end(), sets_path)) return;
  const auto takes = [](const Shape* shape) { return takes_word(*shape); };
  if (std::any_of(node.shapes.begin(), node.shapes.end(), takes) &&
      std::none_of(fixed.begin(), fixed.end(), sets_below)) {
    candidates.words.push_back({path + "=", node.help});
  }
  if (path == "sweep" || std::any_of(node.shapes.begin(), node.shapes.end(), is_free) ||
      !nodes_below(node).empty()) {
    candidates.words.push_back({path + ".", node.help});
  }
}

}  // namespace

Candidates offer_settings(const ScenarioChoice& choice, const std::string& word) {
  const ScenarioDraft draft = draft_of(choice);
  const SettingRoot root = root_of(word, draft);
  const std::size_t equals = word.find('=');
  if (equals != std::string::npos) return setting_values(root, word.substr(0, equals + 1), choice);

  Candidates candidates;
  const std::string above = word.substr(0, word.rfind('.') + 1);
  const std::optional<SettingNode> node =
      node_above(root.node, std::string_view(above).substr(root.prefix.size()));
  if (!node) return candidates;
  const std::vector<std::string> fixed = root.prefix.empty() ? draft.fixed_paths : std::vector<std::string>();
  for (const SettingNode& below : nodes_below(*node)) {
    if (!is_of_the_file(above + below.key)) add_paths(above + below.key, below, fixed, candidates);
  }
  return candidates;
}

namespace {

/// Completion offers no more cells than this: a person waits for it at every key.
constexpr std::size_t kOfferedCells = 200;

Candidates names_in(const NamedValues<Json>& entries) {
  Candidates candidates;
  for (const auto& [name, value] : entries) candidates.words.push_back({name, value.dump()});
  return candidates;
}

/// Whether the ids of the cells are quick to compute: few cells, and no data files.
bool has_quick_cells(const ScenarioDraft& draft) {
  const std::size_t arms = std::max<std::size_t>(draft.arms.size(), 1);
  const std::size_t points = count_points(draft.axes(), kOfferedCells);
  if (draft.seeds > kOfferedCells || arms * points * draft.seeds > kOfferedCells) return false;
  return !draft.reads_files();
}

std::string cell_help(const std::string& arm, const Json& point, const Json& seed) {
  std::string text = arm;
  for (const auto& [path, value] : point.items()) text += fmt::format(", {} = {}", path, value.dump());
  return fmt::format("{}, seed {}", text, seed.dump());
}

}  // namespace

Candidates offer_profiles(const ScenarioChoice& choice) {
  return names_in(draft_of(choice).profiles);
}

Candidates offer_arms(const ScenarioChoice& choice) {
  const NamedValues<Json> arms = draft_of(choice).arms;
  return arms.empty() ? Candidates{{{"base", "{}"}}} : names_in(arms);
}

Candidates offer_seeds(const ScenarioChoice& choice) {
  Candidates candidates;
  const std::size_t count = std::min(draft_of(choice).seeds, kOfferedCells);
  for (std::size_t seed = 0; seed < count; ++seed) candidates.words.push_back({std::to_string(seed)});
  return candidates;
}

Candidates offer_swept_values(const ScenarioChoice& choice, const std::string& word) {
  Candidates candidates;
  const auto add = [&](const std::string& text) {
    const bool known = std::any_of(candidates.words.begin(), candidates.words.end(),
                                   [&](const Candidates::Word& other) { return other.text == text; });
    if (!known) candidates.words.push_back({text});
  };
  for (const SweepAxis& axis : draft_of(choice).axes()) {
    for (const std::vector<Override>& step : axis.steps) {
      for (const Override& change : step) {
        const std::string path = change.path + "=";
        add(word.starts_with(path) ? path + value_text(read_sweep_value(change.value)) : path);
      }
    }
  }
  return candidates;
}

Candidates offer_cells(const ScenarioChoice& choice) {
  Candidates candidates{{{"first", "the first cell"}}};
  const ScenarioDraft draft = draft_of(choice);
  try {
    if (!has_quick_cells(draft)) return candidates;
    for (const Cell& cell : expand_scenario(draft.document, "", {}).cells)
      candidates.words.push_back({cell.id, cell_help(cell.arm, point_json(cell.point), cell.seed)});
  } catch (const std::exception&) {
    // An unfinished scenario has no cells.
  }
  return candidates;
}

Candidates offer_cells(const RunChoice& run) {
  Candidates candidates;
  for (const ResultRow& cell : find_plan(run.address()).plan.cells)
    candidates.words.push_back({cell.cell, cell_help(cell.arm, point_json(cell.point), cell.seed)});
  return candidates;
}

Candidates offer_journals(const std::filesystem::path& directory) {
  Candidates candidates{{{"newest", "of each cell the record that finished last"}}};
  for (const std::filesystem::path& journal : journal_files(directory))
    candidates.words.push_back({journal.filename().string()});
  return candidates;
}

Candidates offer_run_folders(const std::string& word) {
  const Candidates folders{{}, Candidates::Files::folders};
  const std::size_t at = word.rfind('@');
  if (at == std::string::npos) return folders;
  Candidates candidates = offer_plans({word.substr(0, at)});
  if (candidates.words.empty()) return folders;
  for (Candidates::Word& plan : candidates.words) plan.text.insert(0, word, 0, at + 1);
  return candidates;
}

Candidates offer_plans(const std::vector<std::filesystem::path>& directories) {
  Candidates candidates;
  for (const std::filesystem::path& directory : directories) {
    if (directory.empty()) continue;  // it would be the working directory
    for (const std::string& id : plan_ids(directory)) {
      const std::optional<Plan> plan = plan_with_id(directory, id);
      candidates.words.push_back({id, plan ? plan->head.profile : ""});
    }
  }
  return candidates;
}

}  // namespace moelab
