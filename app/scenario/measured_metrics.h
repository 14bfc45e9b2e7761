#pragma once

/// Which metrics a cell measures.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/metrics/metric_groups.h"
#include "app/scenario/cell_config.h"

namespace moelab {

/// The metrics of a resolved configuration, evaluations resolved too. Options are read, and a small problem
/// is drawn, where a metric asks for them.
class MeasuredMetrics {
 public:
  explicit MeasuredMetrics(CellConfig config) : config_(std::move(config)) {}

  /// The cell measures the metric: its group is chosen, the evaluation, the layer and the entry are there,
  /// and so is what the metric is taken of. Throws UserError at `path`, which names the
  /// arm unless it is empty.
  void check(const std::string& metric, const std::string& path, const std::string& arm = "") const;
  /// All that check() accepts.
  std::vector<std::string> names() const;

 private:
  /// A test set: the cell's own, or one of its evaluations.
  struct Subject;
  const MetricSubject& subject(const std::string& evaluation) const;

  CellConfig config_;
  mutable std::map<std::string, std::shared_ptr<const Subject>> subjects_;
};

/// Whether the metric is known at the last step alone: no meter takes it.
bool is_of_end_alone(const std::string& metric);

}  // namespace moelab
