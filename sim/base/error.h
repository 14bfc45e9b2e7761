#pragma once

/// Errors of the kinds that a caller can act on. All are caught once, in app/main.cpp.

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

}  // namespace moelab
