#include "app/scenario/arms.h"
#include "app/scenario/cells.h"
#include "app/scenario/scenario.h"
#include "app/scenario/schema.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// The object at a key; an empty one where there is none.
Json object_at(const Json& parent, const std::string& key) {
  const Json* const found = find_value(parent, key);
  return found && found->is_object() ? *found : Json::object();
}

NamedValues<Json> entries_at(const Json& document, const std::string& key) {
  NamedValues<Json> entries;
  const Json object = object_at(document, key);
  for (const auto& [name, value] : object.items()) entries.emplace_back(name, value);
  return entries;
}

/// The arms by name. Arms of wrong templates are left out.
NamedValues<Json> draft_arms(const Json& document) {
  NamedValues<Json> arms;
  for (const auto& [name, arm] : entries_at(document, "arms")) {
    try {
      for (WrittenArm& written : written_arms(Json::object({{name, arm}})))
        arms.emplace_back(written.name, std::move(written.overrides));
    } catch (const InvalidOption&) {
    }
  }
  return arms;
}

/// Applies the overrides that are valid.
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

std::vector<std::string> fixed_paths_of(const Json& sweep, const NamedValues<Json>& arms) {
  std::vector<std::string> paths;
  const auto add_keys = [&](const Json& object) {
    for (const auto& entry : object.items()) paths.push_back(entry.key());
  };
  add_keys(sweep);
  add_keys(object_at(sweep, "zip"));
  for (const auto& [name, overrides] : arms)
    if (overrides.is_object()) add_keys(overrides);
  return paths;
}

}  // namespace

std::vector<SweepAxis> ScenarioDraft::axes() const {
  return read_sweep(object_at(document, "sweep"));
}

bool ScenarioDraft::reads_files() const {
  return !files_of(resolve_options<DataOptions>(object_at(document, "data"), "data")).empty();
}

ScenarioDraft read_draft(const std::filesystem::path& file, const std::string& profile,
                         const std::vector<std::string>& settings) {
  ScenarioDraft draft;
  try {
    // Reading a pipe could block.
    if (std::filesystem::is_regular_file(file)) draft.document = read_scenario_file(file).document;
  } catch (const std::exception&) {
    return draft;
  }
  for (const auto& [name, overrides] : entries_at(draft.document, "profiles"))
    if (name == profile && overrides.is_object())
      apply_where_possible(read_overrides(overrides, "profiles"), draft.document);
  for (const std::string& setting : settings) {
    if (setting.find('=') != std::string::npos && !setting.starts_with('='))
      apply_where_possible(read_settings({setting}), draft.document);
  }
  draft.profiles = entries_at(draft.document, "profiles");
  draft.arms = draft_arms(draft.document);
  draft.evaluations = entries_at(draft.document, "evaluations");
  draft.fixed_paths = fixed_paths_of(object_at(draft.document, "sweep"), draft.arms);
  const Json count = object_at(draft.document, "seeds").value("count", Json(SeedFields().count));
  if (count.is_number_unsigned()) draft.seeds = count.get<std::size_t>();
  return draft;
}

}  // namespace moelab
