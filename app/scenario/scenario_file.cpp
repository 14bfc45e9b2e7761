#include "app/scenario/scenario_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "app/scenario/overrides.h"
#include "app/scenario/scenario.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

/// Whether `given` names a kind, and `base` is not of that kind.
bool names_another_kind(const Json& base, const Json& given, const Shape* shape) {
  if (shape == nullptr || shape->type != Shape::Type::variant || !given.contains(shape->tag)) return false;
  const Json& kind = given.at(shape->tag);
  return base.is_object() ? base.value(shape->tag, Json()) != kind : base != kind;
}

/// The fields of `given`, which stand at `path`, as overrides of `base`.
void add_overrides(const Json& document, const Json& base, const std::string& path, const Json& given,
                   std::vector<Override>& overrides) {
  for (const auto& [key, value] : given.items()) {
    const std::string here = join_path(path, key);
    const Json known = base.is_object() ? base.value(key, Json()) : Json();
    if (!value.is_object() ||
        names_another_kind(known, value, find_shape(scenario_shape(), document, here))) {
      overrides.push_back({here, value, here, ""});
    } else {
      add_overrides(document, known, here, value, overrides);
    }
  }
}

bool is_map(const std::string& key) {
  const std::vector<Field>& fields = scenario_shape().fields;
  return std::any_of(fields.begin(), fields.end(), [&](const Field& field) {
    return field.name == key && field.shape.type == Shape::Type::map;
  });
}

/// Null takes an entry away that is there.
[[noreturn]] void refuse_to_remove(const std::string& place, const std::string& name, const Json& known) {
  std::vector<std::string> names;
  for (const auto& [key, entry] : known.items()) names.push_back(key);
  throw UserError(place, "got null, which takes an entry of the extended scenario away: " +
                             unknown_name("entry", name, names));
}

void extend(Json& document, const Json& given) {
  Json fields = given;
  fields.erase("extends");
  for (const auto& [key, entries] : given.items()) {
    if (!is_map(key) || !entries.is_object()) continue;
    fields.erase(key);
    Json& known = document[key];
    if (!known.is_object()) known = Json::object();
    for (const auto& [name, entry] : entries.items()) {
      if (entry.is_null()) {
        if (!known.contains(name)) refuse_to_remove(join_path(key, name), name, known);
        known.erase(name);
      } else {
        known[name] = entry;
      }
    }
  }
  std::vector<Override> overrides;
  add_overrides(document, document, "", fields, overrides);
  apply_overrides(scenario_shape(), overrides, document);
}

/// The file that `file` extends.
fs::path extended_file(const fs::path& file, const Json& document) {
  const std::string place = file.string() + ": extends";
  const Json& given = document.at("extends");
  if (!given.is_string() || given.get_ref<const std::string&>().empty()) {
    throw UserError(place, "got " + abbreviated(given) + ", needs the path of a scenario file");
  }
  const fs::path extended = (file.parent_path() / given.get<std::string>()).lexically_normal();
  if (fs::is_regular_file(extended)) return extended;
  std::vector<std::string> others;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(extended.parent_path(), ignored)) {
    if (entry.path().extension() == ".json") others.push_back(entry.path().filename().string());
  }
  const std::string nearest = nearest_name(extended.filename().string(), others);
  throw UserError(place,
                  fmt::format("got {}, but there is no file {}{}", abbreviated(given), extended.string(),
                              nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
}

/// Whether the document holds something at `path`, whose keys may have dots themselves.
bool writes(const Json& document, std::string path) {
  if (path.starts_with('.')) path.erase(0, 1);
  if (path.empty()) return true;
  if (document.is_object()) {
    for (const auto& [key, value] : document.items()) {
      if (is_within(path, key) && writes(value, path.substr(key.size()))) return true;
    }
  }
  std::size_t index = 0;
  if (!document.is_array() || !path.starts_with('[')) return false;
  const auto [end, error] = std::from_chars(path.data() + 1, path.data() + path.size(), index);
  return error == std::errc() && index < document.size() &&
         writes(document[index], path.substr(static_cast<std::size_t>(end - path.data()) + 1));
}

}  // namespace

ScenarioFile read_scenario_file(const fs::path& file) {
  ScenarioFile read;
  for (fs::path next = file; !next.empty();) {
    const Json own = read_json_file(next);
    if (!own.is_object()) {
      throw UserError(read.files.empty() ? "" : next.string(),
                      "got " + abbreviated(own) + ", needs a scenario: an object");
    }
    check_version(own, next.string() + ": version");
    read.files.push_back(next.string());
    read.own_documents.push_back(own);
    if (!own.contains("extends")) break;
    const fs::path extended = extended_file(next, own);
    for (const std::string& earlier : read.files) {
      if (!fs::equivalent(earlier, extended)) continue;
      throw UserError(
          next.string() + ": extends",
          fmt::format("goes in a circle: {} → {}", fmt::join(read.files, " → "), extended.string()));
    }
    next = extended;
  }
  if (read.files.size() > 1 && !read.own_documents.front().contains("name")) {
    throw UserError("name", "missing: a scenario that extends another needs a name of its own");
  }
  read.document = read.own_documents.back();
  for (std::size_t i = read.files.size() - 1; i-- > 0;) {
    try {
      extend(read.document, read.own_documents[i]);
    } catch (const InvalidOption& error) {
      if (i == 0) throw;
      throw UserError(read.files[i] + ": " + error.path(), error.message());
    }
  }
  return read;
}

UserError at_file(const InvalidOption& error, const ScenarioFile& file) {
  for (std::size_t i = 0; i < file.files.size(); ++i) {
    if (!writes(file.own_documents[i], error.path())) continue;
    if (i == 0) break;
    return {error.path(), fmt::format("{} (written in {})", error.message(), file.files[i])};
  }
  return {error.path(), error.message()};
}

void check_version(const Json& document, const std::string& place) {
  if (!document.is_object() || !document.contains("version")) return;
  const Json& version = document.at("version");
  if (version == kScenarioVersion) return;
  throw UserError(place, fmt::format("got {}, but this program reads version {} of the scenario format{}",
                                     abbreviated(version), kScenarioVersion,
                                     version.is_number_integer() && version > kScenarioVersion
                                         ? "; a newer one may read it"
                                         : ""));
}

}  // namespace moelab
