#pragma once

/// Errors of the kinds that a caller can act on. All are caught once, in app/main.cpp.

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace moelab {

/// A caller of the library asked for what cannot be: `path` names the option as scenarios do
/// ("data.target.kind"), the message says what was given and what is allowed.
class InvalidOption : public std::invalid_argument {
 public:
  InvalidOption(std::string path, std::string message)
      : std::invalid_argument(path.empty() ? message : path + ": " + message),
        path_(std::move(path)),
        message_(std::move(message)) {}
  const std::string& path() const { return path_; }
  const std::string& message() const { return message_; }

 private:
  std::string path_;
  std::string message_;
};

/// Bad input that a user wrote (exit status 2): where it stands, what was given, what is allowed. `path` is a
/// JSON path, "file:line:column", or a command-line option.
class UserError : public InvalidOption {
 public:
  using InvalidOption::InvalidOption;
};

/// The environment failed: disk, permissions, a missing program (exit status 3).
class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The names of entries that have a member `name`, in their order.
template <class Entries>
std::vector<std::string> names_of(const Entries& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(entry.name);
  return names;
}

/// The allowed name with the smallest Damerau-Levenshtein distance to `given`;
/// empty when none is within half of the given name's length.
std::string nearest_name(std::string_view given, const std::vector<std::string>& allowed);

/// "unknown router 'linaer'; did you mean 'linear'? Allowed: linear, mlp". Of over 40 names: the ten nearest.
std::string unknown_name(std::string_view what, std::string_view given,
                         const std::vector<std::string>& allowed);

// Texts of others (scenarios, file names, error messages) made harmless to whoever reads them on a terminal.

/// `text` with the characters that a terminal would obey written out: control characters (C0 without line
/// feed and tab, DEL, C1) as \u001b, which JSON reads as the same character, and bytes that are no UTF-8 as
/// \x9b. All else stays as it is, so texts without them come back unchanged.
std::string visible_text(std::string_view text);

/// The same on one line: line feeds and tabs become spaces.
std::string visible_line(std::string_view text);

/// How many bytes at the end of `text` begin a character of UTF-8 whose other bytes are still to come: 0–3.
std::size_t unfinished_bytes(std::string_view text);

/// The place of the first byte that is no UTF-8, the length of the text where there is none.
std::size_t first_byte_outside_utf8(std::string_view text);

// Numbers of things in texts for people.

/// "1 cell", "2 cells".
template <class Count>
std::string counted(Count count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace moelab
