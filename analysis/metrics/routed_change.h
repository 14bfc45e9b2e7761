#pragma once

/// What changes between two routings of the same tokens, as sums over documents.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "analysis/metrics/routed_tokens.h"

namespace moelab {

/// One layer of two snapshots. K of E experts serve a token.
///
/// S and S' are the sets of a token. n_e and n'_e are the loads of an expert. N and N' are their sums.
///   routing_saturation        mean of |S ∩ S'| ÷ K
///   routing_fluctuation_topk  share of tokens with S ≠ S'
///   routing_fluctuation       share of tokens with another first choice
///   load_drift                ½ Σ_e |n_e ÷ N − n'_e ÷ N'|
///   max_violation_change      max n_e ÷ mean n_e − max n'_e ÷ mean n'_e
class RoutedChange {
 public:
  /// `documents` is 0 if they are unknown. `is_ordered` says that both sets come by score.
  RoutedChange(int experts, int top_k, int documents, bool is_ordered);

  /// Adds the two sets (K) of a token. −1 stands for no expert.
  void add(const int* before, const int* now, int document);

  RoutedValues values() const;
  /// Their 95 % intervals over documents, which both snapshots share.
  std::map<std::string, Interval> intervals(const DocumentStrata& strata, int times, Engine& engine) const;

 private:
  enum Place : std::size_t { kTokens, kCommon, kOtherSets, kOtherFirsts, kUnits };
  std::size_t width() const { return kUnits + 2 * experts_; }
  RoutedValues values_of(std::span<const double> sums) const;

  std::size_t experts_, top_k_;
  bool is_by_document_, is_ordered_;
  std::vector<double> sums_;  // (documents, width()), one document where they are unknown
};

}  // namespace moelab
