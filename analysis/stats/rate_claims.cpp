#include "analysis/stats/rate_claims.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr int kMinimumSlopes = 3;

void check_name(const std::string& name, const std::vector<std::string>& allowed, const char* what,
                const std::string& path) {
  if (std::find(allowed.begin(), allowed.end(), name) == allowed.end())
    throw UserError(path, unknown_name(what, name, allowed));
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
    note += fmt::format("{}{} errors of {} are missing", note.empty() ? "" : "; ", estimate.missing, arm);
  return note;
}

}  // namespace

bool is_rate_claim(const Json& claim) {
  return claim.at("op") == "rate" || claim.at("op") == "slower";
}

RateQuery read_rate_query(const Json& part, const std::string& arm, const std::string& metric,
                          const std::string& along) {
  RateQuery query{arm, metric, along};
  const Json where = part.value("where", Json::object());
  for (const auto& [name, value] : where.items()) query.where.emplace_back(name, value);
  if (part.contains("window")) query.window = Interval{part.at("window")[0], part.at("window")[1]};
  return query;
}

ClaimResult evaluate_rate_claim(const Json& claim, const ResultTable& table, const std::string& path) {
  const std::string arm = claim.at("arm"), along = claim.at("along"), metric = claim.at("metric");
  check_name(arm, table.arms, "arm", join_path(path, "arm"));
  check_name(along, table.sweep_paths, "swept path", join_path(path, "along"));
  const bool is_rate = claim.at("op") == "rate";
  const Json& against = is_rate ? claim.at("exponent") : claim.at("than");
  if (against.is_string()) check_name(against, table.arms, "arm", join_path(path, "than"));

  const RateQuery query = read_rate_query(claim, arm, metric, along);
  const RateEstimate estimate = estimate_rate(rate_data(table, query));
  RateEstimate other;
  if (against.is_string()) {
    RateQuery other_query = query;
    other_query.arm = against;
    other = estimate_rate(rate_data(table, other_query));
  }
  const Slopes slopes = paired_slopes(estimate, against.is_string() ? &other : nullptr,
                                      against.is_number() ? against.get<double>() : 0);

  ClaimPoint point;
  point.left_at = point.right_at = query.where;
  point.pairs = static_cast<int>(slopes.left.size());
  point.note = note_on(estimate, arm);
  if (const std::string note = note_on(other, against.is_string() ? against.get<std::string>() : "");
      !note.empty())
    point.note += (point.note.empty() ? "" : "; ") + note;
  if (point.pairs > 0) {
    point.left = mean_estimate(slopes.left);
    point.right =
        against.is_number() ? MeanEstimate{against, point.pairs, std::nullopt} : mean_estimate(slopes.right);
    point.difference = mean_estimate(paired_differences(slopes.left, slopes.right));
  }
  if (point.pairs >= kMinimumSlopes && estimate.left_out == 0 && other.left_out == 0) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const double tolerance = claim.value("tolerance", kRateTolerance);
    const RateVerdict verdict =
        judge_slope(point.difference, is_rate ? Interval{-tolerance, tolerance} : Interval{0, infinity});
    if (verdict == RateVerdict::compatible) point.verdict = Verdict::reproduced;
    if (verdict == RateVerdict::excluded) point.verdict = Verdict::refuted;
  }

  ClaimResult result;
  result.id = claim.at("id");
  result.verdict = point.verdict;
  result.text = claim.value(
      "text", fmt::format("{} of {} falls {} along {}", metric, arm,
                          is_rate ? fmt::format("as n^{}", against.dump())
                                  : fmt::format("more slowly than {}",
                                                against.is_string() ? "that of " + against.get<std::string>()
                                                                    : fmt::format("n^{}", against.dump())),
                          along));
  result.source = claim.value("source", "");
  result.reported = claim.value("reported", Json());
  result.points.push_back(std::move(point));
  return result;
}

}  // namespace moelab
