#pragma once

/// `moelab analyze`: the metrics of a user's own arrays.

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/stats/claims.h"
#include "analysis/stats/intervals.h"
#include "app/dump/routing_input.h"
#include "app/scenario/json.h"
#include "sim/base/random.h"

namespace moelab {

/// The input of `moelab analyze`: a routing and arrays of its n rows. Rows may be tokens. If a layer's values
/// are (n, s, E), the other arrays also begin with the dimensions n and s.
struct AnalyzedArrays : RoutingInput {
  ArraySource inputs;          ///< x, (n, d)
  ArraySource router;          ///< W of a linear router, (E, d)
  ArraySource embeddings;      ///< the space of overlap and silhouette, (n, m)
  ArraySource expert_outputs;  ///< (n, E, o)
  int neighbours = 0;          ///< of expert overlap; 0: 10, or all other rows
  int threads = 0;             ///< layers measured at a time; 0: one per processor
  /// Ends the measurement once it is true.
  const std::atomic<bool>* stop = nullptr;
};

/// What analyze_arrays throws once `stop` is true.
struct AnalysisStopped {};

/// The measurements of one layer.
struct LayerAnalysis {
  int layer = 0;
  std::string name;                 ///< of its array; empty for the only one
  Json metrics = Json::object();    ///< {name: value}
  Json skipped = Json::object();    ///< {name: why it is left out}
  Json intervals = Json::object();  ///< {name: [low, high]}
  Json chance = Json::object();     ///< {name: value under chance}
  Json experts = Json::object();    ///< {"load": (E), …}
  Json matrices = Json::object();   ///< {"domain": {"rows": names, "columns": names, "values": …}, …}
  Json documents = Json::object();  ///< {"document": numbers, name: values}; empty for many documents
};

/// Metrics of a user's arrays. With one layer, `metrics` follow the table of metric groups and its order.
/// With several layers, `metrics` are about all layers together. No rows of two layers are pooled.
struct ArrayAnalysis {
  Json metrics = Json::object();              ///< {name: value}
  Json skipped = Json::object();              ///< {name: why it is left out}
  Json settings = Json::object();             ///< sizes and choices behind the numbers
  std::map<std::string, Interval> intervals;  ///< 95 %, of metrics that are a mean over a sample of rows
  std::vector<LayerAnalysis> layers;
  Json means = Json::object();      ///< over layers, of their values
  Json matrices = Json::object();   ///< of pairs of layers
  std::vector<std::string> checks;  ///< what was found and assumed
};

/// The seeds of the shuffled baseline and of sampled rows. A run's first cell has the same seeds by default.
constexpr Seeds kAnalysisSeeds{1, 0};

/// Overlap and silhouette compare every row with every other up to this many rows. With more rows, a random
/// sample is compared with all rows.
constexpr std::int64_t kMaxAllRows = 5000;
constexpr std::int64_t kQueryRows = 1000;

/// Measures every metric group (analysis/metrics/metric_groups.h) that the arrays allow. Throws UserError for
/// arrays that do not fit.
ArrayAnalysis analyze_arrays(const AnalyzedArrays& arrays);

/// The entries that some layer has, such as its metrics. The first layer with an entry gives its value.
Json in_some_layer(const ArrayAnalysis& analysis, Json LayerAnalysis::*entries);

/// The analysis that `answer` of to_json() holds.
ArrayAnalysis analysis_of(const Json& answer);

/// The answer of `moelab analyze --json`. Its keys are the fields of ArrayAnalysis. With more than
/// `most_experts` experts, it has no matrices of pairs of experts.
Json to_json(const ArrayAnalysis& analysis, int most_experts = 1 << 20);

/// Judges claims such as "routing_entropy <": the metric is smaller here than in the other analysis. The
/// operators are < and >. Documents are the pairs, so each layer is a point with its paired t interval. The
/// two models may differ in everything but the documents. Throws UserError at `option` for other documents,
/// for layers that differ, and for unknown metrics.
std::vector<ClaimResult> judge_analyses(const ArrayAnalysis& own, const ArrayAnalysis& other,
                                        const std::vector<std::string>& claims, const std::string& option);

}  // namespace moelab
