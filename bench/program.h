#pragma once

/// main() of a program that is measured.

#include <exception>
#include <iostream>

#include "sim/base/error.h"

namespace moelab {

/// The status of `run`: 2 with its message where an option is refused, 3 where something else fails.
inline int guarded(const char* name, int (*run)(int, char**), int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const InvalidOption& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return 3;
  }
}

}  // namespace moelab
