#include <fmt/format.h>

#include <set>
#include <sstream>

#include "app/cli/analyze.h"
#include "app/scenario/claim_reader.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr const char *kOwn = "this", *kOther = "other";

void add_analysis(const ArrayAnalysis& analysis, const char* arm, const std::set<int>& layers,
                  ResultTable& table) {
  table.arms.emplace_back(arm);
  for (const LayerAnalysis& layer : analysis.layers) {
    if (!layers.contains(layer.layer)) continue;
    const Json& documents = layer.documents.at("document");
    for (std::size_t at = 0; at < documents.size(); ++at) {
      ResultRow& row = table.rows.emplace_back();
      row.arm = arm;
      row.seed = documents.at(at).get<int>();
      row.point.emplace_back("layer", SweepValue(layer.layer));
      row.state = "done";
      for (const auto& [name, values] : layer.documents.items()) {
        const Json& value = values.at(at);
        if (name != "document" && value.is_number()) row.metrics[name] = value.get<double>();
      }
    }
  }
}

const LayerAnalysis* layer_of(const ArrayAnalysis& analysis, int number) {
  for (const LayerAnalysis& layer : analysis.layers) {
    if (layer.layer == number && !layer.documents.empty()) return &layer;
  }
  return nullptr;
}

/// The layers of both. Their documents have as many tokens.
std::set<int> common_layers(const ArrayAnalysis& own, const ArrayAnalysis& other, const std::string& option) {
  std::set<int> layers;
  for (const LayerAnalysis& layer : own.layers) {
    const LayerAnalysis* const same = layer_of(other, layer.layer);
    if (layer.documents.empty() || !same) continue;
    for (const char* const name : {"document", "tokens"}) {
      if (layer.documents.at(name) != same->documents.at(name))
        throw UserError(option, fmt::format("has other documents in layer {}, or documents of other lengths; "
                                            "claims compare the same documents",
                                            layer.layer));
    }
    layers.insert(layer.layer);
  }
  if (layers.empty())
    throw UserError(option,
                    "has no layer and documents in common with this analysis; needs --documents or "
                    "--lengths in both, and layers of equal numbers");
  return layers;
}

}  // namespace

std::vector<ClaimResult> judge_analyses(const ArrayAnalysis& own, const ArrayAnalysis& other,
                                        const std::vector<std::string>& claims, const std::string& option) {
  const std::set<int> layers = common_layers(own, other, option);
  const Json& measured = layer_of(own, *layers.begin())->documents;
  Json written = Json::array();
  for (const std::string& claim : claims) {
    std::istringstream words(claim);
    std::string metric, op, more;
    words >> metric >> op >> more;
    if ((op != "<" && op != ">") || !more.empty())
      throw UserError(
          "--claim",
          fmt::format("got '{}', needs a metric and < or >, such as \"routing_entropy <\"", claim));
    if (metric == "document" || !measured.contains(metric)) {
      std::vector<std::string> names;
      for (const auto& [name, unused] : measured.items()) {
        if (name != "document") names.push_back(name);
      }
      throw UserError("--claim", unknown_name("metric", metric, names));
    }
    written.push_back({{"id", claim},
                       {"left", {{"arm", kOwn}, {"metric", metric}}},
                       {"op", op},
                       {"right", {{"arm", kOther}, {"metric", metric}}},
                       {"at", "each"}});
  }
  ResultTable table;
  table.sweep_paths = {"layer"};
  add_analysis(own, kOwn, layers, table);
  add_analysis(other, kOther, layers, table);
  // Metrics of a document can be 0, so differences are compared and not their logarithms.
  return evaluate_claims(read_claims(written), table, [](const std::string&) { return false; });
}

}  // namespace moelab
