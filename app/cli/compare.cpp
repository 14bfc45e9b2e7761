#include "app/cli/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <span>
#include <system_error>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/intervals.h"
#include "analysis/stats/result_table.h"
#include "app/cli/completion.h"
#include "app/cli/verbs.h"
#include "app/report/claim_results.h"
#include "app/run/measurement.h"
#include "app/run/results.h"
#include "app/scenario/overrides.h"
#include "sim/base/error.h"

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
    // Neither side is known to be less where one seed stopped before it reached the other's value.
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
  if (paired.signs) json["signs"] = signs_json(*paired.signs);
  return json;
}

namespace {

/// ", data.dim = 3"; empty without a sweep.
std::string ending_of(const SweepPoint& point) {
  return point.empty() ? "" : ", " + point_text(point);
}

Json summary_entry_json(const SummaryEntry& entry, bool is_sequential) {
  if (!entry.estimate && !entry.median) return nullptr;
  Json json = entry_json(entry);
  if (is_sequential) json["test"] = entry.median ? "sign sequence" : "t mixture";
  return json;
}

/// The answer of one directory in one row, as JSON and as text.
struct Entry {
  Json json;
  std::string text = "-";
};

/// Rows with one entry for each directory, in the order in which the directories add them.
class SideBySide {
 public:
  explicit SideBySide(std::size_t directories) : directories_(directories) {}
  void add(std::size_t directory, const std::string& label, Entry entry) {
    auto row =
        std::find_if(rows_.begin(), rows_.end(), [&](const auto& known) { return known.first == label; });
    if (row == rows_.end()) row = rows_.insert(row, {label, std::vector<Entry>(directories_)});
    row->second[directory] = std::move(entry);
  }
  Json json(const char* name) const {
    Json list = Json::array();
    for (const auto& [label, entries] : rows_) {
      list.push_back({{name, label}, {"values", Json::array()}});
      for (const Entry& entry : entries) list.back()["values"].push_back(entry.json);
    }
    return list;
  }
  /// Empty without rows.
  std::string text(std::vector<std::string> head) const {
    if (rows_.empty()) return "";
    Table table = {std::move(head)};
    for (const auto& [label, entries] : rows_) {
      table.rows.push_back({label});
      for (const Entry& entry : entries) table.rows.back().push_back(entry.text);
    }
    return text_table(table);
  }

 private:
  std::size_t directories_;
  std::vector<std::pair<std::string, std::vector<Entry>>> rows_;
};

/// Compares a run with the first over the seeds that both have done, for each arm and sweep point. Adds
/// nothing where the root seeds differ, since equal seed indices then mean different problems.
void add_differences(const RunResults& first, const RunResults& other, const std::string& metric,
                     std::size_t directory, SideBySide& differences) {
  if (first.head.root_seed != other.head.root_seed) return;
  const auto observed_of = [&](const ResultRow& row) {
    return row.state == "done" ? observed(row, row.metrics, metric) : std::nullopt;
  };
  std::map<std::string, Interval> firsts;
  const auto place = [](const ResultRow& row) {
    return fmt::format("{}\n{}\n{}", row.arm, point_json(row.point).dump(), row.seed);
  };
  for (const ResultRow& row : first.table.rows) {
    if (const std::optional<Interval> seed = observed_of(row)) firsts.emplace(place(row), *seed);
  }
  std::vector<std::pair<std::string, std::vector<SeedPair>>> groups;  // in the table's order
  for (const ResultRow& row : other.table.rows) {
    const auto own_first = firsts.find(place(row));
    const std::optional<Interval> own = observed_of(row);
    if (!own || own_first == firsts.end()) continue;
    const std::string label = row.arm + ending_of(row.point);
    if (groups.empty() || groups.back().first != label) groups.push_back({label, {}});
    groups.back().second.push_back({*own, own_first->second});
  }
  const bool is_sequential = first.table.is_decided || other.table.is_decided;
  for (const auto& [label, pairs] : groups) {
    const PairedSeeds paired = paired_seeds(pairs, metric, is_sequential);
    differences.add(directory, label, {paired_json(paired), paired_text(paired)});
  }
}

struct CompareOptions {
  RunsChoice runs;
  std::string metric;  ///< empty for the main metric of the first run
  bool json = false;

