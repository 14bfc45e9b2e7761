#include "app/report/live_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/report/claim_results.h"
#include "app/run/summary.h"

namespace moelab {
namespace {

constexpr std::size_t kMostClaims = 8;

/// "test_nmse_top1 so far: learned 0.31, frozen 0.42".
std::string means_text(const RunResults& results) {
  const std::string metric = main_metric(results.plan);
  std::string text;
  for (const std::string& arm : results.table.arms) {
    double sum = 0;
    int count = 0;
    for (const ResultRow& row : results.table.rows) {
      const auto value = row.metrics.find(metric);
      if (row.arm != arm || row.state != "done" || value == row.metrics.end()) continue;
      sum += value->second;
      ++count;
    }
    if (count > 0) text += fmt::format("{} {} {:.4g}", text.empty() ? "" : ",", arm, sum / count);
  }
  return text.empty() ? "" : fmt::format("{} so far:{}\n", metric, text);
}

/// The open point of a claim with the most pairs; none where it has no point yet.
const ClaimPoint* told_point(const ClaimResult& claim) {
  const ClaimPoint* told = nullptr;
  for (const ClaimPoint& point : claim.points) {
    if (point.verdict == Verdict::inconclusive && (!told || point.pairs > told->pairs)) told = &point;
  }
  return told;
}

/// The numbers first and the place, which may be long, last: a narrow terminal cuts the end.
std::string open_text(const ClaimResult& claim) {
  const auto count_of = [&](Verdict verdict) {
    return std::count_if(claim.points.begin(), claim.points.end(),
                         [&](const ClaimPoint& point) { return point.verdict == verdict; });
  };
  const auto open = count_of(Verdict::inconclusive), points = std::ssize(claim.points);
  if (points > 0 && count_of(Verdict::uninformative) == points)
    return fmt::format("  {}: uninformative so far\n", claim.id);
  std::string text = fmt::format("  {}: ", claim.id);
  const ClaimPoint* const point = told_point(claim);
  if (point) {
    const std::string difference = difference_text(*point);
    text += fmt::format("{}{}{} pairs, ", difference, difference.empty() ? "" : ", ", point->pairs);
  }
  text += fmt::format("{} so far, open at {} of {} points", to_string(claim.verdict), open, points);
  const std::string place = point ? place_text(*point) : "";
  return text + (place.empty() ? "" : "; " + place) + "\n";
}

std::string claims_so_far(const RunResults& results) {
  std::map<std::string, int> decided;
  std::string open;
  std::size_t count = 0;
  for (const ClaimResult& claim : claim_results(results)) {
    if (claim.verdict != Verdict::inconclusive) {
      ++decided[to_string(claim.verdict)];
    } else if (++count <= kMostClaims) {
      open += open_text(claim);
    }
  }
  if (count > kMostClaims) open += fmt::format("  and {} more\n", count - kMostClaims);
  std::string text;
  for (const auto& [verdict, claims] : decided)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", claims, verdict);
  if (!text.empty()) text = "claims so far: " + text + "\n";
  return text + open;
}

}  // namespace

void LiveClaims::begin(const Scenario& scenario, const std::filesystem::path& directory) {
  results_ = load_results(directory, scenario, plan_id_in(directory, scenario));
  rows_.clear();
  for (std::size_t i = 0; i < results_.table.rows.size(); ++i)
    rows_[results_.table.rows[i].cell].push_back(i);
  text_.clear();
  next_ = {};
  const std::lock_guard lock(mutex_);
  fresh_.clear();
}

void LiveClaims::record(const Cell& cell, const CellResult& result) {
  const std::lock_guard lock(mutex_);
  fresh_.emplace_back(cell.id, CellResult());
  CellResult& kept = fresh_.back().second;
  kept.state = result.state;
  kept.metrics = result.metrics;
  kept.trace = result.trace;
}

std::string LiveClaims::text() {
  const Clock::time_point start = Clock::now();
  if (start < next_) return text_;
  std::vector<std::pair<std::string, CellResult>> fresh;
  {
    const std::lock_guard lock(mutex_);
    fresh.swap(fresh_);
  }
  if (fresh.empty()) return text_;
  for (const auto& [cell, result] : fresh) {
    for (const std::size_t place : rows_[cell]) {
      ResultRow& row = results_.table.rows[place];
      row.state = state_name(result.state);
      row.metrics = result.metrics;
      row.trace = result.trace;
    }
  }
  text_ = means_text(results_) + claims_so_far(results_);
  // A twentieth of the time at most, of the thread that waits for the others.
  next_ = Clock::now() + 20 * (Clock::now() - start);
  return text_;
}

}  // namespace moelab
