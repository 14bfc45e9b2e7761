#pragma once

/// All errors of a scenario: collected by the rules, located in the files, answered as JSON.

#include <cstddef>
#include <string>
#include <vector>

#include "app/scenario/json.h"
#include "sim/base/error.h"

namespace moelab {

/// An error with its place in the text of a file. `line` is 0 if no file contains the value.
struct ScenarioError : UserError {
  std::string file;
  std::size_t line = 0, column = 0;

  ScenarioError(const InvalidOption& error) : UserError(error.path(), error.message()) {}
  /// " (file:line:column)"; empty without a place.
  std::string place_text() const;
};

/// All errors of one scenario, in the order of detection. As a UserError it equals the first.
class ScenarioErrors : public UserError {
 public:
  /// `all` is not empty.
  explicit ScenarioErrors(std::vector<ScenarioError> all) : UserError(all.front()), all_(std::move(all)) {}
  const std::vector<ScenarioError>& all() const { return all_; }

 private:
  std::vector<ScenarioError> all_;
};

/// The errors that `error` holds: all of a ScenarioErrors, otherwise the error itself.
std::vector<ScenarioError> errors_of(const InvalidOption& error);

/// Runs rules and collects the first error of each path. Further errors of a path mostly follow from the
/// first. After kMostErrors errors it runs no further rule.
class ErrorList {
 public:
  static constexpr std::size_t kMostErrors = 100;

  /// Whether the rule found no error.
  template <class Rule>
  bool check(const Rule& rule) {
    if (errors_.size() >= kMostErrors) return false;
    try {
      rule();
      return true;
    } catch (const InvalidOption& error) {
      add(error);
      return false;
    }
  }
  void add(const InvalidOption& error);  ///< no further ones after kMostErrors
  const std::vector<ScenarioError>& all() const { return errors_; }
  /// Throws ScenarioErrors if any rule failed.
  void throw_any() const {
    if (!errors_.empty()) throw ScenarioErrors(errors_);
  }

 private:
  std::vector<ScenarioError> errors_;
};

/// {"path", "line", "column", "message", "given", "allowed", "nearest"}. A missing part is null. The last
/// three come from the message. Its form is "got GIVEN, needs ALLOWED" or the form of unknown_name().
Json error_json(const ScenarioError& error);

}  // namespace moelab
