#include "app/report/claim_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/expression.h"
#include "analysis/stats/intervals.h"
#include "analysis/stats/result_table.h"
#include "app/run/results.h"
#include "app/run/search.h"
#include "app/scenario/overrides.h"
#include "app/store/durable_file.h"
#include "app/store/imported_arms.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

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

/// Returns the statement that was tested, if it is not the claim's text, and how a trend was tested.
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
    json["left_interval"] = interval_json(point.left);
    json["right"] = side_json(point.right, point.right_median);
    json["right_interval"] = interval_json(point.right);
    json["estimate"] = mean_json(point.difference);
    json["interval"] = interval_json(point.difference);
    json["level"] = point.level;
    json["scale"] = point.logarithmic ? "log ratio" : "difference";
    json["pairs"] = point.pairs;
    if (point.is_sequential) {
      json["test"] = point.signs ? "sign sequence" : "t mixture";
      json["median_interval"] = interval_json(point.median_interval);
    } else {
      json["test"] = point.signs ? "sign" : "paired t";
    }
    if (point.signs) json["signs"] = signs_json(*point.signs);
    if (point.lost_left + point.lost_right > 0)
      json["lost"] = {{"left", point.lost_left}, {"right", point.lost_right}};
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
               {"reading", to_string(result.reading)},
               {"regime", result.regime.empty() ? Json() : Json(result.regime)},
               {"source", result.source},
               {"reported", reported_json(result)},
               {"text", result.text},
               {"statement", result.statement},
               {"shape", result.shape ? Json(to_string(*result.shape)) : Json()},
               {"p", optional_json(result.p_value)},
               {"seeds_to_decide", optional_json(result.seeds_to_decide)},
               {"points", std::move(points)}};
  if (result.matched != Matched::steps) json["matched"] = to_string(result.matched);
  if (result.is_tuned) {
    json["tuned"] = true;
    json["tuned_by"] = result.tuned_by;
  }
  if (!result.quote.empty()) json["quote"] = result.quote;
  return json;
}

std::string difference_text(const ClaimPoint& point) {
  if (!point.difference) return "";
  const auto shown = [&](double value) { return point.logarithmic ? std::exp(value) : value; };
  std::string text =
      fmt::format("{} {:.3g}", point.logarithmic ? "ratio" : "difference", shown(point.difference->mean));
  if (const std::optional<Interval>& interval = point.difference->interval)
    text += fmt::format(" [{:.3g}, {:.3g}]", shown(interval->low), shown(interval->high));
  if (point.level > kLevel) text += fmt::format(" ({:.4g} % interval)", 100 * point.level);
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
  // With several swept paths, the text must name the path that differs.
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
  std::string shape = shape_statement(claim);
  if (!claim.regime.empty()) shape += (shape.empty() ? "in the regime " : "; in the regime ") + claim.regime;
  if (claim.reading != Reading::main) {
    shape += shape.empty() ? "" : "; ";
    shape += claim.reading == Reading::other ? "another reading" : "a reading that the paper excludes";
  }
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
  if (results.head.decided) fixed_seeds = results.head.decided->fixed_seeds;
  const auto is_positive = [&](const std::string& metric) {
    return is_declared_positive(metric) || results.table.own_positive.contains(metric);
  };
  return evaluate_claims(claims_of(results), results.table, is_positive, fixed_seeds, is_larger_better);
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

std::string claims_count_text(const std::vector<ClaimResult>& claims) {
  std::vector<std::string> verdicts;
  for (const ClaimResult& claim : claims) verdicts.push_back(to_string(claim.verdict));
  std::string text = verdict_counts(verdicts);
  // The further seeds of each claim that more seeds would decide.
  std::vector<int> needs;
  for (const ClaimResult& claim : claims) {
    if (claim.verdict != Verdict::inconclusive || !claim.seeds_to_decide || claim.points.empty()) continue;
    const auto most_pairs = std::ranges::max_element(claim.points, {}, &ClaimPoint::seen_pairs);
    const int further = *claim.seeds_to_decide - most_pairs->seen_pairs();
    if (further > 0) needs.push_back(further);
  }
  if (needs.empty()) return text;
  const auto [fewest, most] = std::ranges::minmax(needs);
  text += fmt::format(" ({} would be decided by {} more seed{}", std::ranges::count(needs, fewest), fewest,
                      fewest == 1 ? "" : "s");
  return text + (most > fewest ? fmt::format(", {} by {})", needs.size(), most) : ")");
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
  return text + "\n" + claims_count_text(claims) + "\n";
}

namespace {

/// Returns the metrics in the rows of an arm.
std::set<std::string> metrics_of_arm(const ResultTable& table, const std::string& arm) {
  std::set<std::string> names;
  for (const ResultRow& row : table.rows) {
    if (row.arm != arm) continue;
    for (const auto& metric : row.metrics) names.insert(metric.first);
  }
  return names;
}

/// Replaces an arm in claims by an imported arm.
class Replacement {
 public:
  Replacement(const ResultTable& table, std::string arm)
      : table_(table), arm_(std::move(arm)), metrics_(metrics_of_arm(table, arm_)) {}

  /// Replaces the arm in the claim's statement. Returns whether the claim makes sense for the new arm.
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
      // If no cell reached its target, the rows have the flag of censoring alone.
      return metrics_.contains(name) || metrics_.contains(censored_name(name)) ||
             std::find(paths.begin(), paths.end(), name) != paths.end();
    });
  }

  const ResultTable& table_;
  std::string arm_, replaced_;
  std::set<std::string> metrics_;
};

}  // namespace

