#pragma once

/// The sides of a claim, and the pairs of sweep points at which it compares them.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/stats/claims.h"

namespace moelab {

/// One side: a constant, or a metric of an arm, which may be divided by that of another, or the distance of
/// two arms' curves of the metric.
struct ClaimSide {
  std::optional<double> value;
  std::string arm;
  std::string metric;
  std::string relative_to;    ///< arm by whose metric, at the same point, step and seed, it is divided
  std::string distance_from;  ///< arm from whose curve over training the side is the curve_rmse
  double factor = 1;
  SweepPoint where;  ///< coordinates that replace the claim's sweep point
  Json step;         ///< null or "end": the last step; "start": the first; or a recorded step

  std::string text() const;
};

struct Claim {
  ClaimSide left, right;
  char op = '<';         ///< '<', '>' or '~'
  double tolerance = 0;  ///< of '~'
  std::string text;
  std::vector<std::pair<SweepPoint, SweepPoint>> points;  ///< (left, right), each pair once
};

/// Reads one claim and finds its points in the table. Throws UserError below `path`.
Claim read_claim(const Json& claim, const ResultTable& table, const std::string& path);

/// "data.train_samples = 640, model.experts = 32"; empty for no coordinates.
std::string point_text(const SweepPoint& point);

}  // namespace moelab
