#include <fmt/format.h>

#include <set>

#include "analysis/stats/claim_points.h"
#include "analysis/stats/expression.h"
#include "app/scenario/claim_reader.h"
#include "app/scenario/cross_checks.h"
#include "app/scenario/references.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// The arm of a side or a trend, the one that it is held against, and the metrics, which both must have.
void check_measured(const References& references, const ClaimSide& side, const std::string& path,
                    const char* metric_key = "metric") {
  const std::string metric_path = join_path(path, metric_key);
  const Expression expression = Expression::parse(side.metric, metric_path);
  if (!side.distance_from.empty() && !expression.is_name())
    throw UserError(metric_path, "got '" + side.metric + "', needs one metric beside 'distance_from'");
  const auto check_arm = [&](const std::string& arm, const char* key) {
    references.check_arm(arm, join_path(path, key));
    for (const std::string& name : expression.names()) references.check_part(arm, name, metric_path);
  };
  check_arm(side.arm, "arm");
  if (!side.relative_to.empty()) check_arm(side.relative_to, "relative_to");
  if (!side.distance_from.empty()) check_arm(side.distance_from, "distance_from");
}

/// `json` is what `side` was read from; a value is taken where the other side is.
void check_side(const References& references, const ClaimSide& side, const ClaimSide& other, const Json& json,
                const std::string& path) {
  if (side.is_constant()) {
    const std::string here = join_path(path, "value");
    for (const std::string& name : Expression::parse(side.value, here).names()) {
      if (other.is_constant())
        references.check_number(name, here);
      else
        references.check_part(other.arm, name, here);
    }
    return;
  }
  check_measured(references, side, path, json.contains("value") ? "value" : "metric");
  if (!side.step) return;
  references.check_step(side.arm, *side.step, join_path(path, "step"));
  for (const std::string& name : Expression::parse(side.metric, join_path(path, "metric")).names())
    references.check_metric_at(name, *side.step, join_path(path, "step"));
  if (!side.relative_to.empty()) {
    references.check_step(side.relative_to, *side.step, join_path(path, "step"));
  }
}

// What will judge a claim finds its sweep points, and so refuses those that do not exist.

void check_statement(const References& references, const RowIndex& rows, const Comparison& claim,
                     const Json& json, const std::string& path) {
  check_side(references, claim.left, claim.right, json.at("left"), join_path(path, "left"));
  check_side(references, claim.right, claim.left, json.at("right"), join_path(path, "right"));
  if (const std::string metric = matched_metric(claim.matched); !metric.empty()) {
    for (const ClaimSide* side : {&claim.left, &claim.right})
      references.check_metric(side->arm, metric, join_path(path, "matched"));
  }
  find_points(claim, rows, path);
}

void check_statement(const References& references, const RowIndex& rows, const Trend& claim, const Json&,
                     const std::string& path) {
  check_measured(references, claim.side, path);
  references.check_swept(claim.along, "step", join_path(path, "along"));
  if (claim.along != "step") {
    std::set<std::string> values;
    for (const ResultRow& row : references.table().rows) {
      if (const SweepValue* const value = row.coordinate(claim.along)) values.insert(value->canonical());
    }
    if (values.size() < 2)
      throw UserError(join_path(path, "along"), "a trend needs at least two swept values");
  } else {
    const ClaimStep recorded = {ClaimStep::At::recorded, 1};
    for (const std::string& name : Expression::parse(claim.side.metric, join_path(path, "metric")).names())
      references.check_metric_at(name, recorded, join_path(path, "along"));
  }
  find_points(claim, rows, path);
}

void check_statement(const References& references, const RowIndex&, const RateClaim& claim, const Json& json,
                     const std::string& path) {
  const RateQuery& query = claim.query;
  references.check_arm(query.arm, join_path(path, "arm"));
  references.check_metric(query.arm, query.metric, join_path(path, "metric"));
  if (const std::string* const than = std::get_if<std::string>(&claim.against)) {
    references.check_arm(*than, join_path(path, "than"));
    references.check_metric(*than, query.metric, join_path(path, "metric"));
  }
  references.check_sizes(json, query.along, {query.along}, path, join_path(path, "along"));
}

/// The arms whose metrics a claim compares.
std::set<std::string> arms_of(const Claim& claim) {
  std::set<std::string> arms;
  const auto add = [&](const ClaimSide& side) {
    for (const std::string& arm : {side.arm, side.relative_to, side.distance_from})
      if (!arm.empty()) arms.insert(arm);
  };
  if (const Comparison* const comparison = std::get_if<Comparison>(&claim.statement)) {
    add(comparison->left);
    add(comparison->right);
  } else if (const Trend* const trend = std::get_if<Trend>(&claim.statement)) {
    add(trend->side);
  } else {
    const RateClaim& rate = std::get<RateClaim>(claim.statement);
    arms.insert(rate.query.arm);
    if (const std::string* const than = std::get_if<std::string>(&rate.against)) arms.insert(*than);
  }
  return arms;
}

/// What `moelab tune` has chosen for an arm stands among the arm's overrides.
void check_tuned(const Scenario& scenario, const Claim& claim, const std::string& path) {
  const std::string here = join_path(path, "tuned");
  const Json tune = scenario.document.value("tune", Json::object());
  if (tune.empty()) throw UserError(here, "got true, needs \"tune\", which says what is chosen for each arm");
  const Json arms = scenario.document.value("arms", Json::object());
  for (const std::string& arm : arms_of(claim)) {
    const Json own = arms.value(arm, Json::object());
    for (const auto& [tuned, range] : tune.items()) {
      if (own.contains(tuned)) continue;
      throw UserError(here,
                      "got true, but arms." + arm + " does not set " + tuned + ", which \"tune\" names");
    }
  }
}

/// Where a path is searched, its values are known later, but none is placed outside the ends.
void check_within_ends(const CrossingSearch& search, const SweepPoint& point, const std::string& path) {
  for (const auto& [name, value] : point) {
    const auto number = value.number();
    if (name != search.path || (number && *number >= search.low && *number <= search.high)) continue;
    throw UserError(join_path(path, name),
                    fmt::format("got {}, needs a value between the ends of the crossing: {} to {}",
                                value.text(), search.low, search.high));
  }
}

/// `json` is a claim, whose "at" names points that every run of the search has.
void check_within_ends(const CrossingSearch& search, const Json& json, const std::string& path) {
  for (const char* side : {"left", "right"}) {
    if (!json.contains(side) || !json.at(side).is_object()) continue;
    check_within_ends(search, where_of(json.at(side)), join_path(join_path(path, side), "where"));
  }
  check_within_ends(search, where_of(json), join_path(path, "where"));
}

}  // namespace

void check_claims(const Scenario& scenario) {
  check_ids(scenario.claims, "claims");
  const References references(scenario);
  const RowIndex rows(references.table());
  const std::vector<Claim> claims = read_claims(scenario.claims);
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (scenario.crossing) check_within_ends(*scenario.crossing, scenario.claims[i], join_path("claims", i));
    if (claims[i].is_tuned) check_tuned(scenario, claims[i], join_path("claims", i));
    std::visit(
        [&](const auto& statement) {
          check_statement(references, rows, statement, scenario.claims[i], join_path("claims", i));
        },
        claims[i].statement);
  }
}

}  // namespace moelab
