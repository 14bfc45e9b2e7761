#pragma once

/// Scenarios that are refused, and what is said of them.

#include <doctest/doctest.h>

#include <initializer_list>

#include "app/scenario/scenario.h"
#include "sim/base/error.h"
#include "tests/app/scenario/example.h"

namespace moelab {

/// Expanding the document is refused at that place, with a message that holds this text.
inline void check_refused(const Json& document, const std::string& profile,
                          const std::vector<std::string>& settings, const std::string& path,
                          const std::string& message) {
  try {
    expand_scenario(document, profile, settings);
    FAIL_CHECK("accepted");
  } catch (const UserError& error) {
    CHECK(error.path() == path);
    CHECK_MESSAGE(error.message().find(message) != std::string::npos, error.message());
  }
}

/// The example with one value changed, and what is said of it.
struct RefusedChange {
  const char* pointer;
  const char* value;
  const char* path;
  const char* message;
};

inline void check_refused_changes(std::initializer_list<RefusedChange> changes) {
  for (const RefusedChange& change : changes) {
    CAPTURE(change.pointer);
    CAPTURE(change.value);
    check_refused(example_with(change.pointer, change.value), "", {}, change.path, change.message);
  }
}

}  // namespace moelab
