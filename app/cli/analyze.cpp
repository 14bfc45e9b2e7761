#include "app/cli/analyze.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <set>
#include <utility>

#include "analysis/metrics/meters.h"
#include "app/cli/array_rows.h"
#include "app/cli/verbs.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr const char *kNotFinite = "not finite: the numbers of its arrays are too large",
                     *kNoValue = "has no value for these arrays";

/// The analysis of one routing, and of an earlier one if it is given.
class Analysis {
 public:
  explicit Analysis(const AnalyzedArrays& arrays) : files_(open_arrays(arrays)), given_(files_.given()) {
    const NpyReader* const earlier = files_.previous_probs         ? &*files_.previous_probs
                                     : files_.previous_assignments ? &*files_.previous_assignments
                                                                   : nullptr;
    if (earlier) previous_.emplace(files_, *earlier, 0, nullptr);
    rows_.emplace(files_, files_.probs, 1, previous_ ? &*previous_ : nullptr);
  }

  ArrayAnalysis run() {
    for (const MetricGroup& group : metric_groups()) {
      const LayerMetrics measured = measure(group);
      for (const MetricGroup::Metric& metric : group.metrics) report(metric, measured);
    }
    add_settings();
    return std::move(result_);
  }

 private:
  /// The group's metrics; none where no metric of it applies to the arrays.
  LayerMetrics measure(const MetricGroup& group) {
    LayerMetrics metrics;
    const auto applies = [&](std::string_view metric) { return applies_to(metric, given_); };
    const bool is_asked = std::any_of(group.metrics.begin(), group.metrics.end(),
                                      [&](const auto& metric) { return applies(metric.name); });
    if (!group.make_row_meter || !is_asked) return metrics;
    const AnyOptions options = group.options_for ? group.options_for(given_) : group.defaults;
    const std::unique_ptr<RowMeter> meter = group.make_row_meter(options, {applies});
    if (previous_) meter->remember(*previous_);
    meter->measure(*rows_, metrics);
    if (previous_) meter->complete(previous_->step(), previous_->layer(), metrics.values);
    return metrics;
  }

  /// Puts a metric among the results, or says why it is left out.
  void report(const MetricGroup::Metric& metric, const LayerMetrics& measured) {
    const std::string& name = metric.name;
    if (!applies_to(name, given_)) {
      const std::vector<std::string> missing = missing_arguments(name, given_);
      if (!missing.empty()) result_.skipped[name] = fmt::format("needs {}", fmt::join(missing, ", "));
      return;
    }
    std::optional<MeanEstimate> found;
    if (const auto value = measured.values.find(name); value != measured.values.end())
      found = MeanEstimate{value->second, 1, {}};
    if (const auto of_rows = measured.of_rows.find(name);
        of_rows != measured.of_rows.end() && !of_rows->second.empty()) {
      found = mean_estimate(of_rows->second);
      if (std::ssize(of_rows->second) == files_.rows()) found->interval.reset();  // no sample
    }
    if (!found) {
      result_.skipped[name] = metric.otherwise.empty() ? kNoValue : metric.otherwise;
    } else if (!std::isfinite(found->mean)) {
      result_.skipped[name] = kNotFinite;
    } else {
      result_.metrics[name] = found->mean;
      if (found->interval) result_.intervals[name] = *found->interval;
    }
  }

  void add_settings() {
    Json& settings = result_.settings;
    settings["rows"] = files_.rows();
    settings["experts"] = files_.experts;
    if (files_.top_k > 1) settings["top_k"] = files_.top_k;
    if (!rows_->clusters().empty()) {
      const std::vector<int>& labels = rows_->clusters().front().labels.front();
      settings["clusters"] = std::set<int>(labels.begin(), labels.end()).size();
    }
    if (rows_->shuffles() > 0) {
      settings["shuffles"] = rows_->shuffles();
      settings["seed"] = kAnalysisSeeds.root;
      settings["router_difference"] = rows_->router_difference();
    }
    if (!files_.space()) return;
    settings["space"] = files_.space()->place();
    settings["neighbours"] = std::min<std::int64_t>(files_.neighbours, files_.rows() - 1);
    if (files_.rows() <= kMaxAllRows) return;
    settings["sampled_rows"] = kQueryRows;
    settings["seed"] = kAnalysisSeeds.root;
  }

  ArrayFiles files_;
  GivenArrays given_;
  std::optional<ArrayRows> previous_, rows_;
  ArrayAnalysis result_;
};

/// "0.4142", or "0.41 ± 0.02" of a metric with an interval.
std::string value_text(const ArrayAnalysis& analysis, const std::string& name, double value) {
  const auto interval = analysis.intervals.find(name);
  if (interval == analysis.intervals.end()) return fmt::format("{:.6g}", value);
  return fmt::format("{:.4g} ± {:.2g}", value, (interval->second.high - interval->second.low) / 2);
}

