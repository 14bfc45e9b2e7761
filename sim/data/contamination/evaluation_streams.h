#pragma once

/// The streams of Purpose::evaluation.

#include <cstdint>

namespace moelab {

/// The numbers are part of the key: never renumber, only add. Rows and their replacements are drawn apart, so
/// that a larger share replaces the rows of a smaller one and more; attacks draw from one of their own.
enum EvaluationStream : std::uint64_t { kNoise = 0, kReplacedRows = 1, kReplacement = 2, kAttacks = 3 };

}  // namespace moelab
