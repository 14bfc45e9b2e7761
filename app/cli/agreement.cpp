#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <span>
#include <system_error>

#include "analysis/metrics/metric_groups.h"
#include "app/cli/verbs.h"
#include "app/run/measurement.h"
#include "app/run/results.h"
#include "app/scenario/overrides.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

Json place_json(const RoutingPlace& place) {
  return {{"run", place.run}, {"arm", place.arm}, {"at", point_json(place.point)}};
}

/// Pairs of seeds share their seeds: they are no independent values, and have no interval.
MeanEstimate agreement_estimate(const std::vector<double>& values, bool of_seeds) {
  MeanEstimate estimate = mean_estimate(values);
  if (of_seeds) estimate.interval.reset();
  return estimate;
}

Json agreement_json(const RoutingAgreement& agreement) {
  Json json = {{"left", place_json(agreement.left)},
               {"right", place_json(agreement.right)},
               {"layer", MetricKey::parse("routing_ari" + agreement.layer).layer.value_or(0)},
               {"between", agreement.of_seeds ? "seeds" : "places"},
               {"pairs", agreement.ari.size()}};
  const auto add = [&](const char* name, const std::vector<double>& values) {
    const MeanEstimate estimate = agreement_estimate(values, agreement.of_seeds);
    json[name] = {{"mean", estimate.mean}, {"interval", nullptr}};
    if (estimate.interval) json[name]["interval"] = {estimate.interval->low, estimate.interval->high};
  };
  add("routing_ari", agreement.ari);
  add("routing_nmi", agreement.nmi);
  add("routing_divergence", agreement.divergence);
  return json;
}

/// ", data.dim = 3"; empty without a sweep.
std::string ending_of(const SweepPoint& point) {
  std::string text;
  for (const auto& [path, value] : point) text += fmt::format(", {} = {}", path, value.text());
  return text;
}

/// What differs, and where it does: "learned | frozen, data.dim = 3".
std::string pair_text(const RoutingAgreement& agreement) {
  const RoutingPlace &left = agreement.left, &right = agreement.right;
  std::string text = left.arm + ending_of(left.point);
  if (agreement.of_seeds) {
    text += ", between seeds";
  } else if (left.run != right.run) {
    text += fmt::format(", {} | {}", left.run, right.run);
  } else if (left.arm != right.arm) {
    text = fmt::format("{} | {}{}", left.arm, right.arm, ending_of(left.point));
  } else {
    text += " |" + ending_of(right.point).substr(1);
  }
  return agreement.layer.empty() ? text : fmt::format("{} ({})", text, agreement.layer.substr(1));
}

/// The last of the runs is none of those before it: its pairs would count twice.
void check_given_once(const std::vector<NamedRun>& runs) {
  const NamedRun& last = runs.back();
  for (const NamedRun& run : std::span(runs).first(runs.size() - 1)) {
    std::error_code unseen;
    if (!std::filesystem::equivalent(run.directory, last.directory, unseen)) continue;
    if (run.results.plan.at("id") != last.results.plan.at("id")) continue;
    throw UserError("DIR", fmt::format("'{}' is the plan {} of '{}' a second time; needs each run once",
                                       last.name, last.results.plan.at("id").get<std::string>(), run.name));
  }
}

int print_agreement(const Arguments& arguments) {
  std::vector<NamedRun> runs;
  for (const std::filesystem::path& given : arguments.directories) {
    const RunAddress address(given, arguments.plan);
    runs.push_back({given.string(), address.directory(), load_results(address, RecordPart::metrics)});
    check_given_once(runs);
    print_notes(runs.back().results);
  }
  const std::vector<RoutingAgreement> agreements = routing_agreements(runs);
  if (agreements.empty()) {
    throw UserError("DIR",
                    "holds no two saved routings of the same test rows; needs two arms, sweep points or runs "
                    "with \"save\": [\"routing\"], and equal test data");
  }
  if (arguments.json) {
    Json list = Json::array();
    for (const RoutingAgreement& agreement : agreements) list.push_back(agreement_json(agreement));
    const Json answer = {{"agreements", std::move(list)}};
    std::cout << json_text(answer) << '\n';
    return 0;
  }
  std::vector<std::vector<std::string>> lines = {
      {"routings of the same rows", "pairs", "routing_ari", "routing_nmi", "routing_divergence"}};
  for (const RoutingAgreement& agreement : agreements) {
    lines.push_back({pair_text(agreement), std::to_string(agreement.ari.size())});
    for (const std::vector<double>* values : {&agreement.ari, &agreement.nmi, &agreement.divergence})
      lines.back().push_back(estimate_text(agreement_estimate(*values, agreement.of_seeds)));
  }
  std::cout << aligned_columns(lines);
  return 0;
}

}  // namespace

Verb agreement_verb() {
  return {"agreement", "Hold saved routings of the same test rows against each other",
          "agreement runs/learned_and_frozen --json", [](Arguments& arguments) -> VerbCall {
            return {{{"DIR", &arguments.directories,
                      "run directories, one or more, or DIR@ID for one of their plans", true, nullptr,
                      offer_folders},
                     plan_option(arguments),
                     json_option(arguments)},
                    [&] { return print_agreement(arguments); }};
          }};
}

}  // namespace moelab
