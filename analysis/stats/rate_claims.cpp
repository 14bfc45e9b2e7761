#include "analysis/stats/rate_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "analysis/stats/claim_judgement.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

void check_name(const std::string& name, const std::vector<std::string>& allowed, const char* what,
                const std::string& path) {
  if (std::find(allowed.begin(), allowed.end(), name) == allowed.end())
    throw InvalidOption(path, unknown_name(what, name, allowed));
}

/// The two sides' slopes at the repetitions that have both; a constant stands at each.
struct Slopes {
  std::vector<double> left, right;
};

Slopes paired_slopes(const RateEstimate& left, const RateEstimate* right, double constant) {
  Slopes slopes;
  for (std::size_t r = 0; r < left.slopes.size(); ++r) {
    const std::optional<double> other =
        right ? (r < right->slopes.size() ? right->slopes[r] : std::nullopt) : std::optional(constant);
    if (!left.slopes[r] || !other) continue;
    slopes.left.push_back(*left.slopes[r]);
    slopes.right.push_back(*other);
  }
  return slopes;
}

std::string note_on(const RateEstimate& estimate, const std::string& arm) {
  std::string note;
  if (estimate.left_out > 0)
    note = fmt::format("{} repetitions of {} have fewer than three errors", estimate.left_out, arm);
  if (estimate.missing > 0)
    note += fmt::format("{}{} errors of {} are missing, so that nothing is decided", note.empty() ? "" : "; ",
                        estimate.missing, arm);
  return note;
}

}  // namespace

ClaimPoint evaluate_rate_claim(const RateClaim& claim, const std::optional<double>& smallest_effect,
                               const ResultTable& table, const std::string& path) {
  const RateQuery& query = claim.query;
  check_name(query.arm, table.arms, "arm", path + ".arm");
  check_name(query.along, table.sweep_paths, "swept path", path + ".along");
  const std::string* const than = std::get_if<std::string>(&claim.against);
  if (than) check_name(*than, table.arms, "arm", path + ".than");
  const double constant = than ? 0 : std::get<double>(claim.against);

  const RateEstimate estimate = estimate_rate(rate_data(table, query));
  RateEstimate other;
  if (than) {
    RateQuery other_query = query;
    other_query.arm = *than;
    other = estimate_rate(rate_data(table, other_query));
  }
  const Slopes slopes = paired_slopes(estimate, than ? &other : nullptr, constant);

  ClaimPoint point;
  point.left_at = point.right_at = query.where;
  point.pairs = static_cast<int>(slopes.left.size());
  point.note = note_on(estimate, query.arm);
  if (const std::string note = note_on(other, than ? *than : ""); !note.empty())
    point.note += (point.note.empty() ? "" : "; ") + note;
  if (point.pairs == 0) return point;
  const std::vector<double> differences = paired_differences(slopes.left, slopes.right);
  point.left = mean_estimate(slopes.left);
  point.right = than ? mean_estimate(slopes.right) : MeanEstimate{constant, point.pairs, std::nullopt};
  point.difference = mean_estimate(differences);
  if (point.pairs >= kMinimumPairs && estimate.is_complete() && other.is_complete()) {
    DecisionRule rule = {{-claim.tolerance, claim.tolerance}, std::nullopt, 1};
    if (claim.slower) rule.claimed = {0, std::numeric_limits<double>::infinity()};
    if (smallest_effect) rule.negligible = Interval{-*smallest_effect, *smallest_effect};
    judge_differences(differences, rule, point);
  }
  return point;
}

std::string rate_claim_text(const RateClaim& claim) {
  const std::string* const than = std::get_if<std::string>(&claim.against);
  const std::string against =
      than ? "that of " + *than : fmt::format("n^{}", std::get<double>(claim.against));
  return fmt::format("{} of {} falls {} {} along {}", claim.query.metric, claim.query.arm,
                     claim.slower ? "more slowly than" : "as", against, claim.query.along);
}

}  // namespace moelab
