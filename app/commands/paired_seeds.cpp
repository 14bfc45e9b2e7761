#include "app/commands/paired_seeds.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/stats/bands.h"
#include "app/metrics/metric_groups.h"
#include "app/run/summary.h"

namespace moelab {

PairedSeeds paired_seeds(const std::vector<SeedPair>& pairs, const std::string& metric, bool is_sequential) {
  PairedSeeds paired;
  paired.count = static_cast<int>(pairs.size());
  paired.is_sequential = is_sequential;
  if (may_be_censored(metric)) {
    paired.signs.emplace();
    for (const SeedPair& pair : pairs) paired.signs->add(pair.own, pair.first);
    return paired;
  }
  std::vector<double> differences, ratios;
  for (const SeedPair& pair : pairs) {
    differences.push_back(pair.own.low - pair.first.low);
    ratios.push_back(pair.own.low / pair.first.low);
  }
  paired.difference = seed_estimate(differences, false, is_sequential);
  const bool is_positive = std::all_of(pairs.begin(), pairs.end(), [](const SeedPair& pair) {
    return pair.own.low > 0 && pair.first.low > 0;
  });
  if (is_positive && is_declared_positive(metric)) paired.ratio = seed_estimate(ratios, true, is_sequential);
  return paired;
}

std::string paired_text(const PairedSeeds& paired) {
  if (const std::optional<SignCounts>& signs = paired.signs) {
    std::string text = fmt::format("{} below, {} above, {} tied", signs->below, signs->above, signs->ties);
    // Of a value and of a seed that stopped before it one does not know.
    return signs->undecided == 0 ? text : text + fmt::format(", {} undecided", signs->undecided);
  }
  if (!paired.ratio) return "difference " + estimate_text(paired.difference);
  return "ratio " + geometric_estimate_text(*paired.ratio);
}

Json paired_json(const PairedSeeds& paired) {
  Json json = {{"mean", nullptr}, {"count", paired.count}, {"interval", nullptr}};
  if (paired.difference) {
    json["mean"] = paired.difference->mean;
    json["interval"] = interval_json(paired.difference->interval);
    if (paired.is_sequential) json["test"] = "t mixture";
  }
  json["scale"] = paired.ratio ? "ratio" : "difference";
  if (paired.ratio)
    json["ratio"] = {{"mean", paired.ratio->mean}, {"interval", interval_json(paired.ratio->interval)}};
  if (const std::optional<SignCounts>& signs = paired.signs)
    json["signs"] = {{"below", signs->below},
                     {"above", signs->above},
                     {"ties", signs->ties},
                     {"undecided", signs->undecided}};
  return json;
}

}  // namespace moelab
