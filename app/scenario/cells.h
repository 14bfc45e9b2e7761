#pragma once

/// What a cell's id is made of.

#include <boost/uuid/detail/sha1.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/metrics/metric_groups.h"
#include "app/scenario/json.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario.h"
#include "app/scenario/schema.h"
#include "sim/base/random.h"
#include "sim/data/file_contents.h"
#include "sim/train/experiment.h"

namespace moelab {

/// The ids of a configuration's cells: two that give the same numbers for sure have the same. Fields at their
/// defaults are left out, and every file that is read counts by what it holds, of the data and of those of
/// evaluations; a folder by the files in it.
class CellIds {
 public:
  /// 16 hexadecimal digits.
  std::string id(const Seeds& seeds) const;

 private:
  friend class CellIdentities;
  boost::uuids::detail::sha1 before_;  ///< has taken the hashed text up to that of the seeds
  std::string after_;                  ///< and what follows
};

/// The ids of many configurations, of whose parts most are the same objects. Several threads may ask.
class CellIdentities {
 public:
  /// `contents` has to outlive it.
  explicit CellIdentities(FileContents& contents) : contents_(contents) {}
  /// Throws EnvironmentError where a file cannot be read.
  CellIds of(const CellConfig& config);

 private:
  using SharedPart = std::shared_ptr<const CellConfig::Part>;
  std::string text_of(const SharedPart& part);

  FileContents& contents_;
  std::mutex mutex_;
  std::unordered_map<SharedPart, std::string> texts_;  ///< of each part that was met
};

// From a cell's configuration, which is JSON, to typed options.

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

// From the points of an arm's sweep to configurations.

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

// Overrides that cells would not show, since the sweep or an arm sets the same field after them.

struct Arm {
  std::string name;
  std::vector<Override> overrides;
};

/// Throws UserError at the place of an override, be it of an arm or a profile, that the sweep replaces in
/// every cell. An arm or the sweep may well change a part of what it sets.
void check_not_swept(std::span<const Override> overrides, std::span<const SweepAxis> axes);

/// The same for overrides of the command line, of which nothing may be replaced, in no arm: who asks there
/// for a value gets it in every cell.
void check_settings(std::span<const Override> settings, std::span<const Arm> arms,
                    std::span<const SweepAxis> axes);

// From an arm and the points of a sweep to cells.

/// Expands a scenario, the points of a large sweep by as many threads as there are processors.
class CellExpansion {
 public:
  /// `base` is the configuration before arms and sweep, not resolved, and `seeds` the resolved field of a
  /// scenario.
  CellExpansion(const Json& base, const Json& seeds);

  /// Appends the cells of an arm at all `points`, of every seed; `point_at` gives the overrides of the i-th,
  /// whose paths are the same at all.
  /// Throws UserError at the override that is wrong, of the first point where one is.
  void add_cells(const Arm& arm, std::size_t points,
                 const std::function<std::vector<Override>(std::size_t)>& point_at, std::vector<Cell>& cells);

 private:
  void add_cells_at(const Arm& arm, PointResolver& resolver, std::vector<Override> point,
                    std::vector<Cell>& cells);

  const Json& base_;
  int seed_count_;
  Seeds seeds_;
  std::shared_ptr<FileContents> contents_;
  SharedParts parts_;
  CellIdentities identities_;
};

// The parts of a configuration that stand over others of it: evaluations and phases.

/// {name: its data}, each the data of `document` (a configuration that is not resolved) after the
/// evaluation's own overrides; their rows have the shape of `data`, which the model reads, and tokens of text
/// are its. Throws UserError at the place of an override.
Json resolved_evaluations(const Json& document, const Json& data, Json evaluations);

/// The phases of a resolved `config`, each with the whole of its data, loss, training and evaluations: those
/// of `document` after the phase's own fields. Throws UserError at the place of a field.
Json resolved_phases(const Json& document, const Json& config);

}  // namespace moelab
