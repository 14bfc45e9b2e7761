#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/claims.h"
#include "analysis/stats/intervals.h"
#include "plots/kinds/figure_kind.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Each row is a point of the claim: its paired ratio or difference with the 95 % interval. A sequential run
/// shows the confidence sequence.
///
/// If steps are censored, the sign test judges the claim. The mark is then the share of decidable pairs whose
/// left side is below, with its binomial interval. Dashed lines show the values that the marks are compared
/// with.
struct ClaimFigureOptions : FigureCommon {
  std::string claim;  ///< id
  void bind(Fields& fields) {
    FigureCommon::bind(fields);
    fields.required().add("claim", claim, "id of the claim");
  }
};

/// The place, and a single value without its path's name.
std::string place_name(const SweepPoint& at, const DisplayNames& names) {
  return at.size() == 1 ? names.bare_value(at.front().first, at.front().second) : names.point(at);
}

/// "samples = 5120 against 320, experts = 4": the values of two places, and once those that they share.
std::string two_places(const SweepPoint& left, const SweepPoint& right, const DisplayNames& names) {
  SweepPoint shared, own;
  for (const auto& coordinate : left)
    (std::find(right.begin(), right.end(), coordinate) != right.end() ? shared : own).push_back(coordinate);
  SweepPoint other;
  for (const auto& coordinate : right)
    if (std::find(left.begin(), left.end(), coordinate) == left.end()) other.push_back(coordinate);
  const bool is_same_path = own.size() == 1 && other.size() == 1 && own.front().first == other.front().first;
  if (!is_same_path) return names.point(left) + " against " + names.point(right);
  return names.point(own) + " against " + place_name(other, names) +
         (shared.empty() ? "" : ", " + names.point(shared));
}

/// The names of the two places of a point, and its steps. `is_bare`: a single path is named by its value
/// alone.
std::string places_text(const ClaimPoint& point, const DisplayNames& names, bool is_bare) {
  const SweepPoint &left = point.left_at, &right = point.right_at;
  const bool is_single = is_bare && left.size() == 1 && right.size() == 1;
  std::string name = left == right ? (is_bare ? place_name(left, names) : names.point(left))
                     : is_single   ? place_name(left, names) + " against " + place_name(right, names)
                                   : two_places(left, right, names);
  if (point.left_step)
    name += fmt::format("{}step {} against {}", name.empty() ? "" : ", ", point.left_step->step,
                        point.right_step->step);
  return name;
}

/// The name of a point. A single path is named by its value alone.
std::string point_name(const ClaimPoint& point, const DisplayNames& names) {
  return places_text(point, names, true);
}

/// The side with the display names of its arms, metrics and places.
std::string shown_side(ClaimSide side, const DisplayNames& names) {
  const std::string place = names.point(side.where);
  side.where.clear();
  for (std::string* const arm : {&side.arm, &side.relative_to, &side.distance_from}) *arm = names.arm(*arm);
  if (side.is_constant()) side.value = names.axis(side.value);
  side.metric = names.axis(side.metric);
  return side.text() + (place.empty() ? "" : " at " + place);
}

}  // namespace

std::string shown_point(const ClaimPoint& point, const DisplayNames& names) {
  return places_text(point, names, false);
}

std::string shown_statement(const Claim& claim, const ClaimResult& result, const DisplayNames& names) {
  // The text after the names ("within 5 %", "each arm at its best") stays unchanged.
  const auto after = [&](const std::string& names_part) {
    return result.statement.substr(names_part.size());
  };
  if (const Comparison* const comparison = std::get_if<Comparison>(&claim.statement)) {
    const auto text = [&](const std::string& left, const std::string& right) {
      return fmt::format("{} {} {}", left, comparison->rule.op, right);
    };
    return text(shown_side(comparison->left, names), shown_side(comparison->right, names)) +
           after(text(comparison->left.text(), comparison->right.text()));
  }
  if (const Trend* const trend = std::get_if<Trend>(&claim.statement)) {
    const auto text = [&](const std::string& side, const std::string& along) {
      return fmt::format("{} {} along {}", side, trend->increases ? "increases" : "decreases", along);
    };
    return text(shown_side(trend->side, names), names.axis(trend->along)) +
           after(text(trend->side.text(), trend->along));
  }
  RateClaim rate = std::get<RateClaim>(claim.statement);
  const std::string plain = rate_claim_text(rate);
  rate.query.arm = names.arm(rate.query.arm);
  rate.query.metric = names.axis(rate.query.metric);
  rate.query.along = names.axis(rate.query.along);
  if (std::string* const than = std::get_if<std::string>(&rate.against)) *than = names.arm(*than);
  return rate_claim_text(rate) + after(plain);
}

