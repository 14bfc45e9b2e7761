#include "app/scenario/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace moelab {
namespace {

/// The text between two marks; no value without both. An empty `end` is the end of the text.
std::optional<std::string> between_marks(std::string_view text, std::string_view begin,
                                         std::string_view end) {
  const std::size_t start = text.find(begin);
  if (start == std::string_view::npos) return std::nullopt;
  text.remove_prefix(start + begin.size());
  const std::size_t length = end.empty() ? text.size() : text.find(end);
  if (length == std::string_view::npos) return std::nullopt;
  return std::string(text.substr(0, length));
}

Json text_or_null(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json();
}

/// The names of "a, b, c". A cut list ends with "… (226 in all)", which is no name.
Json listed_names(std::string_view text) {
  Json names = Json::array();
  if (const std::size_t cut = text.rfind(", …"); cut != std::string_view::npos) text = text.substr(0, cut);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(", "), text.size());
    names.push_back(std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return names;
}

/// The line and the column of "file:line:column", the path of an error of syntax. 0 for another path.
TextPlace place_in_path(std::string_view path) {
  TextPlace place;
  for (std::size_t* const number : {&place.column, &place.line}) {
    const std::size_t colon = path.rfind(':');
    if (colon == std::string_view::npos) return {};
    const std::string_view digits = path.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *number);
    if (error != std::errc() || end != digits.data() + digits.size()) return {};
    path = path.substr(0, colon);
  }
  return place;
}

}  // namespace

std::string ScenarioError::place_text() const {
  // An error in a file that is extended names its place in the message.
  return line == 0 || file.empty() ? "" : fmt::format(" ({}:{}:{})", file, line, column);
}

std::vector<ScenarioError> errors_of(const InvalidOption& error) {
  if (const auto* const all = dynamic_cast<const ScenarioErrors*>(&error)) return all->all();
  return {ScenarioError(error)};
}

void ErrorList::add(const InvalidOption& error) {
  for (const ScenarioError& one : errors_of(error)) {
    if (errors_.size() >= kMostErrors) return;
    const bool is_known = std::any_of(errors_.begin(), errors_.end(), [&](const ScenarioError& other) {
      return other.path() == one.path() && (!one.path().empty() || other.message() == one.message());
    });
    if (!is_known) errors_.push_back(one);
  }
}

Json error_json(const ScenarioError& error) {
  const std::string& message = error.message();
  // What is given may hold any text, so its end is looked for from the end of the message.
  std::optional<std::string> given, allowed, nearest, names;
  const std::size_t got = message.find("got "), needs = message.rfind(", needs ");
  if (const std::size_t unknown = message.find("unknown "); unknown != std::string::npos && got > unknown) {
    const std::string rest = message.substr(std::min(message.find('\'', unknown), message.size()));
    const std::size_t hint = rest.rfind("'; did you mean '"), list = rest.rfind("llowed: ");
    const std::size_t end = hint != std::string::npos ? hint : rest.rfind("';", list);
    if (end != std::string::npos && end > 0) given = rest.substr(1, end - 1);
    if (hint != std::string::npos) nearest = between_marks(rest.substr(hint), "did you mean '", "'?");
    names = between_marks(rest.substr(std::min(list, rest.size())), "llowed: ", "");
  } else if (got != std::string::npos) {
    const std::size_t begin = got + std::string_view("got ").size();
    const std::size_t end = needs != std::string::npos && needs > begin ? needs : message.find(", ", begin);
    if (end != std::string::npos) given = message.substr(begin, end - begin);
  } else {
    given = between_marks(message, "duplicate key '", "'");
  }
  if (!names) names = between_marks(message, "llowed: ", "");
  if (!names && needs != std::string::npos)
    allowed = message.substr(needs + std::string_view(", needs ").size());
  else if (!names)
    allowed = between_marks(message, "needs ", "");
  const TextPlace place = error.line > 0 ? TextPlace{error.line, error.column} : place_in_path(error.path());
  const bool has_place = place.line > 0;
  return {{"path", error.path()},
          {"line", has_place ? Json(place.line) : Json()},
          {"column", has_place ? Json(place.column) : Json()},
          {"message", message},
          {"given", text_or_null(given)},
          {"allowed", names ? listed_names(*names) : text_or_null(allowed)},
          {"nearest", text_or_null(nearest)}};
}

}  // namespace moelab
