#pragma once

/// Which law an error follows, as far as the sizes at hand can tell.

#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/rates.h"

namespace moelab {

/// A law e(n) = C g(n) of the theory.
struct LawScore {
  std::string name;  ///< "n^-1/2", "n^-1/4" or "1/log^τ n"
  double tau = 0;    ///< of the last, fitted to all sizes
  /// Mean over repetitions of the log-likelihood of held-out sizes less that of the best law, at most 0, with
  /// its 95 % interval; none for the best law itself.
  std::optional<MeanEstimate> against_best;
  bool excluded = false;  ///< the interval lies below 0
};

struct LawComparison {
  std::vector<LawScore> laws;  ///< all three; empty with fewer than four sizes n > 1 or two repetitions
  std::string law;             ///< the one that is not excluded, or "not told apart"
  /// The least further size n at which the laws that are not excluded would differ by four standard errors,
  /// as many repetitions and as much noise given; none where one law is left or 10^15 would not do.
  std::optional<double> told_apart_at;
};

/// Each size is held out in turn. A law's constant C, and τ ≥ 0 of the logarithmic one, are fitted to the
/// means of ln e at the other sizes with weights 1 / v(n) as in estimate_rate(); the held-out errors have the
/// log-likelihood −(ln e − ln Ĉ ĝ(n))² / 2 v(n) up to what all laws share. No law is preferred for being
/// freer: what it fits is not what it is judged by.
LawComparison compare_laws(const RateData& data);

}  // namespace moelab
