#pragma once

/// Declares every field of a scenario file once. Shapes, the JSON Schema, docs/scenario.md, defaults and the
/// readers use these bindings.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/claims.h"
#include "app/scenario/json.h"
#include "app/scenario/schema.h"
#include "plots/kinds/figure_kind.h"
#include "sim/train/experiment.h"

namespace moelab {

/// The version of the scenario format that this program reads.
constexpr std::int64_t kScenarioVersion = 1;

/// {path: value, …}: overrides by dotted path.
using OverrideValues = NamedValues<AnyValue>;

/// A training phase. Its data, loss and train are overrides of the scenario's.
struct PhaseFields {
  std::string name;
  OverrideValues data, loss, train;
  std::vector<std::string> learns = {"router", "experts", "layers"};
  bool keep_optimizer = false;
  void bind(Fields& fields);
};

/// The part of a scenario that arms and sweeps can change: the configuration of a cell.
struct ConfigFields {
  DataOptions data;
  ModelOptions model;
  LossOptions loss;
  TrainOptions train;
  std::vector<PhaseFields> phases;
  std::vector<MetricOptions> metrics = default_metrics();
  std::vector<std::string> save;
  NamedValues<OverrideValues> evaluations;
  void bind(Fields& fields);

 private:
  static std::vector<MetricOptions> default_metrics();
};

/// Repetitions of every arm and sweep point.
struct SeedFields {
  std::uint64_t root = 1;
  std::int64_t count = 5;
  std::vector<std::string> shared;
  void bind(Fields& fields);
  /// `shared` in the encoding of Seeds.
  std::uint64_t shared_streams() const;
};

/// An entry of "tune".
struct TuneFields {
  double low = 0, high = 0;
  bool is_log = true;
  void bind(Fields& fields);
};

/// "objective": a metric, or {"metric", "direction"}.
struct StudyObjective {
  enum class Direction { min, max };
  std::string metric;
  std::optional<Direction> direction;  ///< unset: of the metric (is_larger_better)
  std::vector<Binding> alternatives();
};

/// All fields of a scenario file. Arms, sweep, evaluations and profiles are overrides of the JSON document;
/// they are applied before the document is read.
struct ScenarioFields : ConfigFields {
  std::string name, title, source;
  std::vector<std::string> notes;
  SeedFields seeds;
  std::optional<StudyObjective> objective;
  NamedValues<TuneFields> tune;
  NamedValues<std::string> labels;  ///< display names
  std::vector<ClaimOptions> claims;
  std::vector<FigureOptions> figures;
  void bind(Fields& fields);
};

/// The shape of a complete scenario file, as the reference documentation shows it.
const Shape& scenario_shape();
/// The shape of {"data", "model", "loss", "train", "metrics", "save", "evaluations"}, which arms and sweeps
/// can change.
const Shape& config_shape();
/// The shape of "data" and of the data of evaluations.
const Shape& data_shape();

/// The JSON Schema of scenario files. A file with "extends" only needs a name, and its other fields are not
/// checked.
Json scenario_file_schema();

}  // namespace moelab
