#pragma once

/// What a scenario claims of its results; how claims are judged: claims.h, rate_claims.h.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "analysis/stats/rates.h"
#include "analysis/stats/sweep_value.h"

namespace moelab {

/// When a side is taken: at the end of training, at its start, or at a recorded step.
struct ClaimStep {
  enum class At { end, start, recorded };
  At at = At::end;
  std::int64_t step = 0;  ///< of `recorded`

  bool operator==(const ClaimStep&) const = default;
};

/// One side: a constant, or a metric of an arm, which may be divided by that of another, or the distance of
/// two arms' curves of the metric.
struct ClaimSide {
  std::string value;  ///< a number or an expression of swept paths (expression.h); empty for an arm's metric
  std::string arm;
  std::string metric;         ///< a metric, or an expression of metrics and swept paths
  std::string relative_to;    ///< arm by whose metric, at the same point, step and seed, it is divided
  std::string distance_from;  ///< arm from whose curve over training the side is the curve_rmse
  double factor = 1;
  SweepPoint where;               ///< coordinates that replace the claim's sweep point
  std::optional<ClaimStep> step;  ///< unset: the end

  bool is_constant() const { return !value.empty(); }
  std::string text() const;
};

/// The sweep points at which a claim stands.
struct ClaimPlaces {
  enum class Which { each, last, listed };
  Which which = Which::each;
  /// Of `listed`: coordinates, or the bare value of the only swept path.
  std::vector<std::variant<SweepPoint, SweepValue>> listed;
};

/// At what the two sides of a comparison are equal where they are read, pair by pair: the ends of training
/// (or what each side's `step` says); the training loss, the greater of the two least that were recorded,
/// each side at its first record at or below it; or the operations, the fewer of the two, each side at its
/// last record within them.
enum class Matched { steps, loss, flops };
std::string to_string(Matched matched);

/// What `matched` looks at, beside the metrics compared; empty for steps.
std::string matched_metric(Matched matched);

/// left < right, left > right, or left equal to right within a relative tolerance.
struct Comparison {
  ClaimSide left, right;
  char op = '<';         ///< '<', '>' or '~'
  double tolerance = 0;  ///< of '~'
  ClaimPlaces at;
  Matched matched = Matched::steps;
};

/// What of a trend is judged: the last swept value (the end, for "step") against the first; or that and each
/// step from one value to the next.
enum class TrendShape { ends, monotone };
std::string to_string(TrendShape shape);

struct Trend {
  ClaimSide side;  ///< without a place of its own
  bool increases = false;
  std::string along;  ///< a swept path, or "step"
  TrendShape shape = TrendShape::ends;
};

/// The slope of ln metric on ln n is a number within a tolerance, or `slower` than one.
struct RateClaim {
  RateQuery query;
  bool slower = false;
  std::variant<double, std::string> against = 0.0;  ///< a slope, or with `slower` an arm that has one
  double tolerance = kRateTolerance;
};

/// Whose claim it is.
enum class Origin { ours, paper };
std::string to_string(Origin origin);

struct Claim {
  std::string id;
  std::variant<Comparison, Trend, RateClaim> statement;
  Origin origin = Origin::ours;
  std::optional<std::string> text;  ///< in words, those of the paper where it is the paper's
  /// Effects below it do not matter: of logarithms ln(1 + it), else in the metric's units.
  std::optional<double> smallest_effect;
  bool is_tuned = false;  ///< each arm has rates (and what else) of its own, tuned with equal budgets
  std::string source;
  std::string reported;  ///< the paper's number as the scenario writes it, never a pass mark; empty for none
};

}  // namespace moelab
