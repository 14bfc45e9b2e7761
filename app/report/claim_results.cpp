#include "app/report/claim_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "app/metrics/metric_groups.h"
#include "app/report/imported_claims.h"
#include "app/run/durable_file.h"
#include "app/run/summary.h"
#include "app/scenario/sweep_values.h"
#include "sim/base/counted.h"

namespace moelab {
namespace {

Json mean_interval_json(const std::optional<MeanEstimate>& estimate) {
  return estimate ? interval_json(estimate->interval) : Json();
}

template <class Value>
Json optional_json(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json mean_json(const std::optional<MeanEstimate>& estimate) {
  return estimate ? Json(estimate->mean) : Json();
}

Json side_json(const std::optional<MeanEstimate>& mean, const std::optional<Median>& median) {
  if (!median) return mean_json(mean);
  return median->is_open ? Json() : Json(median->value);
}

bool is_sequential(const ClaimResult& claim) {
  return std::any_of(claim.points.begin(), claim.points.end(),
                     [](const ClaimPoint& point) { return point.is_sequential; });
}

/// What was judged where the claim's text does not say it, and how a trend was.
std::string shape_statement(const ClaimResult& claim) {
  std::string text = claim.text == claim.statement ? "" : claim.statement;
  if (!claim.shape) return text;
  const char* const judged = *claim.shape == TrendShape::ends
                                 ? "ends: the last against the first"
                                 : "monotone: the ends, and no step the other way";
  return text.empty() ? judged : fmt::format("{} ({})", text, judged);
}

std::string side_of(const std::optional<MeanEstimate>& mean, const std::optional<Median>& median,
                    double factor) {
  return median ? median_text(*median, factor) : side_text(mean, factor);
}

}  // namespace

Json reported_json(const ClaimResult& claim) {
  return claim.reported.empty() ? Json() : Json::parse(claim.reported);
}

Json to_json(const ClaimResult& result) {
  Json points = Json::array();
  for (const ClaimPoint& point : result.points) {
    SweepPoint shared;
    for (const auto& coordinate : point.left_at)
      if (std::find(point.right_at.begin(), point.right_at.end(), coordinate) != point.right_at.end())
        shared.push_back(coordinate);
    Json json = {{"at", point_json(shared)}};
    if (point.left_at != point.right_at) {
      json["left_at"] = point_json(point.left_at);
      json["right_at"] = point_json(point.right_at);
    }
    if (point.left_step) {
      json["left_step"] = point.left_step->step;
      json["right_step"] = point.right_step->step;
    }
    json["left"] = side_json(point.left, point.left_median);
    json["left_interval"] = mean_interval_json(point.left);
    json["right"] = side_json(point.right, point.right_median);
    json["right_interval"] = mean_interval_json(point.right);
    json["estimate"] = mean_json(point.difference);
    json["interval"] = mean_interval_json(point.difference);
    json["scale"] = point.logarithmic ? "log ratio" : "difference";
    json["pairs"] = point.pairs;
    if (point.is_sequential) {
      json["test"] = point.signs ? "sign sequence" : "t mixture";
      json["median_interval"] = interval_json(point.median_interval);
    } else {
      json["test"] = point.signs ? "sign" : "paired t";
    }
    if (point.signs) {
      json["signs"] = {{"below", point.signs->below},
                       {"above", point.signs->above},
                       {"ties", point.signs->ties},
                       {"undecided", point.signs->undecided}};
    }
    json["p"] =
        point.p_values ? Json(std::min(point.p_values->supporting, point.p_values->opposing)) : Json();
    json["verdict"] = to_string(point.verdict);
    json["seeds_to_decide"] = optional_json(point.seeds_to_decide);
    json["note"] = point.note;
    points.push_back(std::move(json));
  }
  Json json = {{"id", result.id},
               {"verdict", to_string(result.verdict)},
               {"origin", to_string(result.origin)},
               {"source", result.source},
               {"reported", reported_json(result)},
               {"text", result.text},
               {"statement", result.statement},
               {"shape", result.shape ? Json(to_string(*result.shape)) : Json()},
               {"p", optional_json(result.p_value)},
               {"seeds_to_decide", optional_json(result.seeds_to_decide)},
               {"points", std::move(points)}};
  if (result.matched != Matched::steps) json["matched"] = to_string(result.matched);
  if (result.is_tuned) json["tuned"] = true;
  return json;
}

std::string difference_text(const ClaimPoint& point) {
  if (!point.difference) return "";
  const auto shown = [&](double value) { return point.logarithmic ? std::exp(value) : value; };
  std::string text =
      fmt::format("{} {:.3g}", point.logarithmic ? "ratio" : "difference", shown(point.difference->mean));
  if (const std::optional<Interval>& interval = point.difference->interval)
    text += fmt::format(" [{:.3g}, {:.3g}]", shown(interval->low), shown(interval->high));
  return text;
}

std::string place_text(const ClaimPoint& point) {
  const std::string left = point_text(point.left_at);
  if (point.left_step) {
    return fmt::format("{}{}step {} against {}", left, left.empty() ? "" : ", ", point.left_step->step,
                       point.right_step->step);
  }
  if (point.left_at == point.right_at) return left;
  SweepPoint other;
  for (const auto& coordinate : point.right_at) {
    if (std::find(point.left_at.begin(), point.left_at.end(), coordinate) == point.left_at.end())
      other.push_back(coordinate);
  }
  // Of several swept paths the reader has to be told which one differs.
  const bool is_clear = point.right_at.size() == 1 && point.left_at.size() == 1;
  return fmt::format("{} against {}", left, is_clear ? value_text(other.front().second) : point_text(other));
}

std::string side_text(const std::optional<MeanEstimate>& side, double factor) {
  const std::string text = estimate_text(side);
  return factor == 1 || !side ? text : fmt::format("{:g} × {}", factor, text);
}

std::string median_text(const Median& side, double factor) {
  std::string text = factor == 1 ? "" : fmt::format("{:g} × ", factor);
  text += fmt::format("median {}{:.4g}", side.is_open ? "above " : "", side.value);
  return side.censored == 0 ? text : text + fmt::format(" ({} of {} censored)", side.censored, side.count);
}

std::string left_text(const ClaimPoint& point) {
  return side_of(point.left, point.left_median, point.left_factor);
}

std::string right_text(const ClaimPoint& point) {
  return side_of(point.right, point.right_median, point.right_factor);
}

std::string statement_text(const ClaimResult& claim) {
  const std::string shape = shape_statement(claim);
  if (!is_sequential(claim)) return shape;
  return shape + (shape.empty() ? "" : "; ") + "by confidence sequences, with seeds added while it was open";
}

std::string reported_text(const Json& reported) {
  if (reported.is_null()) return "";
  if (reported.is_string()) return reported.get<std::string>();
  if (!reported.is_object()) return reported.dump();
  std::vector<std::string> parts;
  for (const auto& [name, value] : reported.items())
    parts.push_back(name + " " + (value.is_string() ? value.get<std::string>() : value.dump()));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<ClaimResult> claim_results(const RunResults& results) {
  std::optional<int> fixed_seeds;
  if (results.table.is_decided) fixed_seeds = results.plan.at("decided").at("fixed_seeds").get<int>();
  return evaluate_claims(claims_of(results), results.table, is_declared_positive, fixed_seeds);
}

std::vector<ClaimResult> judge_claims(const RunResults& results, const std::filesystem::path& directory) {
  std::vector<ClaimResult> claims = claim_results(results);
  Json json = Json::array();
  for (const ClaimResult& claim : claims) json.push_back(to_json(claim));
  const std::filesystem::path file = directory / results.outputs / "claims.json";
  const std::string text = json.dump(1) + "\n";
  if (is_read_only(directory)) {
    if (!holds(file, text))
      std::cerr << fmt::format("moelab: note: {} is read-only; claims.json was not written\n",
                               directory.string());
  } else {
    update_file(file, text);
  }
  return claims;
}

std::string claims_text(const std::vector<ClaimResult>& claims) {
  if (claims.empty()) return "no claims\n";
  std::string text;
  for (const ClaimResult& claim : claims) {
    text += fmt::format("{}: {}", claim.id, to_string(claim.verdict));
    if (claim.seeds_to_decide) text += fmt::format(" (about {} seeds would decide)", *claim.seeds_to_decide);
    text += fmt::format("\n  {}: {}", claim.origin == Origin::paper ? "the paper" : "ours", claim.text);
    if (!claim.source.empty()) text += fmt::format(" ({})", claim.source);
    if (const std::string statement = statement_text(claim); !statement.empty())
      text += "\n  judged: " + statement;
    if (const std::string reported = reported_text(reported_json(claim)); !reported.empty())
      text += "\n  reported: " + reported;
    text += "\n";
    for (const ClaimPoint& point : claim.points) {
      const std::string place = place_text(point), difference = difference_text(point);
      text += fmt::format("    {}{} against {}{}; {}: {}{}\n", place.empty() ? "" : place + ": ",
                          left_text(point), right_text(point), difference.empty() ? "" : "; " + difference,
                          counted(point.pairs, "pair"), to_string(point.verdict),
                          point.note.empty() ? "" : " (" + point.note + ")");
    }
  }
  return text;
}

}  // namespace moelab
