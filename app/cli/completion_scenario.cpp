#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "app/cli/completion.h"
#include "app/scenario/cells.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario.h"
#include "app/scenario/schema.h"
#include "app/store/journal.h"
#include "sim/base/error.h"

// Dotted paths of --set, level by level.

namespace moelab {
namespace {

/// Something that a path may name.
struct SettingNode {
  std::string key;
  std::string help;
  std::vector<const Shape*> shapes;  ///< several where kinds that are open have fields of one name
  Json value = nullptr;              ///< what the scenario, or the default, has there
  bool is_tag = false;               ///< of a variant: it takes a kind's name, and nothing lies below
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

void add_field_nodes(const std::vector<Field>& fields, const Json& value, SettingNodes& nodes) {
  for (const Field& field : fields) {
    Json child = value.is_object() ? value.value(field.name, Json()) : Json();
    if (child.is_null() && field.default_value) child = *field.default_value;
    add_node({field.name, field.help, {&field.shape}, std::move(child)}, nodes);
  }
}

void add_variant_nodes(const Shape& shape, const Json& value, SettingNodes& nodes) {
  add_node({shape.tag, fmt::format("{}", fmt::join(names_of(shape.kinds), ", ")), {&shape}, nullptr, true},
           nodes);
  const Json tag = value.is_object() ? value.value(shape.tag, Json()) : value;
  const bool is_known =
      std::any_of(shape.kinds.begin(), shape.kinds.end(), [&](const Kind& kind) { return kind.name == tag; });
  for (const Kind& kind : shape.kinds) {
    if (!is_known || kind.name == tag) add_field_nodes(kind.fields, value, nodes);
  }
}

/// What lies below a value of that shape.
void add_nodes_below(const Shape& shape, const Json& value, SettingNodes& nodes) {
  if (shape.type == Shape::Type::object) add_field_nodes(shape.fields, value, nodes);
  if (shape.type == Shape::Type::variant) add_variant_nodes(shape, value, nodes);
  for (const Shape& alternative : shape.alternatives) add_nodes_below(alternative, value, nodes);
  if (shape.type == Shape::Type::map && value.is_object()) {
    for (const auto& [key, child] : value.items()) add_node({key, "", {shape.element.get()}, child}, nodes);
  }
  if (shape.type == Shape::Type::list && value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i)
      add_node({std::to_string(i), abbreviated(value[i]), {shape.element.get()}, value[i]}, nodes);
  }
}

SettingNodes nodes_below(const SettingNode& node) {
  SettingNodes nodes;
  if (node.is_tag) return nodes;
  for (const Shape* shape : node.shapes) add_nodes_below(*shape, node.value, nodes);
  return nodes;
}

/// Whether its name alone makes a value of the kind.
bool needs_no_field(const Kind& kind) {
  return std::all_of(kind.fields.begin(), kind.fields.end(),
                     [](const Field& field) { return field.default_value.has_value(); });
}

/// Whether a value may be written for it without fields.
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

/// Where a path starts that stands behind `prefix`.
struct SettingRoot {
  std::string prefix;
  SettingNode node;
};

/// Behind "sweep.", "arms.NAME." and "evaluations.NAME." stands the path of a cell's configuration.
SettingRoot root_of(const std::string& word, const Json& scenario) {
  static const Shape data_alone = Shape::object({{"data", data_shape(), "where samples come from"}});
  if (word.starts_with("sweep.")) return {"sweep.", {"", "", {&config_shape()}, scenario}};
  for (const char* map : {"arms", "evaluations"}) {
    SettingRoot root;
    const Json entries = object_at(scenario, map);
    for (const auto& [name, overrides] : entries.items()) {
      const std::string prefix = join_path(map, name) + ".";
      if (!word.starts_with(prefix) || prefix.size() < root.prefix.size()) continue;
      root = {prefix, {"", "", {map == std::string("arms") ? &config_shape() : &data_alone}, scenario}};
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

/// The node at the keys of `path`, each of which ends in a dot; none where there is no such.
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

/// What texts name: metrics, arms, and in claims and figures swept paths.
void add_named(const std::string& key, const std::string& path, const Arguments& given,
               Candidates& candidates) {
  const bool is_figure = path.starts_with("figures."), is_shown = is_figure || path.starts_with("claims.");
  const auto add = [&](const Candidates& named) {
    for (const Candidates::Word& word : named.words)
      candidates.words.push_back({path + word.text, word.help});
  };
  if (key == "metric" || (is_figure && (key == "x" || key == "y" || key == "value")))
    add(offer_metrics(given, ""));
  if (is_shown && (key == "arm" || key == "relative_to" || key == "distance_from"))
    add(offer_arms(given, ""));
  if (!is_shown || (key != "x" && key != "along" && key != "series")) return;
  Candidates swept = offer_swept_values(given, "");
  for (Candidates::Word& word : swept.words) word.text.pop_back();  // the "=" of a path
  swept.words.push_back({key == "series" ? "arm" : "step"});
  add(swept);
}

/// The values of a path, which ends in "=".
Candidates setting_values(const SettingRoot& root, const std::string& path, const Arguments& given) {
  Candidates candidates;
  const std::string_view own = std::string_view(path).substr(root.prefix.size());
  const std::optional<SettingNode> node = node_above(root.node, own.substr(0, own.size() - 1));
  if (!node || root.prefix == "sweep.") return candidates;  // a sweep takes lists
  add_named(node->key, path, given, candidates);
  for (const Shape* shape : node->shapes) add_values(*shape, path, node->is_tag, candidates);
  std::set<std::string> known;  // fields of one name may take the same values
  std::erase_if(candidates.words,
                [&](const Candidates::Word& word) { return !known.insert(word.text).second; });
  return candidates;
}

/// Fields that no --set changes.
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

Candidates offer_settings(const Arguments& given, const std::string& word) {
  const Json scenario = given_scenario(given);
  const SettingRoot root = root_of(word, scenario);
  const std::size_t equals = word.find('=');
  if (equals != std::string::npos) return setting_values(root, word.substr(0, equals + 1), given);

  Candidates candidates;
  const std::string above = word.substr(0, word.rfind('.') + 1);
  const std::optional<SettingNode> node =
      node_above(root.node, std::string_view(above).substr(root.prefix.size()));
  if (!node) return candidates;
  const std::vector<std::string> fixed =
      root.prefix.empty() ? fixed_paths(scenario) : std::vector<std::string>();
  for (const SettingNode& below : nodes_below(*node)) {
    if (!is_of_the_file(above + below.key)) add_paths(above + below.key, below, fixed, candidates);
  }
  return candidates;
}

namespace {

/// Ids of more cells than these take too long to wait for at a key.
constexpr std::size_t kOfferedCells = 200;

/// What can be applied.
void apply_where_possible(const std::vector<Override>& overrides, Json& document) {
  for (const Override& change : overrides) {
    Json changed = document;
    try {
      apply_overrides(scenario_shape(), std::vector<Override>{change}, changed);
    } catch (const InvalidOption&) {
      continue;
    }
    document = std::move(changed);
  }
}

Candidates names_in(const Json& object) {
  Candidates candidates;
  for (const auto& [name, value] : object.items()) candidates.words.push_back({name, value.dump()});
  return candidates;
}

/// The number of seeds, unless the scenario says no such number: 0.
std::size_t offered_seeds(const Json& scenario) {
  const Json count = object_at(scenario, "seeds").value("count", Json(5));
  return count.is_number_unsigned() ? count.get<std::size_t>() : 0;
}

/// Whether the scenario has few cells, and no files of data that their ids would depend on.
bool has_quick_cells(const Json& scenario) {
  const std::size_t arms = std::max<std::size_t>(object_at(scenario, "arms").size(), 1);
  const std::size_t seeds = offered_seeds(scenario);
  const std::size_t points = count_points(read_sweep(object_at(scenario, "sweep")), kOfferedCells);
  if (seeds > kOfferedCells || arms * points * seeds > kOfferedCells) return false;
  return files_of(read_data(resolve(data_shape(), object_at(scenario, "data"), "data"))).empty();
}

std::string cell_help(const std::string& arm, const Json& point, const Json& seed) {
  std::string text = arm;
  for (const auto& [path, value] : point.items()) text += fmt::format(", {} = {}", path, value.dump());
  return fmt::format("{}, seed {}", text, seed.dump());
}

}  // namespace

Json object_at(const Json& scenario, const std::string& key) {
  const bool is_there = scenario.is_object() && scenario.contains(key) && scenario.at(key).is_object();
  return is_there ? scenario.at(key) : Json::object();
}

Json given_scenario(const Arguments& given) {
  Json document;
  try {
    // Other than a file, a pipe could be waited for.
    if (!std::filesystem::is_regular_file(given.file)) return Json::object();
    document = read_scenario_file(given.file).document;
  } catch (const std::exception&) {
    return Json::object();
  }
  apply_where_possible(read_overrides(object_at(object_at(document, "profiles"), given.profile), "profiles"),
                       document);
  for (const std::string& setting : given.settings) {
    if (setting.find('=') != std::string::npos && !setting.starts_with('='))
      apply_where_possible(read_settings({setting}), document);
  }
  return document;
}

std::vector<std::string> fixed_paths(const Json& scenario) {
  std::vector<std::string> paths;
  const Json sweep = object_at(scenario, "sweep"), arms = object_at(scenario, "arms");
  for (const auto& [path, values] : sweep.items()) paths.push_back(path);
  const Json zip = object_at(sweep, "zip");
  for (const auto& [path, values] : zip.items()) paths.push_back(path);
  for (const auto& [name, arm] : arms.items()) {
    if (!arm.is_object()) continue;
    for (const auto& [path, value] : arm.items()) paths.push_back(path);
  }
  return paths;
}

Candidates offer_profiles(const Arguments& given, const std::string&) {
  return names_in(object_at(given_scenario(given), "profiles"));
}

Candidates offer_arms(const Arguments& given, const std::string&) {
  const Json scenario = given_scenario(given);
  return names_in(scenario.contains("arms") ? object_at(scenario, "arms") : Json::parse(R"({"base": {}})"));
}

Candidates offer_seeds(const Arguments& given, const std::string&) {
  Candidates candidates;
  const std::size_t count = std::min(offered_seeds(given_scenario(given)), kOfferedCells);
  for (std::size_t seed = 0; seed < count; ++seed) candidates.words.push_back({std::to_string(seed)});
  return candidates;
}

Candidates offer_swept_values(const Arguments& given, const std::string& word) {
  Candidates candidates;
  const auto add = [&](const std::string& text) {
    const bool known = std::any_of(candidates.words.begin(), candidates.words.end(),
                                   [&](const Candidates::Word& other) { return other.text == text; });
    if (!known) candidates.words.push_back({text});
  };
  for (const SweepAxis& axis : read_sweep(object_at(given_scenario(given), "sweep"))) {
    for (const std::vector<Override>& step : axis.steps) {
      for (const Override& change : step) {
        const std::string path = change.path + "=";
        add(word.starts_with(path) ? path + value_text(read_sweep_value(change.value)) : path);
      }
    }
  }
  return candidates;
}

Candidates offer_cells_of_scenario(const Arguments& given, const std::string&) {
  Candidates candidates{{{"first", "the first cell"}}};
  const Json document = given_scenario(given);
  try {
    if (!has_quick_cells(document)) return candidates;
    for (const Cell& cell : expand_scenario(document, "", {}).cells)
      candidates.words.push_back({cell.id, cell_help(cell.arm, point_json(cell.point), cell.seed)});
  } catch (const std::exception&) {
    // A scenario that is not whole yet has no cells.
  }
  return candidates;
}

Candidates offer_cells_of_run(const Arguments& given, const std::string&) {
  Candidates candidates;
  for (const ResultRow& cell : find_plan(run_address(given)).plan.cells)
    candidates.words.push_back({cell.cell, cell_help(cell.arm, point_json(cell.point), cell.seed)});
  return candidates;
}

Candidates offer_journals(const Arguments& given, const std::string&) {
  Candidates candidates{{{"newest", "of each cell the record that finished last"}}};
  for (const std::filesystem::path& journal : journal_files(given.directory))
    candidates.words.push_back({journal.filename().string()});
  return candidates;
}

Candidates offer_run_folders(const Arguments& given, const std::string& word) {
  const std::size_t at = word.rfind('@');
  if (at == std::string::npos) return offer_folders(given, word);
  Arguments run;
  run.directory = word.substr(0, at);
  Candidates candidates = offer_plans(run, "");
  if (candidates.words.empty()) return offer_folders(given, word);
  for (Candidates::Word& plan : candidates.words) plan.text.insert(0, word, 0, at + 1);
  return candidates;
}

Candidates offer_plans(const Arguments& given, const std::string&) {
  Candidates candidates;
  std::vector<std::filesystem::path> folders = given.directories;
  if (!given.directory.empty()) folders.push_back(given.directory);
  for (const std::filesystem::path& folder : folders) {
    for (const std::string& id : plan_ids(folder)) {
      const std::optional<Plan> plan = plan_with_id(folder, id);
      candidates.words.push_back({id, plan ? plan->head.value("profile", "") : ""});
    }
  }
  return candidates;
}

}  // namespace moelab
