#pragma once

/// Scenarios that are refused, and what is said of them.

#include <doctest/doctest.h>

#include "app/scenario/scenario.h"
#include "sim/base/error.h"

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

}  // namespace moelab
