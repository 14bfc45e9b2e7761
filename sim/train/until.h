#pragma once

/// `train.until`: when training ends before its steps are done. Whoever trains looks at its metrics; the
/// options are checked and described here.

#include <optional>
#include <string>

#include "sim/base/options.h"

namespace moelab {

/// A metric that no longer falls: the least of its last `records` values is not below (1 − relative) times
/// the least of those before.
struct PlateauOptions {
  std::string metric;
  int records = 5;
  double relative = 0.01;
  void bind(Fields& fields);
};

/// One of three rules, looked at after every record: a metric at most `below` or at least `above` a level; a
/// plateau; a budget of operations, 6 · (parameters that a row reaches) · (rows) a step.
struct UntilOptions {
  std::optional<std::string> metric = std::nullopt;
  std::optional<double> below = std::nullopt;
  std::optional<double> above = std::nullopt;
  std::optional<PlateauOptions> plateau = std::nullopt;
  std::optional<double> flops = std::nullopt;
  void bind(Fields& fields);

  /// The metric that the rule looks at; empty for a budget.
  std::string looked_at() const { return plateau ? plateau->metric : metric.value_or(""); }
};

/// Exactly one rule, whole. Throws InvalidOption at "train.until…".
void check(const UntilOptions& options);

}  // namespace moelab