namespace {

/// A grey line across all points; `height` returns its value at each point.
FigureSeries judged_line(const std::string& name, const ClaimResult& result,
                         const std::function<double(const ClaimPoint&)>& height) {
  FigureSeries line{name, {}, SeriesLook::reference};
  for (std::size_t i = 0; i < result.points.size(); ++i)
    // Each point's segment spans its full width.
    for (const double side : {-0.5, 0.5})
      line.points.push_back({static_cast<double>(i) + side, height(result.points[i])});
  return line;
}

/// The values that the interval is compared with: the ends of the claimed range, or equality and the smallest
/// relevant effect.
std::vector<FigureSeries> judged_lines(const Claim& claim, const ClaimResult& result, bool ratio) {
  const Comparison* const comparison = std::get_if<Comparison>(&claim.statement);
  const RateClaim* const rate = std::get_if<RateClaim>(&claim.statement);
  Interval range = comparison ? comparison->range() : kAbove;
  if (rate && !rate->slower) range = {-rate->tolerance, rate->tolerance};
  std::vector<FigureSeries> lines;
  for (const double edge : {range.low, range.high}) {
    if (edge == 0 || std::isinf(edge)) continue;
    const bool is_tolerance = rate || comparison->rule.has_tolerance;
    const std::string name =
        is_tolerance ? fmt::format("tolerance {:g}", std::abs(edge)) : fmt::format("{:g} × right", 1 + edge);
    lines.push_back(judged_line(name, result, [&](const ClaimPoint& point) {
      const double unit = comparison && point.right ? std::abs(point.right_factor * point.right->mean) : 1;
      return ratio ? 1 + edge : edge * unit;
    }));
  }
  if (!lines.empty()) return lines;
  lines.push_back(judged_line("equal sides", result, [&](const ClaimPoint&) { return ratio ? 1.0 : 0.0; }));
  if (!claim.smallest_effect) return lines;
  const double effect = *claim.smallest_effect;
  for (const double sign : {-1.0, 1.0})
    lines.push_back(judged_line(fmt::format("smallest effect {:g}", effect), result, [&](const ClaimPoint&) {
      return ratio ? std::pow(1 + effect, sign) : sign * effect;
    }));
  return lines;
}

/// The paired effect with its interval. Points of the sign test have none: their medians may be bounds, and
/// can lie on the other side.
FigurePoint effect_point(const ClaimPoint& point, std::size_t place, bool ratio) {
  FigurePoint drawn{static_cast<double>(place)};
  const auto shown = [&](double value) { return ratio ? std::exp(value) : value; };
  if (!point.difference) return drawn;
  drawn.mean = shown(point.difference->mean);
  // A sequence that excludes no mean yet has infinite ends.
  const std::optional<Interval>& interval = point.difference->interval;
  if (interval && std::isfinite(interval->low) && std::isfinite(interval->high)) {
    drawn.low = shown(interval->low);
    drawn.high = shown(interval->high);
  }
  return drawn;
}

bool is_judged_by_signs(const ClaimResult& result) {
  return std::any_of(result.points.begin(), result.points.end(),
                     [](const ClaimPoint& point) { return point.signs.has_value(); });
}

/// The share of decidable pairs whose left side is below, which the sign test counts. Sequential runs have no
/// interval: it would be invalid, because the results determine the number of seeds.
FigurePoint share_point(const ClaimPoint& point, std::size_t place) {
  FigurePoint drawn{static_cast<double>(place)};
  const int decidable = point.signs ? point.signs->below + point.signs->above : 0;
  if (decidable == 0) return drawn;
  drawn.mean = static_cast<double>(point.signs->below) / decidable;
  if (point.is_sequential) return drawn;
  const Interval interval = binomial_interval(point.signs->below, decidable);
  drawn.low = interval.low;
  drawn.high = interval.high;
  return drawn;
}

/// Caption text with the sign counts at each point and the effects of points without censored steps.
std::string signs_text(const ClaimResult& result, bool ratio, const DisplayNames& names) {
  std::vector<std::string> counts, others;
  for (const ClaimPoint& point : result.points) {
    const std::string name = point_name(point, names), start = name.empty() ? "" : name + ": ";
    if (point.signs) {
      const int unknown = point.signs->ties + point.signs->undecided;
      counts.push_back(fmt::format("{}{} of {}{}", start, point.signs->below,
                                   point.signs->below + point.signs->above,
                                   unknown > 0 ? fmt::format(" ({} more tied or unknown)", unknown) : ""));
    } else if (const FigurePoint effect = effect_point(point, 0, ratio); effect.mean) {
      others.push_back(start + fmt::format("{:.3g}", *effect.mean) +
                       (effect.low ? fmt::format(" [{:.3g}, {:.3g}]", *effect.low, *effect.high) : ""));
    }
  }
  std::string text = fmt::format(
      "Some steps are censored: the sign test uses the pairs of seeds whose order is known. Shown: the share "
      "of these pairs whose left side, the first named, is below. {}.",
      fmt::join(counts, "; "));
  if (!others.empty())
    text += fmt::format(" Not drawn, without a censored step: {} with its 95 % interval, {}.",
                        ratio ? "geometric mean of left ÷ right" : "mean of left − right",
                        fmt::join(others, "; "));
  return text;
}

/// The legend entry of the marks.
std::string marks_name(bool of_signs, bool is_rate, bool is_sequential) {
  if (of_signs) return is_sequential ? "decidable pairs" : "decidable pairs, 95 % interval";
  return fmt::format("{}, 95 % {}", is_rate ? "repetitions" : "paired seeds",
                     is_sequential ? "confidence sequence" : "interval");
}

void check_claim_figure(const FigureReferences& references, const ClaimFigureOptions& options,
                        const std::string& path) {
  std::vector<std::string> ids;
  for (const Claim& claim : references.claims()) ids.push_back(claim.id);
  if (std::find(ids.begin(), ids.end(), options.claim) == ids.end())
    throw UserError(path + ".claim", unknown_name("claim", options.claim, ids));
  const auto refuse = [&](const char* field, bool given) {
    if (given) {
      throw UserError(path + "." + field,
                      fmt::format("given, but a figure of kind \"claim\" has the {} of its claim",
                                  std::string(field) == "arms" ? "arms" : "points"));
    }
  };
  refuse("arms", !options.arms.empty());
  refuse("where", !options.where.empty());
}

/// The marks and the lines that they are compared with, as the CSV has them.
Figure claim_data(const ClaimFigureOptions& options, const Claim& claim, const ClaimResult& result,
                  const FigureSource& source) {
  const DisplayNames names(source.run);
  const bool ratio = std::any_of(result.points.begin(), result.points.end(),
                                 [](const ClaimPoint& point) { return point.logarithmic; });
  const bool is_rate = std::holds_alternative<RateClaim>(claim.statement);

  const std::string statement = shown_statement(claim, result, names);
  // Prefer the claim's own words.
  const std::string& words = result.text == result.statement ? statement : result.text;

  const bool of_signs = is_judged_by_signs(result);
  const bool is_sequential = std::any_of(result.points.begin(), result.points.end(),
                                         [](const ClaimPoint& point) { return point.is_sequential; });

  Figure figure;
  figure.id = options.id;
  figure.title = options.title.value_or(statement);
  figure.y_log = ratio && !of_signs;
  figure.y_label = of_signs  ? "share of pairs, left below right"
                   : is_rate ? "slope − claimed slope"
                   : ratio   ? "left ÷ right"
                             : "left − right";
  if (of_signs) figure.y_range = {0, 1};
  FigureSeries series{marks_name(of_signs, is_rate, is_sequential), {}, SeriesLook::marks};
  int most_pairs = 0, fewest_pairs = result.points.empty() ? 0 : result.points.front().pairs;
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const ClaimPoint& point = result.points[i];
    series.points.push_back(of_signs ? share_point(point, i) : effect_point(point, i, ratio));
    most_pairs = std::max(most_pairs, point.pairs);
    fewest_pairs = std::min(fewest_pairs, point.pairs);
    const std::string name = point_name(point, names);
    figure.x_categories.push_back((name.empty() ? "" : name + ": ") + to_string(point.verdict));
    if (point.left_at.size() == 1) figure.x_label = names.axis(point.left_at.front().first);
  }
  figure.panels = {{"", {std::move(series)}}};
  const std::vector<FigureSeries> lines =
      of_signs ? std::vector{judged_line("equal chances, 1/2", result, [](const ClaimPoint&) { return 0.5; })}
               : judged_lines(claim, result, ratio);
  figure.panels.front().series.insert(figure.panels.front().series.end(), lines.begin(), lines.end());
  figure.caption = fmt::format("{}: {}. ", result.id, to_string(result.verdict));
  if (words != figure.title) figure.caption += words + (words.ends_with('.') ? " " : ". ");
  figure.caption += result.source.empty() ? scenario_sentences("", source) : result.source + ". ";
  if (of_signs)
    figure.caption += signs_text(result, ratio, names);
  else
    figure.caption +=
        fmt::format("{}; {}{}{}.",
                    is_rate ? "Mean over repetitions"
                    : ratio ? "Geometric mean of the ratio"
                            : "Mean of the difference",
                    fewest_pairs < most_pairs ? "up to " : "",
                    counted(most_pairs, is_rate ? "repetition" : "pair"), is_rate ? "" : " of seeds");
  figure.caption += source.footnote;
  return figure;
}

