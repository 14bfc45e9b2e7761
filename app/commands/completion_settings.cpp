// Dotted paths of --set, level by level.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "app/commands/completion.h"
#include "app/commands/completion_scenario.h"
#include "app/json/schema.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario.h"
#include "app/scenario/scenario_shape.h"
#include "sim/base/error.h"

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

}  // namespace moelab
