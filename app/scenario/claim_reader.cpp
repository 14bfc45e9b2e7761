#include "app/scenario/claim_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/expression.h"
#include "app/scenario/arms.h"
#include "app/scenario/errors.h"
#include "app/scenario/overrides.h"
#include "app/scenario/schema.h"
#include "sim/base/error.h"

namespace moelab {
std::string ExpandedClaims::path_in_scenario(const std::string& path) const {
  constexpr std::string_view kStart = "claims[";
  if (!path.starts_with(kStart)) return path;
  std::size_t place = 0;
  const char* const begin = path.data() + kStart.size();
  const auto [end, error] = std::from_chars(begin, path.data() + path.size(), place);
  if (error != std::errc() || place >= places.size()) return path;
  return join_path("claims", places[place]) + path.substr(static_cast<std::size_t>(end - path.data()) + 1);
}

ExpandedClaims expand_claims(const Json& claims, const std::vector<std::string>& arms) {
  ExpandedClaims expanded;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Json& claim = claims[i];
    const std::string place = join_path("claims", i);
    const auto add = [&](Json one) {
      expanded.claims.push_back(std::move(one));
      expanded.places.push_back(i);
    };
    const bool is_comparison = claim.contains("left"), has_arms = claim.contains("arms");
    if (!is_comparison && claim.contains("arm") == has_arms) {
      throw UserError(join_path(place, "arm"), has_arms
                                                   ? "cannot be combined with 'arms'; needs one or the other"
                                                   : "missing; a claim needs 'arm' or 'arms'");
    }
    if (!has_arms) {
      add(claim);
      continue;
    }
    Json each = claim;
    each.erase("arms");
    if (is_comparison && with_placeholder(each, "arm", "").at("left") == each.at("left") &&
        with_placeholder(each, "arm", "").at("right") == each.at("right"))
      throw UserError(join_path(place, "left"),
                      "has no \"{arm}\", nor has right; \"arms\" needs it in a side");
    if (each.at("id").get_ref<const std::string&>().find("{arm}") == std::string::npos)
      each["id"] = each.at("id").get<std::string>() + "_{arm}";
    if (!is_comparison) each["arm"] = "{arm}";
    for (const std::string& arm : matching_arms(claim.at("arms"), arms, join_path(place, "arms")))
      add(with_placeholder(each, "arm", arm));
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
      if (is_given)
        throw UserError(join_path(path, key), "cannot be combined with 'value'; needs one or the other");
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
      throw UserError(join_path(path, key),
                      "cannot be combined with 'distance_from', which compares whole curves");
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

/// Checks that each side says whether larger is better, and is about one arm. Otherwise nothing tells which
/// side a diverged cell speaks for.
void check_losses(const ClaimSide& side, const std::string& path) {
  constexpr const char* kGot = "got \"loses\", but a side ";
  if (side.is_constant()) return;
  if (!side.relative_to.empty() || !side.distance_from.empty())
    throw UserError(path,
                    std::string(kGot) + "is about two arms; needs sides of one arm each, or \"leaves\"");
  if (!Expression::parse(side.metric, path).is_name())
    throw UserError(path, std::string(kGot) + "is an expression; needs single metrics, or \"leaves\"");
}

void check_losses(const std::variant<Comparison, Trend, RateClaim>& statement, const std::string& path) {
  if (const auto* const comparison = std::get_if<Comparison>(&statement)) {
    check_losses(comparison->left, path);
    check_losses(comparison->right, path);
  } else if (const auto* const trend = std::get_if<Trend>(&statement)) {
    check_losses(trend->side, path);
  }
}

std::vector<std::variant<SweepPoint, SweepValue>> listed_points(const std::vector<AnyValue>& written) {
  std::vector<std::variant<SweepPoint, SweepValue>> listed;
  for (const AnyValue& place : written) {
    const Json json = to_json(place);
    if (json.is_object())
      listed.emplace_back(read_point(json));
    else
      listed.emplace_back(place);
  }
  return listed;
}

// Rules for several fields of a claim

void complete(Comparison& comparison, const std::string& path) {
  check_side(comparison.left, join_path(path, "left"));
  check_side(comparison.right, join_path(path, "right"));
  place_value(comparison.left, comparison.right, join_path(path, "left.value"));
  place_value(comparison.right, comparison.left, join_path(path, "right.value"));
  check_matched(comparison, join_path(path, "matched"));
  comparison.at.listed = listed_points(comparison.at.written);
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
      Claim& claim = read.back();
      std::visit([&](auto& statement) { complete(statement, place); }, claim.statement);
      if (claim.diverged == Diverged::loses) check_losses(claim.statement, join_path(place, "diverged"));
      if (claim.origin == Origin::paper && claim.quote.empty() &&
          (claim.regime || claim.reading != Reading::main))
        throw UserError(
            join_path(place, "quote"),
            "missing; a paper's claim with a regime or another reading quotes the paper's sentence");
      if (claim.regime) claim.regime->listed = listed_points(claim.regime->written);
    });
  }
  errors.throw_any();
  return read;
}

}  // namespace moelab
