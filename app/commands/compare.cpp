#include <fmt/format.h>

#include <iostream>

#include "app/commands/claims.h"
#include "app/commands/verbs.h"
#include "app/run/metric_groups.h"
#include "app/run/summary.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

std::string label_of(const SummaryEntry& entry) {
  std::string label = entry.arm;
  for (const auto& [path, value] : entry.point) label += fmt::format(", {} = {}", path, value.dump());
  return label;
}

Json estimate_json(const SummaryEntry& entry) {
  if (!entry.estimate) return nullptr;
  Json json = {{"mean", entry.estimate->mean}, {"count", entry.estimate->count}, {"interval", nullptr}};
  if (entry.estimate->interval)
    json["interval"] = {entry.estimate->interval->low, entry.estimate->interval->high};
  return json;
}

std::string estimate_text(const Json& json) {
  if (json.is_null()) return "-";
  const std::string mean = fmt::format("{:.4g}", json.at("mean").get<double>());
  if (json.at("interval").is_null()) return mean;
  return fmt::format("{} ± {:.2g}", mean,
                     (json.at("interval")[1].get<double>() - json.at("interval")[0].get<double>()) / 2);
}

/// Rows in the order of their first directory: {label: [one answer for each directory]}.
class SideBySide {
 public:
  explicit SideBySide(std::size_t directories) : directories_(directories) {}
  void add(std::size_t directory, const std::string& label, Json value) {
    for (auto& [known, values] : rows_) {
      if (known == label) {
        values[directory] = std::move(value);
        return;
      }
    }
    rows_.emplace_back(label, Json::array());
    for (std::size_t d = 0; d < directories_; ++d) rows_.back().second.push_back(nullptr);
    rows_.back().second[directory] = std::move(value);
  }
  const std::vector<std::pair<std::string, Json>>& rows() const { return rows_; }
  Json json(const char* name) const {
    Json list = Json::array();
    for (const auto& [label, values] : rows_) list.push_back({{name, label}, {"values", values}});
    return list;
  }

 private:
  std::size_t directories_;
  std::vector<std::pair<std::string, Json>> rows_;
};

}  // namespace

int run_compare_command(const Arguments& arguments) {
  const std::size_t count = arguments.directories.size();
  if (count < 2) throw UserError("DIR", fmt::format("got {} directory, needs two or more", count));
  std::vector<RunResults> runs;
  for (const std::filesystem::path& directory : arguments.directories)
    runs.push_back(load_results(directory));
  const std::string metric = arguments.metric.empty() ? main_metric(runs.front()) : arguments.metric;
  if (!find_metric(metric)) throw UserError("--metric", unknown_name("metric", metric, metric_names()));
  SideBySide means(count), verdicts(count);
  for (std::size_t d = 0; d < count; ++d) {
    for (const SummaryEntry& entry : summarize(runs[d].table, metric))
      means.add(d, label_of(entry), estimate_json(entry));
    for (const ClaimResult& claim : claim_results(runs[d]))
      verdicts.add(d, claim.id, to_string(claim.verdict));
  }
  Json names = Json::array();
  for (const std::filesystem::path& directory : arguments.directories) names.push_back(directory.string());
  if (arguments.json) {
    const Json answer = {{"directories", names},
                         {"metric", metric},
                         {"rows", means.json("at")},
                         {"claims", verdicts.json("id")}};
    std::cout << answer.dump(2) << '\n';
    return 0;
  }
  const auto print = [&](const std::string& heading, const SideBySide& table, const auto& text_of) {
    std::vector<std::vector<std::string>> rows = {{heading}};
    for (const Json& name : names) rows[0].push_back(name.get<std::string>());
    for (const auto& [label, values] : table.rows()) {
      rows.push_back({label});
      for (const Json& value : values) rows.back().push_back(text_of(value));
    }
    if (rows.size() > 1) std::cout << aligned_columns(rows);
  };
  print(metric, means, estimate_text);
  if (!verdicts.rows().empty()) std::cout << '\n';
  print("claim", verdicts,
        [](const Json& value) { return value.is_null() ? std::string("-") : value.get<std::string>(); });
  return 0;
}

}  // namespace moelab