  void bind(VerbOptions& options) {
    runs.bind(options, "run folders, two or more, or DIR@ID for one of their plans");
    options.add("--metric", &metric, "metric to compare (default: the metric of the first figure)",
                {.candidates = offer_metrics});
    bind_json(options, json);
  }
};

int compare(const CompareOptions& options) {
  const std::vector<std::filesystem::path>& directories = options.runs.directories;
  const std::size_t count = directories.size();
  if (count < 2) throw UserError("DIR", fmt::format("got {}, needs two or more", counted(count, "folder")));
  std::vector<RunResults> runs;
  for (const std::filesystem::path& directory : directories) {
    runs.push_back(load_results(RunAddress(directory, options.runs.plan)));
    print_notes(runs.back());
  }
  const std::string metric = options.metric.empty() ? main_metric(runs.front().head) : options.metric;
  check_metric_name(metric);
  if (!options.metric.empty()) check_measured(metric, runs);
  SideBySide means(count), differences(count - 1), verdicts(count);
  std::vector<SummaryEntry> entries;  // of all directories
  for (std::size_t d = 0; d < count; ++d) {
    for (const SummaryEntry& entry : summarize(runs[d].table, metric)) {
      means.add(d, entry.arm + ending_of(entry.point),
                {summary_entry_json(entry, runs[d].table.is_decided), entry_text(entry)});
      entries.push_back(entry);
    }
    if (d > 0) add_differences(runs.front(), runs[d], metric, d - 1, differences);
    for (const ClaimResult& claim : claim_results(runs[d]))
      verdicts.add(d, claim.id, {to_string(claim.verdict), to_string(claim.verdict)});
  }
  std::vector<std::string> names;
  Json decided = Json::array();
  for (const std::filesystem::path& directory : directories) names.push_back(directory.string());
  for (const RunResults& run : runs) decided.push_back(run.table.is_decided);
  if (options.json) {
    const Json answer = {{"directories", names},
                         {"decided", decided},
                         {"metric", metric},
                         {"rows", means.json("at")},
                         {"differences", differences.json("at")},
                         {"claims", verdicts.json("id")}};
    print_json(answer);
    return 0;
  }
  const auto head = [&](const std::string& first, std::size_t from) {
    std::vector<std::string> row = {first};
    row.insert(row.end(), names.begin() + static_cast<std::ptrdiff_t>(from), names.end());
    return row;
  };
  for (std::size_t d = 0; d < count; ++d) {
    if (runs[d].table.is_decided)
      std::cout << fmt::format(
          "{} was run until its claims were decided: intervals by confidence sequences\n", names[d]);
  }
  std::cout << means.text(head(fmt::format("{} ({})", metric, summary_statistic(entries, metric)), 0));
  for (const std::string& table :
       {differences.text(head("paired, against " + names.front(), 1)), verdicts.text(head("claim", 0))}) {
    if (!table.empty()) std::cout << '\n' << table;
  }
  return 0;
}

// `agreement`: how far saved routings of the same test rows agree.

Json place_json(const RoutingPlace& place) {
  return {{"run", place.run}, {"arm", place.arm}, {"at", point_json(place.point)}};
}

/// The mean over pairs. Pairs of seeds share seeds, so they are not independent and have no interval.
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

/// Which two routings are compared: "learned | frozen, data.dim = 3".
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
    text += " | " + point_text(right.point);
  }
  return agreement.layer.empty() ? text : fmt::format("{} ({})", text, agreement.layer.substr(1));
}

/// Throws UserError where the last run is given twice, since its pairs would count twice.
void check_given_once(const std::vector<NamedRun>& runs) {
  const NamedRun& last = runs.back();
  for (const NamedRun& run : std::span(runs).first(runs.size() - 1)) {
    std::error_code unseen;
    if (!std::filesystem::equivalent(run.directory, last.directory, unseen)) continue;
    if (run.results.id != last.results.id) continue;
    throw UserError("DIR", fmt::format("'{}' is the plan {} of '{}' a second time; needs each run once",
                                       last.name, last.results.id, run.name));
  }
}

struct AgreementOptions {
  RunsChoice runs;
  bool json = false;

  void bind(VerbOptions& options) {
    runs.bind(options, "run folders, one or more, or DIR@ID for one of their plans");
    bind_json(options, json);
  }
};

int print_agreement(const AgreementOptions& options) {
  std::vector<NamedRun> runs;
  for (const std::filesystem::path& given : options.runs.directories) {
    const RunAddress address(given, options.runs.plan);
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
  if (options.json) {
    Json list = Json::array();
    for (const RoutingAgreement& agreement : agreements) list.push_back(agreement_json(agreement));
    print_json({{"agreements", std::move(list)}});
    return 0;
  }
  Table table = {{"routings of the same rows", "pairs", "routing_ari", "routing_nmi", "routing_divergence"}};
  for (const RoutingAgreement& agreement : agreements) {
    table.rows.push_back({pair_text(agreement), std::to_string(agreement.ari.size())});
    for (const std::vector<double>* values : {&agreement.ari, &agreement.nmi, &agreement.divergence})
      table.rows.back().push_back(estimate_text(agreement_estimate(*values, agreement.of_seeds)));
  }
  std::cout << text_table(table);
  return 0;
}

}  // namespace

Verb compare_verb() {
  return make_verb("compare", "Compare run folders side by side", "compare runs/fig3-quick runs/fig3",
                   compare);
}

Verb agreement_verb() {
  return make_verb("agreement", "Compare saved routings of the same test rows",
                   "agreement runs/learned_and_frozen --json", print_agreement);
}

}  // namespace moelab
