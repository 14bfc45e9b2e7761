#pragma once

/// Contracts between parts of the program: shapes, strides, padding. Checked in debug and sanitizer builds.

#include <cassert>

/// Nothing in a release build; elsewhere a condition that does not hold ends the program where it stands.
#ifdef NDEBUG
#define MOELAB_EXPECT(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#else
#define MOELAB_EXPECT(condition) assert(condition)
#endif
