#include "app/run/rate_results.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/stats/rate_laws.h"
#include "app/figures/rate_panels.h"
#include "app/figures/shown_arms.h"
#include "app/run/summary.h"

namespace moelab {
namespace {

/// "−0.49 [−0.52, −0.46]", with a true minus.
std::string slope_text(const RateEstimate& estimate) {
  if (!estimate.slope) return "no slope";
  std::string text = fmt::format("{:.2f}", estimate.slope->mean);
  if (const auto& interval = estimate.slope->interval)
    text += fmt::format(" [{:.2f}, {:.2f}]", interval->low, interval->high);
  return text;
}

std::string statements_text(const RateEstimate& estimate) {
  std::string compatible, open;
  for (const RateStatement& statement : rate_statements()) {
    const RateVerdict verdict = judge_rate(estimate, statement.range);
    if (verdict == RateVerdict::compatible) compatible = "= " + statement.name;
    if (verdict == RateVerdict::inconclusive) open += (open.empty() ? "? " : " ? ") + statement.name;
  }
  if (!compatible.empty()) return compatible;
  return open.empty() ? "none" : open;
}

/// "n^-1/2", or "not told apart (n^-1/4, 1/log^τ n; at 4e+09 samples)".
std::string law_text(const LawComparison& comparison) {
  if (comparison.laws.empty()) return "too few errors";
  std::vector<std::string> left;
  for (const LawScore& law : comparison.laws) {
    if (!law.excluded) left.push_back(law.name);
  }
  if (left.size() == 1) return left.front();
  const std::string where = comparison.told_apart_at
                                ? fmt::format("at {:.0e} samples", *comparison.told_apart_at)
                                : "at no n up to 10^15";
  return fmt::format("{} ({}; {})", comparison.law, fmt::join(left, ", "), where);
}

struct FitCounts {
  int fits = 0, not_converged = 0;
};

/// Of the cells that a slope reads.
FitCounts count_fits(const RateQuery& query, const ResultTable& table) {
  FitCounts counts;
  for (const ResultRow& row : table.rows) {
    const SweepValue* const along = row.coordinate(query.along);
    if (row.arm != query.arm || !row.is_at(query.where) || !along || !query.reads(along->number())) continue;
    const auto converged = row.metrics.find("fit_converged");
    if (row.state != "done" || converged == row.metrics.end()) continue;
    ++counts.fits;
    counts.not_converged += converged->second == 0;
  }
  return counts;
}

std::string cell_text(const RateEntry& entry, const ResultTable& table, const Json& reported) {
  const LawComparison laws = compare_laws(rate_data(table, entry.query));
  const FitCounts counts = count_fits(entry.query, table);
  std::string text = fmt::format("{} {}; law: {}", slope_text(entry.estimate),
                                 statements_text(entry.estimate), law_text(laws));
  if (const auto& median = entry.estimate.median_slope) text += fmt::format("; of medians {:.2f}", *median);
  if (counts.not_converged > 0)
    text += fmt::format("; {} of {} fits not converged", counts.not_converged, counts.fits);
  if (entry.estimate.left_out > 0) text += fmt::format("; {} left out", entry.estimate.left_out);
  if (reported.contains(entry.arm)) text += fmt::format(" ({})", reported.at(entry.arm).get<std::string>());
  return text;
}

std::string caption_text(const Json& figure) {
  std::string text = ": slope of ln error on ln n (95 % interval";
  if (figure.value("average", "logarithms") == "squares") text += ", of the roots of mean squares";
  if (figure.contains("window"))
    text += fmt::format(", n from {} to {}", figure.at("window")[0].dump(), figure.at("window")[1].dump());
  return text + "), = rate or ? rates not excluded, law by held-out sizes, slope of the medians (the source)";
}

std::vector<Json> rate_figures(const RunResults& results) {
  std::vector<Json> figures;
  for (const Json& description : results.plan.at("figures")) {
    if (description.value("kind", "lines") == "rate_panels") figures.push_back(description);
  }
  return figures;
}

Json interval_json(const std::optional<MeanEstimate>& estimate) {
  if (!estimate || !estimate->interval) return nullptr;
  return Json::array({estimate->interval->low, estimate->interval->high});
}

}  // namespace

std::vector<RateTable> rate_tables(const RunResults& results) {
  std::vector<RateTable> tables;
  for (const Json& description : rate_figures(results)) {
    const std::vector<RateEntry> entries = rate_entries(description, results.table);
    const std::vector<std::string> arms = own_shown_arms(description, results.table),
                                   rows = description.at("rows").get<std::vector<std::string>>(),
                                   columns = description.at("columns").get<std::vector<std::string>>();
    const Json reported = description.value("reported", Json::object());
    std::vector<std::string> names;
    for (const RateEntry& entry : entries) {
      if (std::find(names.begin(), names.end(), entry.name) == names.end()) names.push_back(entry.name);
    }
    for (const std::string& name : names) {
      std::vector<std::vector<std::string>> table(1, columns);
      table[0].insert(table[0].begin(), "");
      for (std::size_t r = 0; r < rows.size(); ++r) {
        table.push_back({rows[r]});
        for (std::size_t c = 0; c < columns.size(); ++c) {
          const auto entry = std::find_if(entries.begin(), entries.end(), [&](const RateEntry& candidate) {
            return candidate.name == name && candidate.arm == arms[r * columns.size() + c];
          });
          table.back().push_back(entry == entries.end() ? "-" : cell_text(*entry, results.table, reported));
        }
      }
      tables.push_back({name + caption_text(description), std::move(table)});
    }
  }
  return tables;
}

std::string rates_text(const RunResults& results) {
  std::string text;
  for (const RateTable& table : rate_tables(results))
    text += fmt::format("{}\n{}\n", table.caption, aligned_columns(table.rows));
  return text;
}

Json rates_json(const RunResults& results) {
  Json list = Json::array();
  for (const Json& description : rate_figures(results)) {
    const Json reported = description.value("reported", Json::object());
    for (const RateEntry& entry : rate_entries(description, results.table)) {
      const RateEstimate& estimate = entry.estimate;
      Json json = {{"figure", description.at("id")},
                   {"arm", entry.arm},
                   {"line", entry.name},
                   {"metric", entry.query.metric}};
      json["slope"] = estimate.slope ? Json(estimate.slope->mean) : Json();
      json["interval"] = interval_json(estimate.slope);
      json["median_slope"] = estimate.median_slope ? Json(*estimate.median_slope) : Json();
      json["average"] = description.value("average", "logarithms");
      json["window"] = description.value("window", Json());
      const FitCounts counts = count_fits(entry.query, results.table);
      json["fits"] = counts.fits;
      json["fits_not_converged"] = counts.not_converged;
      json["repetitions"] = estimate.slope ? estimate.slope->count : 0;
      json["missing"] = estimate.missing;
      json["statements"] = Json::object();
      for (const RateStatement& statement : rate_statements())
        json["statements"][statement.name] = to_string(judge_rate(estimate, statement.range));
      const LawComparison laws = compare_laws(rate_data(results.table, entry.query));
      json["laws"] = Json::object();
      for (const LawScore& law : laws.laws) {
        Json score = {{"excluded", law.excluded},
                      {"against_best", law.against_best ? Json(law.against_best->mean) : Json()},
                      {"against_best_interval", interval_json(law.against_best)}};
        if (law.tau > 0) score["tau"] = law.tau;
        json["laws"][law.name] = std::move(score);
      }
      json["law"] = laws.law;
      json["told_apart_at"] = laws.told_apart_at ? Json(*laws.told_apart_at) : Json();
      json["reported"] = reported.value(entry.arm, Json());
      list.push_back(std::move(json));
    }
  }
  return list;
}

}  // namespace moelab
