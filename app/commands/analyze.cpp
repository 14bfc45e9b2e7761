#include "app/commands/analyze.h"

#include <fmt/format.h>

#include <iostream>

#include "app/commands/array_analysis.h"

namespace moelab {
namespace {

Json to_json(const ArrayAnalysis& analysis) {
  Json intervals = Json::object();
  for (const auto& [name, interval] : analysis.intervals)
    intervals[name] = Json::array({interval.low, interval.high});
  return {{"metrics", analysis.metrics},
          {"skipped", analysis.skipped},
          {"intervals", std::move(intervals)},
          {"settings", analysis.settings}};
}

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

int run_analyze_command(const AnalyzedFiles& files, bool json) {
  const ArrayAnalysis analysis = analyze_arrays(files);
  std::cout << (json ? to_json(analysis).dump(2) + "\n" : to_text(analysis));
  return 0;
}

}  // namespace moelab
