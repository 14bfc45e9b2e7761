#include "analysis/stats/claim_combination.h"

#include <algorithm>
#include <vector>

namespace moelab {
namespace {

/// A step of a monotone trend that does not lead the other way decides nothing.
bool is_no_obstacle(const ClaimPoint& point) {
  return point.is_step && point.verdict != Verdict::refuted &&
         (point.p_values || point.verdict == Verdict::uninformative);
}

}  // namespace

void combine_points(ClaimResult& result) {
  std::vector<Verdict> verdicts, then;  // now, and with the seeds that decide
  int most_seeds = 0;
  std::optional<int> least_refuting;  // one refuted point decides the claim
  for (const ClaimPoint& point : result.points) {
    if (is_no_obstacle(point)) continue;
    verdicts.push_back(point.verdict);
    then.push_back(point.seeds_to_decide ? point.verdict_then : point.verdict);
    const int seeds = point.seeds_to_decide.value_or(0);
    most_seeds = std::max(most_seeds, seeds);
    if (seeds > 0 && point.verdict_then == Verdict::refuted)
      least_refuting = std::min(seeds, least_refuting.value_or(seeds));
  }
  result.verdict = combined_verdict(verdicts);
  if (result.verdict != Verdict::inconclusive) return;
  if (least_refuting)
    result.seeds_to_decide = least_refuting;
  else if (most_seeds > 0 && combined_verdict(then) != Verdict::inconclusive)
    result.seeds_to_decide = most_seeds;
}

std::optional<double> claim_p_value(const ClaimResult& result) {
  double supporting = 0, equivalent = 0, least = 1;
  bool are_all_judged = true, has_ends = false;
  int tests = 0;
  for (const ClaimPoint& point : result.points) {
    if (point.verdict == Verdict::uninformative) continue;
    ++tests;
    are_all_judged &= point.p_values.has_value();
    const PointPValues p = point.p_values.value_or(PointPValues{});
    least = std::min(least, p.opposing);
    if (point.is_step) continue;
    has_ends = true;
    supporting = std::max(supporting, p.supporting);
    equivalent = std::max(equivalent, p.equivalent.value_or(1));
  }
  const double opposing = std::min(1.0, tests * least);
  if (result.verdict == Verdict::refuted) return opposing;
  if (!are_all_judged || !has_ends) return std::nullopt;
  if (result.verdict == Verdict::reproduced) return supporting;
  return result.verdict == Verdict::equivalent ? equivalent : std::min(supporting, opposing);
}

Verdict combined_verdict(const std::vector<Verdict>& parts) {
  std::vector<Verdict> deciding = parts;
  std::erase(deciding, Verdict::uninformative);
  if (std::find(deciding.begin(), deciding.end(), Verdict::refuted) != deciding.end())
    return Verdict::refuted;
  const bool are_equal =
      !deciding.empty() &&
      std::all_of(deciding.begin(), deciding.end(), [&](Verdict part) { return part == deciding.front(); });
  return are_equal ? deciding.front() : Verdict::inconclusive;
}

}  // namespace moelab
