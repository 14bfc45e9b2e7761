#pragma once

/// The outputs of commands, for tests of drawn figures.

#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <string>

namespace moelab {

/// What the command writes. It must succeed.
inline std::string output_of(const std::string& command) {
  std::string text;
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer{};
  while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), got);
  REQUIRE_MESSAGE(pclose(pipe) == 0, command);
  return text;
}

}  // namespace moelab