/// The settings in sentences, one to a line.
std::string notes(const Json& settings) {
  std::string text;
  if (settings.contains("shuffles")) {
    text += fmt::format(
        "shuffled: mean over {} column permutations of --router (seed {}); softmax of its scores differs "
        "from the routing given by at most {:.2g}\n",
        settings.at("shuffles").dump(), settings.at("seed").dump(),
        settings.at("router_difference").get<double>());
  }
  if (settings.contains("space")) {
    text +=
        fmt::format("expert_overlap: {} neighbours; like silhouette in the space of {}, by top-1 experts\n",
                    settings.at("neighbours").dump(), settings.at("space").get<std::string>());
  }
  if (settings.contains("sampled_rows")) {
    text += fmt::format("± : 95 % interval; {} rows drawn at random (seed {}), each against all rows\n",
                        settings.at("sampled_rows").dump(), settings.at("seed").dump());
  }
  return text;
}

std::string to_text(const ArrayAnalysis& analysis) {
  const Json& settings = analysis.settings;
  std::string text =
      fmt::format("{} rows, {} experts", settings.at("rows").dump(), settings.at("experts").dump());
  if (settings.contains("top_k")) text += fmt::format(", {} to a row", settings.at("top_k").dump());
  if (settings.contains("clusters")) text += fmt::format(", {} clusters", settings.at("clusters").dump());
  text += "\n\n";
  std::size_t width = 0;
  for (const Json* names : {&analysis.metrics, &analysis.skipped}) {
    for (const auto& [name, value] : names->items()) width = std::max(width, name.size());
  }
  for (const auto& [name, value] : analysis.metrics.items())
    text += fmt::format("{:<{}}  {}\n", name, width, value_text(analysis, name, value.get<double>()));
  const std::string below = notes(settings);
  if (!below.empty()) text += "\n" + below;
  if (!analysis.skipped.empty()) text += "\nleft out:\n";
  for (const auto& [name, reason] : analysis.skipped.items())
    text += fmt::format("{:<{}}  {}\n", name, width, reason.get<std::string>());
  return text;
}

}  // namespace

ArrayAnalysis analyze_arrays(const AnalyzedArrays& arrays) {
  return Analysis(arrays).run();
}

Json to_json(const ArrayAnalysis& analysis) {
  Json intervals = Json::object();
  for (const auto& [name, interval] : analysis.intervals)
    intervals[name] = Json::array({interval.low, interval.high});
  return {{"metrics", analysis.metrics},
          {"skipped", analysis.skipped},
          {"intervals", std::move(intervals)},
          {"settings", analysis.settings}};
}

namespace {

struct AnalyzeOptions {
  AnalyzedArrays arrays;
  bool json = false;

  void bind(VerbOptions& options) {
    options.add("--probs", &arrays.probs.file, "routing probabilities (n, E)");
    options.add("--logits", &arrays.logits.file, "or the router's scores (n, E), whose softmax they are");
    options.add("--labels", &arrays.labels.file, "cluster of each row, integers (n), for sparsity");
    options.add("--inputs", &arrays.inputs.file, "router inputs (n, d)");
    options.add("--router", &arrays.router.file,
                "weights (E, d) of a linear router, for the shuffled baseline");
    options.add("--embeddings", &arrays.embeddings.file,
                "where overlap and silhouette are measured (n, m) (default: the inputs)");
    options.add("--expert-outputs", &arrays.expert_outputs.file, "outputs of every expert (n, E, o)");
    options.add("--previous-probs", &arrays.previous_probs.file,
                "an earlier snapshot of --probs, for fluctuation");
    options.add("--previous-logits", &arrays.previous_logits.file, "or of --logits");
    options.add("--previous-assignments", &arrays.previous_assignments.file,
                "or its experts, integers (n), or (n, K) with --top-k K");
    options.add("--top-k", &arrays.top_k,
                "experts that serve a row: load and fluctuation count them (default 1)",
                {.check = whole_number(1, 1000000)});
    options.add("--neighbours", &arrays.neighbours,
                "neighbours of expert overlap (default 10, or all other rows where they are fewer)",
                {.check = whole_number(1, 1000000)});
    bind_json(options, json);
  }
};

int analyze(const AnalyzeOptions& options) {
  const ArrayAnalysis analysis = analyze_arrays(options.arrays);
  std::cout << (options.json ? to_json(analysis).dump(2) + "\n" : to_text(analysis));
  return 0;
}

}  // namespace

Verb analyze_verb() {
  return make_verb("analyze", "Measure routing from your own arrays (.npy, rows may be (n, s) tokens)",
                   "analyze --probs P.npy --labels C.npy --inputs X.npy --router W.npy", analyze);
}

}  // namespace moelab
