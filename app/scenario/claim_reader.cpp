#include "app/scenario/claim_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/expression.h"
#include "app/scenario/overrides.h"
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

ClaimStep read_step(const Json& step) {
  if (step.is_number()) return {ClaimStep::At::recorded, step.get<std::int64_t>()};
  return {step == "start" ? ClaimStep::At::start : ClaimStep::At::end};
}

/// What a side has that is an arm's, from a side or a trend.
ClaimSide read_measured(const Json& part) {
  ClaimSide side;
  side.arm = part.at("arm").get<std::string>();
  side.metric = part.at("metric").get<std::string>();
  side.relative_to = part.value("relative_to", "");
  return side;
}

ClaimSide read_side(const Json& part, const std::string& path) {
  ClaimSide side;
  if (part.contains("value")) {
    for (const char* key : {"arm", "metric", "relative_to", "distance_from", "where", "step"}) {
      if (part.contains(key))
        throw UserError(join_path(path, key), "given beside 'value'; needs one or the other");
    }
    const Json& value = part.at("value");
    side.value = value.is_string() ? value.get<std::string>() : fmt::to_string(value.get<double>());
  } else {
    for (const char* key : {"arm", "metric"}) {
      if (!part.contains(key))
        throw UserError(join_path(path, key), "missing; a side needs arm and metric, or value");
    }
    for (const char* key : {"relative_to", "step"}) {
      if (part.contains("distance_from") && part.contains(key))
        throw UserError(join_path(path, key), "given beside 'distance_from', which is of whole curves");
    }
    side = read_measured(part);
    side.distance_from = part.value("distance_from", "");
    if (part.contains("where")) side.where = read_point(part.at("where"));
    if (part.contains("step")) side.step = read_step(part.at("step"));
  }
  side.factor = part.value("factor", 1.0);
  return side;
}

/// A value that names metrics is an expression of the other side's arm, taken where that side is.
void place_value(ClaimSide& side, const ClaimSide& other, const std::string& path) {
  if (!side.is_constant() || other.is_constant()) return;
  if (!has_metric(Expression::parse(side.value, path).names())) return;
  side.arm = other.arm;
  side.metric = std::exchange(side.value, "");
  side.where = other.where;
  side.step = other.step;
}

ClaimPlaces read_places(const Json& at, const std::string& path) {
  ClaimPlaces places;
  if (at == "each") return places;
  if (at == "last") return {ClaimPlaces::Which::last, {}};
  if (!at.is_array()) {
    throw UserError(path,
                    fmt::format("{}; allowed: \"each\", \"last\" or a list of sweep points", at.dump()));
  }
  places.which = ClaimPlaces::Which::listed;
  for (const Json& place : at) {
    if (place.is_object()) {
      places.listed.emplace_back(read_point(place));
    } else {
      places.listed.emplace_back(read_sweep_value(place));
    }
  }
  return places;
}

/// Sides that are matched are the metrics of two arms at a record that the matching finds.
Matched read_matched(const Json& claim, const Comparison& comparison, const std::string& path) {
  const std::string name = claim.value("matched", "steps");
  if (name == "steps") return Matched::steps;
  const std::string here = join_path(path, "matched");
  for (const ClaimSide* side : {&comparison.left, &comparison.right}) {
    const std::string got = "got \"" + name + "\", ";
    if (side->is_constant()) throw UserError(here, got + "but a side is a number; needs two arms");
    if (side->step || !side->relative_to.empty() || !side->distance_from.empty())
      throw UserError(here, got + "but a side has a step, relative_to or distance_from of its own");
  }
  return name == "loss" ? Matched::loss : Matched::flops;
}

Comparison read_comparison(const Json& claim, const std::string& op, const std::string& path) {
  Comparison comparison;
  comparison.left = read_side(claim.at("left"), join_path(path, "left"));
  comparison.right = read_side(claim.at("right"), join_path(path, "right"));
  place_value(comparison.left, comparison.right, join_path(path, "left.value"));
  place_value(comparison.right, comparison.left, join_path(path, "right.value"));
  if (op != "<" && op != ">" && op != "~")
    throw UserError(join_path(path, "op"), unknown_name("operator", op, {"<", ">", "~"}));
  comparison.op = op[0];
  if (op == "~") {
    if (!claim.contains("tolerance"))
      throw UserError(join_path(path, "tolerance"), "missing; op ~ needs a relative tolerance above 0");
    comparison.tolerance = claim.at("tolerance").get<double>();
  }
  comparison.matched = read_matched(claim, comparison, path);
  comparison.at = read_places(claim.value("at", Json("each")), join_path(path, "at"));
  return comparison;
}

Trend read_trend(const Json& claim, const std::string& op, const std::string& path) {
  if (op != "decreases" && op != "increases")
    throw UserError(join_path(path, "op"), unknown_name("trend", op, {"decreases", "increases"}));
  return {read_measured(claim), op == "increases", claim.at("along").get<std::string>(),
          claim.value("shape", "ends") == "monotone" ? TrendShape::monotone : TrendShape::ends};
}

RateClaim read_rate(const Json& claim, bool slower) {
  RateClaim rate;
  rate.query = read_rate_query(claim, claim.at("arm"), claim.at("metric"), claim.at("along"));
  rate.slower = slower;
  const Json& against = claim.at(slower ? "than" : "exponent");
  if (against.is_string()) {
    rate.against = against.get<std::string>();
  } else {
    rate.against = against.get<double>();
  }
  rate.tolerance = claim.value("tolerance", kRateTolerance);
  return rate;
}

Claim read_claim(const Json& json, const std::string& path) {
  const std::string op = json.at("op").get<std::string>();
  Claim claim;
  claim.id = json.at("id").get<std::string>();
  if (op == "rate" || op == "slower") {
    claim.statement = read_rate(json, op == "slower");
  } else if (json.contains("along")) {
    claim.statement = read_trend(json, op, path);
  } else {
    claim.statement = read_comparison(json, op, path);
  }
  if (json.value("origin", "ours") == "paper") claim.origin = Origin::paper;
  if (json.contains("smallest_effect")) claim.smallest_effect = json.at("smallest_effect").get<double>();
  claim.is_tuned = json.value("tuned", false);
  if (json.contains("text")) claim.text = json.at("text").get<std::string>();
  claim.source = json.value("source", "");
  if (json.contains("reported")) claim.reported = json.at("reported").dump();
  return claim;
}

}  // namespace

std::vector<Claim> read_claims(const Json& claims) {
  std::vector<Claim> read;
  for (std::size_t i = 0; i < claims.size(); ++i)
    read.push_back(read_claim(claims[i], join_path("claims", i)));
  return read;
}

Field rate_average_field() {
  return {
      "average", Shape::choice({"logarithms", "squares"}),
      "what is averaged over repetitions: logarithms of errors, which gives each a slope; or squares, whose "
      "mean's root has one, where the error of a share of the repetitions is of another order",
      "logarithms"};
}

RateQuery read_rate_query(const Json& part, const std::string& arm, const std::string& metric,
                          const std::string& along) {
  RateQuery query{arm, metric, along};
  if (part.contains("where")) query.where = read_point(part.at("where"));
  if (part.contains("window")) {
    query.window = Interval{part.at("window")[0].get<double>(), part.at("window")[1].get<double>()};
  }
  if (part.value("average", "logarithms") == "squares") query.average = RateAverage::squares;
  return query;
}

}  // namespace moelab
