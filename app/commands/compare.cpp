#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "app/commands/verbs.h"
#include "app/metrics/metric_groups.h"
#include "app/report/claim_results.h"
#include "app/run/summary.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

std::string label_of(const SummaryEntry& entry) {
  std::string label = entry.arm;
  for (const auto& [path, value] : entry.point) label += fmt::format(", {} = {}", path, value.text());
  return label;
}

Json estimate_json(const SummaryEntry& entry) {
  if (!entry.estimate) return nullptr;
  Json json = {{"mean", entry.estimate->mean}, {"count", entry.estimate->count}, {"interval", nullptr}};
  if (entry.estimate->interval)
    json["interval"] = {entry.estimate->interval->low, entry.estimate->interval->high};
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

int compare(const Arguments& arguments) {
  const std::size_t count = arguments.directories.size();
  if (count < 2) throw UserError("DIR", fmt::format("got {} directory, needs two or more", count));
  std::vector<RunResults> runs;
  for (const std::filesystem::path& directory : arguments.directories) {
    runs.push_back(load_results(directory));
    warn_of_builds(runs.back());
  }
  const std::string metric = arguments.metric.empty() ? main_metric(runs.front()) : arguments.metric;
  if (!find_metric(metric)) throw UserError("--metric", unknown_name("metric", metric, metric_names()));
  SideBySide means(count), verdicts(count);
  for (std::size_t d = 0; d < count; ++d) {
    for (const SummaryEntry& entry : summarize(runs[d].table, metric))
      means.add(d, label_of(entry), {estimate_json(entry), estimate_text(entry.estimate)});
    for (const ClaimResult& claim : claim_results(runs[d]))
      verdicts.add(d, claim.id, {to_string(claim.verdict), to_string(claim.verdict)});
  }
  std::vector<std::string> names;
  for (const std::filesystem::path& directory : arguments.directories) names.push_back(directory.string());
  if (arguments.json) {
    const Json answer = {{"directories", names},
                         {"metric", metric},
                         {"rows", means.json("at")},
                         {"claims", verdicts.json("id")}};
    std::cout << answer.dump(2) << '\n';
    return 0;
  }
  const auto head = [&](const std::string& first) {
    std::vector<std::string> row = {first};
    row.insert(row.end(), names.begin(), names.end());
    return row;
  };
  const std::string verdict_table = verdicts.text(head("claim"));
  std::cout << means.text(head(metric)) << (verdict_table.empty() ? "" : "\n") << verdict_table;
  return 0;
}

}  // namespace

Verb compare_verb() {
  return {"compare", "Put run directories side by side", "compare runs/fig3-quick runs/fig3",
          [](Arguments& arguments) -> VerbCall {
            return {{{"DIR", &arguments.directories, "run directories, two or more", true, nullptr,
                      offer_folders},
                     {"--metric", &arguments.metric, "what is compared (default: the first figure's)", false,
                      nullptr, offer_metrics},
                     json_option(arguments)},
                    [&] { return compare(arguments); }};
          }};
}

}  // namespace moelab