/// The rows of a claim on its scale. `name`: of the claim; empty if it is the only one.
ForestPanel claim_panel(const Figure& data, const ClaimResult& result, const std::string& name,
                        const DisplayNames& names) {
  ForestPanel panel;
  panel.label = data.y_label;
  panel.is_log = data.y_log;
  panel.range = data.y_range;
  panel.no_effect = data.y_range ? 0.5 : data.y_log ? 1 : 0;
  const std::vector<FigureSeries>& series = data.panels.front().series;
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const FigurePoint& mark = series.front().points[i];
    ForestRow row{name,
                  point_name(result.points[i], names),
                  to_string(result.points[i].verdict),
                  mark.mean,
                  mark.low,
                  mark.high,
                  result.points[i].level};
    if (const SweepPoint& left = result.points[i].left_at, &right = result.points[i].right_at;
        !result.points[i].left_step) {
      std::vector<std::string> paths, values;
      for (const auto& [path, value] : left) {
        const SweepValue* const other = coordinate_of(right, path);
        paths.push_back(names.legend(path));
        values.push_back(names.bare_value(path, value));
        if (other && *other != value) values.back() += " against " + names.bare_value(path, *other);
      }
      row.paths = fmt::format("{}", fmt::join(paths, ", "));
      row.values = fmt::format("{}", fmt::join(values, ", "));
    }
    // Each line has two places at every point.
    for (std::size_t line = 1; line < series.size(); ++line)
      if (const std::optional<double>& limit = series[line].points[2 * i].mean;
          limit && *limit != panel.no_effect)
        row.limits.push_back(*limit);
    panel.rows.push_back(std::move(row));
  }
  return panel;
}

