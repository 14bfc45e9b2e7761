#pragma once

/// From the points of an arm's sweep to configurations.

#include <optional>
#include <set>
#include <span>
#include <string>

#include "app/json/schema.h"
#include "app/scenario/cell_config.h"
#include "app/scenario/overrides.h"
#include "sim/train/experiment.h"

namespace moelab {

/// Resolves and checks the points of an arm's sweep one after another. All of them override the same paths,
/// so that parts of a configuration which no path names are resolved, read and looked up at the first point
/// alone: a third of the time of a sweep over one rate.
class PointResolver {
 public:
  /// `base` is the configuration before arms and sweep, not resolved, `arm` the overrides of the arm.
  PointResolver(const Json& base, std::span<const Override> arm, SharedParts& parts);

  /// The configuration at a point, whose paths are those of the points before it. Throws UserError at the
  /// override that is wrong.
  CellConfig config(std::span<const Override> point);

 private:
  void start(std::span<const Override> point);
  void change(std::span<const Override> point);
  void read_changed();
  bool is_changing(const std::string& part) const { return changing_.contains(part); }

  const Json& base_;
  std::span<const Override> arm_;
  SharedParts& parts_;

  Json arm_document_;               ///< base and arm
  std::set<std::string> changing_;  ///< parts that a point names, or that are made of all parts
  Shape changing_shape_;            ///< of the configuration, with these alone
  // Of the point before, if there was one: not resolved, resolved, read, and with shared parts.
  Json document_, config_;
  std::optional<ExperimentOptions> experiment_;
  CellConfig shared_;
};

}  // namespace moelab
