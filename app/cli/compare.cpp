#include "app/cli/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/intervals.h"
#include "analysis/stats/result_table.h"
#include "app/cli/verbs.h"
#include "app/report/claim_results.h"
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

namespace {

std::string label_of(const std::string& arm, const SweepPoint& point) {
  std::string label = arm;
  for (const auto& [path, value] : point) label += fmt::format(", {} = {}", path, value.text());
  return label;
}

Json summary_entry_json(const SummaryEntry& entry, bool is_sequential) {
  if (!entry.estimate && !entry.median) return nullptr;
  Json json = entry_json(entry);
  if (is_sequential) json["test"] = entry.median ? "sign sequence" : "t mixture";
  return json;
}

/// What one directory says at one place: for programs and for people.
struct Entry {
  Json json;
  std::string text = "-";
};

/// Rows in the order in which the directories bring them, one entry for each directory.
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
  /// Nothing when there are no rows.
  std::string text(std::vector<std::string> head) const {
    if (rows_.empty()) return "";
    std::vector<std::vector<std::string>> lines = {std::move(head)};
    for (const auto& [label, entries] : rows_) {
      lines.push_back({label});
      for (const Entry& entry : entries) lines.back().push_back(entry.text);
    }
    return aligned_columns(lines);
  }

 private:
  std::size_t directories_;
  std::vector<std::pair<std::string, std::vector<Entry>>> rows_;
};

/// The run against the first over the seeds that both have done, by arm and sweep point. None where the roots
/// of the seeds differ, since equal seeds then are other problems.
void add_differences(const RunResults& first, const RunResults& other, const std::string& metric,
                     std::size_t directory, SideBySide& differences) {
  const auto root_of = [](const RunResults& results) {
    const Json seeds = results.plan.at("scenario").value("seeds", Json::object());
    return seeds.is_object() ? seeds.value("root", Json()) : Json();
  };
  if (root_of(first) != root_of(other)) return;
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
    const std::string label = label_of(row.arm, row.point);
    if (groups.empty() || groups.back().first != label) groups.push_back({label, {}});
    groups.back().second.push_back({*own, own_first->second});
  }
  const bool is_sequential = first.table.is_decided || other.table.is_decided;
  for (const auto& [label, pairs] : groups) {
    const PairedSeeds paired = paired_seeds(pairs, metric, is_sequential);
    differences.add(directory, label, {paired_json(paired), paired_text(paired)});
  }
}

int compare(const Arguments& arguments) {
  const std::size_t count = arguments.directories.size();
  if (count < 2) throw UserError("DIR", fmt::format("got {} directory, needs two or more", count));
  std::vector<RunResults> runs;
  for (const std::filesystem::path& directory : arguments.directories) {
    runs.push_back(load_results(RunAddress(directory, arguments.plan)));
    print_notes(runs.back());
  }
  const std::string metric = arguments.metric.empty() ? main_metric(runs.front().plan) : arguments.metric;
  if (!find_metric(metric)) throw UserError("--metric", unknown_name("metric", metric, metric_names()));
  if (!arguments.metric.empty()) check_measured(metric, runs);
  SideBySide means(count), differences(count - 1), verdicts(count);
  std::vector<SummaryEntry> entries;  // of all directories
  for (std::size_t d = 0; d < count; ++d) {
    for (const SummaryEntry& entry : summarize(runs[d].table, metric)) {
      means.add(d, label_of(entry.arm, entry.point),
                {summary_entry_json(entry, runs[d].table.is_decided), entry_text(entry)});
      entries.push_back(entry);
    }
    if (d > 0) add_differences(runs.front(), runs[d], metric, d - 1, differences);
    for (const ClaimResult& claim : claim_results(runs[d]))
      verdicts.add(d, claim.id, {to_string(claim.verdict), to_string(claim.verdict)});
  }
  std::vector<std::string> names;
  Json decided = Json::array();
  for (const std::filesystem::path& directory : arguments.directories) names.push_back(directory.string());
  for (const RunResults& run : runs) decided.push_back(run.table.is_decided);
  if (arguments.json) {
    const Json answer = {{"directories", names},
                         {"decided", decided},
                         {"metric", metric},
                         {"rows", means.json("at")},
                         {"differences", differences.json("at")},
                         {"claims", verdicts.json("id")}};
    std::cout << json_text(answer) << '\n';
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

}  // namespace

Verb compare_verb() {
  return {"compare", "Put run directories side by side", "compare runs/fig3-quick runs/fig3",
          [](Arguments& arguments) -> VerbCall {
            return {{{"DIR", &arguments.directories,
                      "run directories, two or more, or DIR@ID for one of their plans", true, nullptr,
                      offer_run_folders},
                     plan_option(arguments),
                     {"--metric", &arguments.metric, "what is compared (default: the first figure's)", false,
                      nullptr, offer_metrics},
                     json_option(arguments)},
                    [&] { return compare(arguments); }};
          }};
}

}  // namespace moelab
