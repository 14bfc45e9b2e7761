#include "app/scenario/arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// The text with every `part` replaced.
std::string replaced_in(std::string text, const std::string& part, const std::string& by) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + by.size()))
    text.replace(at, part.size(), by);
  return text;
}

/// The value with each text and each key changed by `change`.
Json with_texts(const Json& value, const std::function<Json(const std::string&)>& change) {
  if (value.is_string()) return change(value.get<std::string>());
  if (!value.is_structured()) return value;
  Json changed = value.is_array() ? Json::array() : Json::object();
  for (const auto& [key, element] : value.items()) {
    Json own = with_texts(element, change);
    if (value.is_array()) {
      changed.push_back(std::move(own));
      continue;
    }
    const Json name = change(key);
    changed[name.is_string() ? name.get<std::string>() : name.dump()] = std::move(own);
  }
  return changed;
}

/// A name of "for" with one of its values.
struct Placeholder {
  std::string name;
  Json value;

  std::string mark() const { return "{" + name + "}"; }
  std::string text() const { return value.is_string() ? value.get<std::string>() : value.dump(); }
};

Json filled(const std::string& text, const std::vector<Placeholder>& placeholders) {
  std::string result = text;
  for (const Placeholder& placeholder : placeholders) {
    if (text == placeholder.mark()) return placeholder.value;
    result = replaced_in(std::move(result), placeholder.mark(), placeholder.text());
  }
  return result;
}

/// The names in braces of a text.
std::vector<std::string> marks_in(const std::string& text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  std::vector<std::string> marks;
  for (std::size_t open = text.find('{'); open != std::string::npos; open = text.find('{', open + 1)) {
    const std::size_t end = text.find_first_not_of(kLetters, open + 1);
    if (end != std::string::npos && text[end] == '}' && end > open + 1)
      marks.push_back(text.substr(open + 1, end - open - 1));
  }
  return marks;
}

/// Checks the fields of a template at `place`, and that its placeholders have values.
void check_template(const std::string& name, const Json& arm, const std::string& place) {
  for (const auto& [key, value] : arm.items())
    if (key != "for" && key != "set")
      throw UserError(join_path(place, key), unknown_name("field of a template", key, {"for", "set"}));
  const std::string lists_place = join_path(place, "for");
  if (!arm.contains("for")) throw UserError(lists_place, "missing; a template needs {name: [values], …}");
  const Json& lists = arm.at("for");
  if (!lists.is_object() || lists.empty())
    throw UserError(lists_place,
                    fmt::format("got {}, needs an object {{name: [values], …}}", abbreviated(lists)));
  std::vector<std::string> known;
  for (const auto& [key, values] : lists.items()) {
    const std::string here = join_path(lists_place, key);
    if (!values.is_array() || values.empty())
      throw UserError(here, fmt::format("got {}, needs a list of at least one value", abbreviated(values)));
    if (name.find("{" + key + "}") == std::string::npos)
      throw UserError(here, fmt::format("stands not in the name '{}'; needs {{{}}} there, because each arm "
                                        "has its own name",
                                        name, key));
    known.push_back(key);
  }
  const std::string set_place = join_path(place, "set");
  if (!arm.contains("set")) throw UserError(set_place, "missing; needs {path: value, …}");
  if (!arm.at("set").is_object())
    throw UserError(set_place,
                    fmt::format("got {}, needs an object {{path: value, …}}", abbreviated(arm.at("set"))));
  const auto check_marks = [&](const std::string& text, const std::string& here) {
    for (const std::string& mark : marks_in(text))
      if (std::find(known.begin(), known.end(), mark) == known.end())
        throw UserError(here, unknown_name("placeholder", mark, known));
  };
  check_marks(name, place);
  for (const auto& [path, value] : arm.at("set").items()) {
    check_marks(path, set_place);
    with_texts(value, [&, here = join_path(set_place, path)](const std::string& text) {
      check_marks(text, here);
      return Json(text);
    });
  }
}

/// Adds an arm for each combination of the values from list `place` on.
void add_combinations(const std::string& name, const Json& arm, const std::string& set_place,
                      std::vector<Placeholder> chosen, std::vector<WrittenArm>& arms) {
  const Json& lists = arm.at("for");
  if (chosen.size() < lists.size()) {
    auto list = lists.begin();
    std::advance(list, static_cast<std::ptrdiff_t>(chosen.size()));
    for (const Json& value : list.value()) {
      std::vector<Placeholder> more = chosen;
      more.push_back({list.key(), value});
      add_combinations(name, arm, set_place, std::move(more), arms);
    }
    return;
  }
  std::string own = name;
  for (const Placeholder& placeholder : chosen)
    own = replaced_in(std::move(own), placeholder.mark(), placeholder.text());
  const auto fill = [&](const std::string& text) { return filled(text, chosen); };
  arms.push_back({std::move(own), with_texts(arm.at("set"), fill), set_place});
}

}  // namespace

std::vector<WrittenArm> written_arms(const Json& arms) {
  std::vector<WrittenArm> written;
  for (const auto& [name, arm] : arms.items()) {
    const std::string place = join_path("arms", name);
    const std::size_t before = written.size();
    if (arm.is_object() && (arm.contains("for") || arm.contains("set"))) {
      check_template(name, arm, place);
      add_combinations(name, arm, join_path(place, "set"), {}, written);
    } else {
      written.push_back({name, arm, place});
    }
    for (std::size_t i = before; i < written.size(); ++i)
      for (std::size_t earlier = 0; earlier < i; ++earlier)
        if (written[earlier].name == written[i].name)
          throw UserError(place, fmt::format("makes the arm '{}' a second time", written[i].name));
  }
  return written;
}

bool matches_pattern(const std::string& pattern, const std::string& name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string::npos) return pattern == name;
  if (name.compare(0, star, pattern, 0, star) != 0) return false;
  const std::string rest = pattern.substr(star + 1);
  for (std::size_t from = star; from <= name.size(); ++from)
    if (matches_pattern(rest, name.substr(from))) return true;
  return false;
}

std::vector<std::string> matching_arms(const Json& list, const std::vector<std::string>& arms,
                                       const std::string& place) {
  std::vector<std::string> matching;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string pattern = list[i].get<std::string>();
    bool is_known = false;
    for (const std::string& arm : arms) {
      if (!matches_pattern(pattern, arm)) continue;
      is_known = true;
      if (std::find(matching.begin(), matching.end(), arm) == matching.end()) matching.push_back(arm);
    }
    if (!is_known) throw UserError(join_path(place, i), unknown_name("arm", pattern, arms));
  }
  return matching;
}

Json with_placeholder(const Json& value, const std::string& placeholder, const std::string& text) {
  return with_texts(
      value, [&](const std::string& own) { return Json(replaced_in(own, "{" + placeholder + "}", text)); });
}

}  // namespace moelab