/// The metric whose difference a claim judges.
std::string judged_metric(const Claim& claim, const DisplayNames& names) {
  if (const Comparison* const comparison = std::get_if<Comparison>(&claim.statement))
    return names.axis(comparison->left.is_constant() ? comparison->right.metric : comparison->left.metric);
  if (const Trend* const trend = std::get_if<Trend>(&claim.statement)) return names.axis(trend->side.metric);
  return "";
}

/// The label of the axis: "learned ÷ frozen" in place of "left ÷ right" where the sides differ by their arms.
std::string named_sides(const Figure& data, const Claim& claim, const DisplayNames& names) {
  const Comparison* const comparison = std::get_if<Comparison>(&claim.statement);
  if (!comparison || data.y_range) return data.y_label;
  const ClaimSide &left = comparison->left, &right = comparison->right;
  const auto is_arm = [](const ClaimSide& side) {
    return !side.is_constant() && side.relative_to.empty() && side.distance_from.empty() && side.factor == 1;
  };
  if (!is_arm(left) || !is_arm(right) || left.arm == right.arm || left.metric != right.metric)
    return data.y_label;
  return fmt::format("{} {} {}", names.arm(left.arm), data.y_log ? "÷" : "−", names.arm(right.arm));
}

/// What the marks and lines of a forest are.
std::string forest_text(const Forest& forest) {
  double least = 1, most = 0;
  bool has_limits = false;
  for (const ForestPanel& panel : forest.panels) {
    for (const ForestRow& row : panel.rows) {
      has_limits = has_limits || !row.limits.empty();
      if (!row.low) continue;
      least = std::min(least, row.level);
      most = std::max(most, row.level);
    }
  }
  std::string text;
  if (most > least)
    text = fmt::format(
        " Marks are estimates, and lines the intervals of the verdicts (from {:.4g} to {:.4g} %).",
        100 * least, 100 * most);
  else if (most > 0)
    text = fmt::format(" Marks are estimates, and lines their {:.4g} % intervals.", 100 * most);
  if (has_limits) text += " Dotted: tolerance, or smallest effect.";
  return text;
}

