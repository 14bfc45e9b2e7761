#include "app/report/imported_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/stats/expression.h"
#include "app/run/imported_arms.h"
#include "app/scenario/claim_reader.h"

namespace moelab {
namespace {

/// The metrics that the rows of an arm have.
std::set<std::string> metrics_of_arm(const ResultTable& table, const std::string& arm) {
  std::set<std::string> names;
  for (const ResultRow& row : table.rows) {
    if (row.arm != arm) continue;
    for (const auto& metric : row.metrics) names.insert(metric.first);
  }
  return names;
}

/// Puts an arm in the place of another.
class Replacement {
 public:
  Replacement(const ResultTable& table, std::string arm)
      : table_(table), arm_(std::move(arm)), metrics_(metrics_of_arm(table, arm_)) {}

  /// Whether the claim can be made of the arm; its statement then is.
  bool apply(Claim& claim) {
    if (auto* const comparison = std::get_if<Comparison>(&claim.statement)) {
      const ClaimSide& subject = comparison->left.is_constant() ? comparison->right : comparison->left;
      replaced_ = subject.arm;
      return replace(comparison->left) && replace(comparison->right);
    }
    if (auto* const trend = std::get_if<Trend>(&claim.statement)) {
      replaced_ = trend->side.arm;
      return trend->along != "step" && replace(trend->side);
    }
    RateClaim& rate = std::get<RateClaim>(claim.statement);
    replaced_ = std::exchange(rate.query.arm, arm_);
    return has(rate.query.metric);
  }

  const std::string& arm() const { return arm_; }
  const std::string& replaced() const { return replaced_; }

 private:
  bool replace(ClaimSide& side) const {
    if (side.arm != replaced_) return true;
    side.arm = arm_;
    const bool is_at_end = !side.step || side.step->at == ClaimStep::At::end;
    return is_at_end && side.distance_from.empty() && has(side.metric);
  }

  bool has(const std::string& metric) const {
    const std::vector<std::string> names = Expression::parse(metric, "metric").names();
    const std::vector<std::string>& paths = table_.sweep_paths;
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return metrics_.contains(name) || std::find(paths.begin(), paths.end(), name) != paths.end();
    });
  }

  const ResultTable& table_;
  std::string arm_, replaced_;
  std::set<std::string> metrics_;
};

}  // namespace

std::vector<Claim> claims_of(const RunResults& results) {
  std::vector<Claim> claims = read_claims(results.plan.at("claims"));
  const std::size_t own = claims.size();
  for (const std::string& arm : imported_arms(results.table)) {
    Replacement replacement(results.table, arm);
    for (std::size_t i = 0; i < own; ++i) {
      Claim claim = claims[i];
      if (!replacement.apply(claim)) continue;
      claim.id += "@" + arm;
      claim.origin = Origin::ours;
      claim.text.reset();
      claim.reported.clear();
      claim.source =
          fmt::format("{}, with {} (imported) in the place of {}", claims[i].id, arm, replacement.replaced());
      claims.push_back(std::move(claim));
    }
  }
  return claims;
}

}  // namespace moelab
