#pragma once

/// From a cell's configuration, which is JSON, to typed options.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/json/json.h"
#include "app/metrics/metric_groups.h"
#include "sim/train/experiment.h"

namespace moelab {

/// Everything that a cell's configuration says.
struct CellOptions {
  ExperimentOptions experiment;
  std::vector<MetricOptions> metrics;
  std::set<std::string> saved;  ///< of "save"
  std::vector<std::pair<std::string, DataOptions>> evaluations;
  Seeds seeds;
};

/// From a resolved configuration, or its parts: {"data", "model", "loss", "train"}, `data`, "seed". The
/// configuration of CellOptions has every part of Cell::config.
ExperimentOptions read_experiment(const Json& config);
DataOptions read_data(const Json& data);
Seeds read_seeds(const Json& config);
CellOptions read_cell(const Json& config);

}  // namespace moelab
