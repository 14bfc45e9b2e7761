#pragma once

/// From a cell's configuration, which is JSON, to typed options.

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/json/json.h"
#include "app/metrics/metric_groups.h"
#include "app/scenario/scenario.h"
#include "sim/train/experiment.h"

namespace moelab {

/// Everything that a cell's configuration says.
struct CellOptions {
  ExperimentOptions experiment;
  std::vector<MetricOptions> metrics;
  std::set<std::string> saved;  ///< of "save"
  std::vector<std::pair<std::string, DataOptions>> evaluations;
  Seeds seeds;
  /// What each phase evaluates on, in the order of the experiment's phases.
  std::vector<std::vector<std::pair<std::string, DataOptions>>> phase_evaluations = {};
};

/// The cell with the data, loss, training and evaluations of one of its phases in place of its own.
CellOptions in_phase(const CellOptions& cell, std::size_t phase);

/// From a resolved configuration, {"data", "model", "loss", "train"} and more, its data, or a cell. Files
/// have to hold `contents` where these are given.
ExperimentOptions read_experiment(const Json& config);
DataOptions read_data(const Json& data, std::shared_ptr<FileContents> contents = nullptr);
CellOptions read_cell(const Cell& cell);
/// Data of the same layout that are drawn at once: with one cluster, where their number is free.
DataOptions read_small_data(Json data);

/// Every "data" of a configuration: its own, those of its evaluations and of its phases.
std::vector<const Json*> data_of(const CellConfig& config);

/// The files that a cell reads, those of its evaluations and phases too, as its configuration names them.
std::vector<std::string> files_read_by(const Cell& cell);

}  // namespace moelab
