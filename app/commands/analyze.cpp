#include "app/commands/analyze.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "app/commands/array_analysis.h"
#include "app/commands/verbs.h"

namespace moelab {
namespace {

std::string value_text(const ArrayAnalysis& analysis, const std::string& name, double value) {
  const auto interval = analysis.intervals.find(name);
  if (interval == analysis.intervals.end()) return fmt::format("{:.6g}", value);
  return fmt::format("{:.4g} ± {:.2g}", value, (interval->second.high - interval->second.low) / 2);
}

/// What the numbers rest on, one sentence to a line.
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

Json to_json(const ArrayAnalysis& analysis) {
  Json intervals = Json::object();
  for (const auto& [name, interval] : analysis.intervals)
    intervals[name] = Json::array({interval.low, interval.high});
  return {{"metrics", analysis.metrics},
          {"skipped", analysis.skipped},
          {"intervals", std::move(intervals)},
          {"settings", analysis.settings}};
}

int run_analyze_command(const AnalyzedArrays& arrays, bool json) {
  const ArrayAnalysis analysis = analyze_arrays(arrays);
  std::cout << (json ? to_json(analysis).dump(2) + "\n" : to_text(analysis));
  return 0;
}

Verb analyze_verb() {
  return {"analyze", "Measure routing from your own arrays (.npy, rows may be (n, s) tokens)",
          "analyze --probs P.npy --labels C.npy --inputs X.npy --router W.npy",
          [](Arguments& arguments) -> VerbCall {
            const auto files = std::make_shared<AnalyzedArrays>();
            return {
                {{"--probs", &files->probs.file, "routing probabilities (n, E)"},
                 {"--logits", &files->logits.file, "or the router's scores (n, E), whose softmax they are"},
                 {"--labels", &files->labels.file, "cluster of each row, integers (n), for sparsity"},
                 {"--inputs", &files->inputs.file, "router inputs (n, d)"},
                 {"--router", &files->router.file,
                  "weights (E, d) of a linear router, for the shuffled baseline"},
                 {"--embeddings", &files->embeddings.file,
                  "where overlap and silhouette are measured (n, m) (default: the inputs)"},
                 {"--expert-outputs", &files->expert_outputs.file, "outputs of every expert (n, E, o)"},
                 {"--previous-probs", &files->previous_probs.file,
                  "an earlier snapshot of --probs, for fluctuation"},
                 {"--previous-logits", &files->previous_logits.file, "or of --logits"},
                 {"--previous-assignments", &files->previous_assignments.file,
                  "or its experts, integers (n), or (n, K) with --top-k K"},
                 {"--top-k", &files->top_k,
                  "experts that serve a row: load and fluctuation count them (default 1)", false,
                  whole_number(1, 1000000)},
                 {"--neighbours", &files->neighbours,
                  "neighbours of expert overlap (default 10, or all other rows where they are fewer)", false,
                  whole_number(1, 1000000)},
                 json_option(arguments)},
                [files, &arguments] { return run_analyze_command(*files, arguments.json); }};
          }};
}

}  // namespace moelab
