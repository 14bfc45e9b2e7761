#pragma once

/// Numbers of things in texts for people.

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace moelab {

/// "1 cell", "2 cells".
template <class Count>
std::string counted(Count count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace moelab