/// The legend entry of the dotted lines: "bounds of the claim (±3 %)".
std::string limits_name(const Claim& claim, bool is_ratio) {
  const Comparison* const comparison = std::get_if<Comparison>(&claim.statement);
  const RateClaim* const rate = std::get_if<RateClaim>(&claim.statement);
  if (comparison && comparison->rule.has_tolerance)
    return fmt::format("bounds of the claim (±{:g} %)", 100 * comparison->tolerance);
  if (rate && !rate->slower && rate->tolerance > 0)
    return fmt::format("bounds of the claim (±{:g})", rate->tolerance);
  if (!claim.smallest_effect) return "bound of the claim";
  return is_ratio ? fmt::format("smallest effect ({:g} %)", 100 * *claim.smallest_effect)
                  : fmt::format("smallest effect ({:g})", *claim.smallest_effect);
}

Forest build_claim_figure(const ClaimFigureOptions& options, const FigureSource& source) {
  const std::vector<Claim>& claims = source.run.claims;
  const auto found = std::find_if(claims.begin(), claims.end(),
                                  [&](const Claim& claim) { return claim.id == options.claim; });
  if (found == claims.end()) throw UserError("figures." + options.id, "names a claim that is not there");
  const ClaimResult result =
      evaluate_claims({*found}, source.table, is_declared_positive, source.run.fixed_seeds).front();
  const DisplayNames names(source.run);
  const Figure data = claim_data(options, *found, result, source);
  Forest forest;
  forest.id = data.id;
  forest.title = data.title;
  forest.caption = data.caption;
  forest.csv = figure_csv(data);
  forest.panels = {claim_panel(data, result, "", names)};
  forest.panels.front().label = named_sides(data, *found, names);
  forest.limits_name = limits_name(*found, forest.panels.front().is_log);
  if (!data.x_label.empty()) forest.panels.front().heading = data.x_label;
  return forest;
}

}  // namespace

std::optional<Forest> claims_forest(const FigureSource& source, const std::string& id) {
  const DisplayNames names(source.run);
  Forest forest;
  forest.id = id;
  std::vector<std::string> verdicts;
  for (const Claim& claim : source.run.claims) {
    const ClaimResult result =
        evaluate_claims({claim}, source.table, is_declared_positive, source.run.fixed_seeds).front();
    ClaimFigureOptions options;
    options.id = options.claim = claim.id;
    ForestPanel own = claim_panel(claim_data(options, claim, result, source), result, claim.id, names);
    verdicts.push_back(to_string(result.verdict));
    // Differences of different metrics have different units.
    const std::string metric = judged_metric(claim, names);
    if (!own.is_log && !own.range && !metric.empty()) own.label = metric + ": " + own.label;
    const auto same = std::find_if(forest.panels.begin(), forest.panels.end(),
                                   [&](const ForestPanel& panel) { return panel.label == own.label; });
    if (same == forest.panels.end())
      forest.panels.push_back(std::move(own));
    else
      same->rows.insert(same->rows.end(), own.rows.begin(), own.rows.end());
  }
  if (forest.panels.empty()) return std::nullopt;
  forest.title = "Claims: " + verdict_counts(verdicts);
  forest.caption =
      scenario_sentences(forest.title, source) +
      "One row for each claim and point: the paired effect of its left side against its right side." +
      forest_text(forest) + source.footnote;
  forest.csv = forest_csv(forest);
  return forest;
}

FigureKind claim_kind() {
  return figure_kind(
      "claim",
      "forest plot of a claim: its paired ratio or difference at each of its points, with the interval, the "
      "line of no effect, and the verdict as a mark",
      check_claim_figure, build_claim_figure);
}

FigureOptions claim_figure(const std::string& claim) {
  ClaimFigureOptions options;
  options.id = options.claim = claim;
  return options;
}

}  // namespace moelab
