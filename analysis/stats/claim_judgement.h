#pragma once

/// The verdict on one point of a claim, see claims.h.

#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/claims.h"

namespace moelab {

/// Fewer pairs than this give intervals too wide to mean anything (the contract's rule).
constexpr int kMinimumPairs = 3;
constexpr double kLevel = 0.95;

/// What a difference is held against.
struct DecisionRule {
  Interval claimed;                    ///< the open range in which the claim holds
  std::optional<Interval> negligible;  ///< effects that do not matter
  int tests = 1;                       ///< points, any of which would refute the claim
  bool is_sequential = false;          ///< by the sequences of sequences.h, at any number of pairs
};

/// Verdict, p values and seeds_to_decide from at least kMinimumPairs differences.
void judge_differences(const std::vector<double>& differences, const DecisionRule& rule, ClaimPoint& point);

/// The same from point.signs, of a claim with `op` < or >; '~' stays inconclusive. Adds to the note.
void judge_signs(char op, int tests, bool is_sequential, ClaimPoint& point);

/// Appends a sentence to the point's note.
void add_note(ClaimPoint& point, const std::string& sentence);

}  // namespace moelab