std::vector<Claim> claims_of(const RunResults& results) {
  std::vector<Claim> claims = results.head.claims;
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

namespace {

constexpr std::size_t kMostClaims = 8;

/// Returns "test_nmse_top1 so far: learned 0.31, frozen 0.42".
std::string means_text(const RunResults& results) {
  const std::string metric = main_metric(results.head);
  std::string text;
  for (const std::string& arm : results.table.arms) {
    std::vector<double> values;
    for (const ResultRow& row : results.table.rows) {
      const auto value = row.metrics.find(metric);
      if (row.arm == arm && row.state == "done" && !row.is_copy && value != row.metrics.end())
        values.push_back(value->second);
    }
    if (values.empty()) continue;
    const double mean = seed_estimate(values, is_declared_positive(metric), results.table.is_decided).mean;
    text += fmt::format("{} {} {:.4g}", text.empty() ? "" : ",", arm, mean);
  }
  return text.empty() ? "" : fmt::format("{} so far:{}\n", metric, text);
}

/// Returns the open point of a claim with the most pairs, or null if the claim has no open point.
const ClaimPoint* told_point(const ClaimResult& claim) {
  const ClaimPoint* told = nullptr;
  for (const ClaimPoint& point : claim.points) {
    if (point.verdict == Verdict::inconclusive && (!told || point.pairs > told->pairs)) told = &point;
  }
  return told;
}

/// Formats an open claim. Numbers come first and the location last, because a narrow terminal cuts the end of
/// the line.
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
    text +=
        fmt::format("{}{}{}, ", difference, difference.empty() ? "" : ", ", counted(point->pairs, "pair"));
  }
  text += fmt::format("{} so far, open at {} of {} points", to_string(claim.verdict), open, points);
  const std::string place = point ? place_text(*point) : "";
  return text + (place.empty() ? "" : "; " + place) + "\n";
}

std::string claims_so_far(const RunResults& results) {
  std::map<std::string, int> decided;
  std::string open;
  std::size_t count = 0, without_pairs = 0;
  for (const ClaimResult& claim : claim_results(results)) {
    const ClaimPoint* const told = told_point(claim);
    if (claim.verdict != Verdict::inconclusive) {
      ++decided[to_string(claim.verdict)];
    } else if (told && told->pairs == 0) {
      ++without_pairs;
    } else if (++count <= kMostClaims) {
      open += open_text(claim);
    }
  }
  if (count > kMostClaims) open += fmt::format("  and {} more\n", count - kMostClaims);
  if (without_pairs > 0) open += fmt::format("  {} without a pair so far\n", counted(without_pairs, "claim"));
  return (decided.empty() ? "" : "claims so far: " + counts_text(decided) + "\n") + open;
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
  // Uses at most a twentieth of the time of the waiting thread.
  next_ = Clock::now() + 20 * (Clock::now() - start);
  return text_;
}

