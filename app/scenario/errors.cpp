#include "app/scenario/errors.h"

#include <fmt/format.h>

#include <algorithm>
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

/// The names of "a, b, c".
Json listed_names(std::string_view text) {
  Json names = Json::array();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(", "), text.size());
    names.push_back(std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return names;
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
  std::optional<std::string> given = between_marks(message, "got ", ", "), unknown;
  if (!given) unknown = between_marks(message, "unknown ", "';");
  if (unknown) given = between_marks(*unknown, "'", "");
  const std::optional<std::string> names = between_marks(message, "llowed: ", "");
  const std::optional<std::string> needs = between_marks(message, "needs ", "");
  const bool has_line = error.line > 0;
  return {{"path", error.path()},
          {"line", has_line ? Json(error.line) : Json()},
          {"column", has_line ? Json(error.column) : Json()},
          {"message", message},
          {"given", text_or_null(given)},
          {"allowed", names ? listed_names(*names) : text_or_null(needs)},
          {"nearest", text_or_null(between_marks(message, "did you mean '", "'?"))}};
}

}  // namespace moelab
