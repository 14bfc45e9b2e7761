#include "app/scenario/claim_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/expression.h"
#include "app/scenario/errors.h"
#include "app/scenario/overrides.h"
#include "app/scenario/schema.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr std::string_view kPlaceholder = "{arm}";

std::string with_arm(std::string text, const std::string& arm) {
  for (std::size_t at = text.find(kPlaceholder); at != std::string::npos;
       at = text.find(kPlaceholder, at + arm.size()))
    text.replace(at, kPlaceholder.size(), arm);
  return text;
}

}  // namespace

std::string ExpandedClaims::path_in_scenario(const std::string& path) const {
  constexpr std::string_view kStart = "claims[";
  if (!path.starts_with(kStart)) return path;
  std::size_t place = 0;
  const char* const begin = path.data() + kStart.size();
  const auto [end, error] = std::from_chars(begin, path.data() + path.size(), place);
  if (error != std::errc() || place >= places.size()) return path;
  return join_path("claims", places[place]) + path.substr(static_cast<std::size_t>(end - path.data()) + 1);
}

ExpandedClaims expand_claims(const Json& claims) {
  ExpandedClaims expanded;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Json& claim = claims[i];
    const auto add = [&](Json one) {
      expanded.claims.push_back(std::move(one));
      expanded.places.push_back(i);
    };
    const bool is_comparison = claim.contains("left");
    if (!is_comparison && claim.contains("arm") == claim.contains("arms")) {
      throw UserError(join_path(join_path("claims", i), "arm"),
                      claim.contains("arm") ? "given beside 'arms'; needs one or the other"
                                            : "missing; a claim needs 'arm' or 'arms'");
    }
    if (is_comparison || claim.contains("arm")) {
      add(claim);
      continue;
    }
    for (const Json& name : claim.at("arms")) {
      Json one = claim;
      one.erase("arms");
      const std::string arm = name.get<std::string>(), id = claim.at("id").get<std::string>();
      one["arm"] = arm;
      one["id"] = id.find(kPlaceholder) == std::string::npos ? id + "_" + arm : with_arm(id, arm);
      if (claim.contains("text")) one["text"] = with_arm(claim.at("text").get<std::string>(), arm);
      add(std::move(one));
    }
  }
  return expanded;
}

namespace {

/// Checks that a side has either a value or an arm with a metric.
void check_side(const ClaimSide& side, const std::string& path) {
  if (side.is_constant()) {
    const std::pair<const char*, bool> others[] = {{"arm", !side.arm.empty()},
                                                   {"metric", !side.metric.empty()},
                                                   {"relative_to", !side.relative_to.empty()},
                                                   {"distance_from", !side.distance_from.empty()},
                                                   {"where", !side.where.empty()},
                                                   {"step", side.step.has_value()}};
    for (const auto& [key, is_given] : others) {
      if (is_given) throw UserError(join_path(path, key), "given beside 'value'; needs one or the other");
    }
    return;
  }
  for (const auto& [key, name] : {std::pair("arm", &side.arm), std::pair("metric", &side.metric)}) {
    if (name->empty())
      throw UserError(join_path(path, key), "missing; a side needs arm and metric, or value");
  }
  if (side.distance_from.empty()) return;
  for (const auto& [key, is_given] :
       {std::pair("relative_to", !side.relative_to.empty()), std::pair("step", side.step.has_value())}) {
    if (is_given)
      throw UserError(join_path(path, key), "given beside 'distance_from', which is of whole curves");
  }
}

/// A value that names metrics becomes an expression of the other side's arm, at the other side's step and
/// place.
void place_value(ClaimSide& side, const ClaimSide& other, const std::string& path) {
  if (!side.is_constant() || other.is_constant()) return;
  if (!has_metric(Expression::parse(side.value, path).names())) return;
  side.arm = other.arm;
  side.metric = std::exchange(side.value, "");
  side.is_from_value = true;
  side.where = other.where;
  side.step = other.step;
}

/// Checks a matched comparison. Both sides must be metrics of arms. A side has no step, relative_to or
/// distance_from, because the matching chooses its record.
void check_matched(const Comparison& comparison, const std::string& path) {
  if (comparison.matched == Matched::steps) return;
  const std::string got = "got \"" + to_string(comparison.matched) + "\", ";
  for (const ClaimSide* side : {&comparison.left, &comparison.right}) {
    if (side->is_constant()) throw UserError(path, got + "but a side is a number; needs two arms");
    if (side->step || !side->relative_to.empty() || !side->distance_from.empty())
      throw UserError(path, got + "but a side has a step, relative_to or distance_from of its own");
  }
}

// Rules for several fields of a claim

void complete(Comparison& comparison, const std::string& path) {
  check_side(comparison.left, join_path(path, "left"));
  check_side(comparison.right, join_path(path, "right"));
  place_value(comparison.left, comparison.right, join_path(path, "left.value"));
  place_value(comparison.right, comparison.left, join_path(path, "right.value"));
  check_matched(comparison, join_path(path, "matched"));
  for (const AnyValue& place : comparison.at.written) {
    const Json json = to_json(place);
    if (json.is_object())
      comparison.at.listed.emplace_back(read_point(json));
    else
      comparison.at.listed.emplace_back(place);
  }
}

void complete(Trend&, const std::string&) {}

void complete(RateClaim& rate, const std::string&) {
  if (rate.window.size() >= 2) rate.query.window = Interval{rate.window[0], rate.window[1]};
}

}  // namespace

std::vector<Claim> read_claims(const Json& claims) {
  std::vector<Claim> read;
  ErrorList errors;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const std::string place = join_path("claims", i);
    errors.check([&] {
      try {
        read.push_back(read_options<ClaimOptions>(claims[i]).options().get<Claim>());
      } catch (const InvalidOption& error) {
        throw UserError(join_path(place, error.path()), error.message());
      }
      std::visit([&](auto& statement) { complete(statement, place); }, read.back().statement);
    });
  }
  errors.throw_any();
  return read;
}

}  // namespace moelab