namespace {

/// The two sides of a claim. A trend compares its side with the same side at another point.
struct ClaimSides {
  const ClaimSide &left, &right;
  bool are_signs_enough;  ///< signs decide points with censored values
};

/// Returns the sides of a claim. Empty for a claim on rates, which has no sequence.
std::optional<ClaimSides> open_claim_sides(const Claim& claim) {
  if (const Comparison* const comparison = std::get_if<Comparison>(&claim.statement))
    return ClaimSides{comparison->left, comparison->right, is_decided_by_signs(comparison->range())};
  if (const Trend* const trend = std::get_if<Trend>(&claim.statement))
    return ClaimSides{trend->side, trend->side, true};
  return std::nullopt;
}

/// Maps arms and points to their indices in the order of the cells.
class Places {
 public:
  explicit Places(const Scenario& scenario) {
    for (const Cell& cell : scenario.cells) {
      if (cell.seed != 0) continue;
      places_.emplace(std::pair(cell.arm, point_key(cell.point)), places_.size());
      paths_.emplace(cell.arm, cell.point);
    }
  }

  /// Raises the arms at the point of a claim to at least `seeds` seeds.
  void raise(const ClaimSides& sides, const ClaimPoint& point, int seeds, std::vector<int>& wanted) const {
    std::vector<std::size_t> needed = of(sides.left, point.left_at);
    const std::vector<std::size_t> others = of(sides.right, point.right_at);
    needed.insert(needed.end(), others.begin(), others.end());
    for (const std::size_t place : needed) wanted[place] = std::max(wanted[place], seeds);
  }

 private:
  /// Returns the indices of a side's arms at a point. Empty for a constant.
  std::vector<std::size_t> of(const ClaimSide& side, const SweepPoint& point) const {
    std::vector<std::size_t> found;
    if (side.is_constant()) return found;
    for (const std::string& arm : {side.arm, side.relative_to, side.distance_from}) {
      if (arm.empty()) continue;
      SweepPoint own = point;
      std::erase_if(own,
                    [&](const auto& coordinate) { return !coordinate_of(paths_.at(arm), coordinate.first); });
      const auto place = places_.find(std::pair(arm, point_key(own)));
      if (place != places_.end()) found.push_back(place->second);
    }
    return found;
  }

  std::map<std::pair<std::string, std::string>, std::size_t> places_;
  std::map<std::string, SweepPoint> paths_;  ///< a point of each arm, which has the paths that the arm sweeps
};

bool is_open(const ClaimPoint& point, bool are_signs_enough) {
  if (point.verdict != Verdict::inconclusive || !point.is_complete) return false;
  if (point.pairs < kLeastSequentialPairs) return true;
  if (point.signs && !are_signs_enough) return false;
  return !point.is_step;  // a step decides only if it leads the other way
}

}  // namespace

int next_look(int pairs) {
  return std::max(kLeastSequentialPairs, pairs + (pairs + 3) / 4);
}

std::vector<int> wanted_seeds(const Scenario& scenario, const std::vector<ClaimResult>& claims,
                              const std::vector<int>& seeds, int most) {
  const std::vector<Claim>& read = scenario.claims;
  const Places places(scenario);
  std::vector<int> wanted = seeds;
  for (std::size_t i = 0; i < read.size(); ++i) {
    const std::optional<ClaimSides> sides = open_claim_sides(read[i]);
    if (claims[i].verdict != Verdict::inconclusive || !sides) continue;
    for (const ClaimPoint& point : claims[i].points) {
      if (is_open(point, sides->are_signs_enough))
        places.raise(*sides, point, std::min(most, next_look(point.pairs)), wanted);
    }
  }
  return wanted;
}

std::vector<int> most_wanted_seeds(const Scenario& scenario, const std::vector<int>& seeds, int most) {
  ResultTable table = recorded_table(scenario, {});
  table.is_decided = true;
  const std::vector<Claim>& read = scenario.claims;
  const std::vector<ClaimResult> claims = evaluate_claims(read, table, is_declared_positive, seeds.front());
  const Places places(scenario);
  std::vector<int> wanted = seeds;
  for (std::size_t i = 0; i < read.size(); ++i) {
    const std::optional<ClaimSides> sides = open_claim_sides(read[i]);
    if (!sides) continue;
    for (const ClaimPoint& point : claims[i].points) {
      // A step is open only up to kLeastSequentialPairs pairs (see is_open).
      places.raise(*sides, point, point.is_step ? std::min(most, kLeastSequentialPairs) : most, wanted);
    }
  }
  return wanted;
}

}  // namespace moelab
