#include "analysis/stats/crossing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace moelab {
namespace {

/// Bounds the number of points of a search.
constexpr double kLeastResolution = 1e-4;

/// The largest rounding error of a bracket's middle, as a share of the bracket.
constexpr double kRoundedBy = 1.0 / 64;

double nearest_whole(double value) {
  return static_cast<double>(std::llround(value));
}

}  // namespace

void CrossingFields::bind(Fields& fields) {
  fields.required().add(
      "metric", metric,
      "a metric, or an expression of metrics and swept paths; its mean over seeds, geometric if positive");
  fields.add("level", level, any_number(), "the number that it crosses (or give against)");
  fields.optional().add("against", against,
                        "an arm: the metric crosses the metric of this arm, instead of a level");
  fields.optional().add(
      "arm", arm,
      "whose curve places the points, at which all arms then run (default: every arm has its own)");
  fields.required().add("low", low, any_number(), "least value, run in any case");
  fields.required().add("high", high, any_number(), "greatest value, run in any case");
  fields.add("scale", is_log, {"linear", "log"}, "on which the range is halved");
  fields.add("resolution", resolution, between(kLeastResolution, 1),
             "share of the range that is narrow enough; whole numbers end at neighbours");
}

bool CrossingRule::searches(const std::string& searched) const {
  return arm.empty() || arm == searched;
}

double CrossingRule::scaled(double value) const {
  return is_log ? std::log(value) : value;
}

double CrossingRule::unscaled(double place) const {
  return is_log ? std::exp(place) : place;
}

std::optional<double> CrossingRule::middle(double from, double to) const {
  const double width = scaled(to) - scaled(from);
  if (width <= resolution * (scaled(high) - scaled(low))) return std::nullopt;
  const double exact = unscaled(scaled(from) + width / 2);
  if (is_whole) {
    if (nearest_whole(to) - nearest_whole(from) < 2) return std::nullopt;
    return std::clamp(nearest_whole(exact), nearest_whole(from) + 1, nearest_whole(to) - 1);
  }
  for (int digits = 1; digits <= 17; ++digits) {
    const double rounded = std::strtod(fmt::format("{:.{}g}", exact, digits).c_str(), nullptr);
    if (is_log && rounded <= 0) continue;
    if (std::abs(scaled(rounded) - scaled(exact)) <= kRoundedBy * width) return rounded;
  }
  return std::nullopt;  // the bracket is at the resolution of double
}

int CrossingRule::most_within(double from, double to) const {
  const std::optional<double> between = middle(from, to);
  return between ? 1 + std::max(most_within(from, *between), most_within(*between, to)) : 0;
}

namespace {

/// A t-test on the line between two points. At the share u of the way, the test accepts a mean of zero if
/// q(u) = a u² + b u + c ≤ 0.
struct LineTest {
  double a = 0, b = 0, c = 0;
  bool tells = false;  ///< two seeds or more

  bool accepts_zero(double share) const { return !tells || (a * share + b) * share + c <= 0; }
};

/// m(u)² − t² s(u)² / n, with mean and variance of the seeds' lines as polynomials of u.
LineTest test_between(const CurvePoint& left, const CurvePoint& right) {
  std::vector<double> starts, slopes;
  for (std::size_t i = 0; i < std::min(left.seeds.size(), right.seeds.size()); ++i) {
    if (!left.seeds[i] || !right.seeds[i]) continue;
    starts.push_back(*left.seeds[i]);
    slopes.push_back(*right.seeds[i] - *left.seeds[i]);
  }
  LineTest test;
  if (starts.size() < 2) return test;
  const double count = static_cast<double>(starts.size());
  double start = 0, slope = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    start += starts[i] / count;
    slope += slopes[i] / count;
  }
  double of_starts = 0, of_slopes = 0, of_both = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    of_starts += (starts[i] - start) * (starts[i] - start);
    of_slopes += (slopes[i] - slope) * (slopes[i] - slope);
    of_both += (starts[i] - start) * (slopes[i] - slope);
  }
  const double quantile = student_quantile(count - 1, 0.025);
  const double weight = quantile * quantile / (count * (count - 1));
  test.a = slope * slope - weight * of_slopes;
  test.b = 2 * (start * slope - weight * of_both);
  test.c = start * start - weight * of_starts;
  test.tells = true;
  return test;
}

/// The shares in [0, 1] at which the test may change its answer, with both ends.
std::vector<double> changes_of(const LineTest& test) {
  std::vector<double> shares = {0, 1};
  if (const double root = test.b * test.b - 4 * test.a * test.c; std::abs(test.a) > 0 && root >= 0) {
    // The form of the roots without cancellation.
    const double sum = -0.5 * (test.b + std::copysign(std::sqrt(root), test.b));
    shares.push_back(sum / test.a);
    if (std::abs(sum) > 0) shares.push_back(test.c / sum);
  } else if (std::abs(test.a) <= 0 && std::abs(test.b) > 0) {
    shares.push_back(-test.c / test.b);
  }
  std::erase_if(shares, [](double share) { return !(share >= 0 && share <= 1); });
  std::sort(shares.begin(), shares.end());
  return shares;
}

/// The hull of the shares in [0, 1] at which the test accepts zero, or none if it accepts nowhere.
std::optional<Interval> accepted_shares(const LineTest& test) {
  const std::vector<double> shares = changes_of(test);
  std::optional<Interval> hull;
  const auto add = [&](double share) {
    hull = hull ? Interval{std::min(hull->low, share), std::max(hull->high, share)} : Interval{share, share};
  };
  for (std::size_t i = 0; i + 1 < shares.size(); ++i) {
    if (!test.accepts_zero(0.5 * (shares[i] + shares[i + 1]))) continue;
    add(shares[i]);
    add(shares[i + 1]);
  }
  return hull;
}

double place_between(const CurvePoint& left, const CurvePoint& right, double share) {
  return left.x + share * (right.x - left.x);
}

}  // namespace

std::optional<double> curve_mean(const CurvePoint& point) {
  double sum = 0;
  std::size_t count = 0;
  for (const std::optional<double>& seed : point.seeds) {
    if (!seed) continue;
    sum += *seed;
    ++count;
  }
  if (2 * count <= point.seeds.size()) return std::nullopt;
  return sum / static_cast<double>(count);
}

CrossingProgress bisect(double low, double high,
                        const std::function<std::optional<double>(double, double)>& middle,
                        const std::function<const CurvePoint*(double)>& point_at) {
  CrossingProgress progress{CrossingState::open, low, high, {low, high}};
  enum class Side { above, below, no_value, open };
  const auto side_at = [&](double x) {
    const CurvePoint* const point = point_at(x);
    if (point == nullptr || !point->is_complete) return Side::open;
    const std::optional<double> mean = curve_mean(*point);
    if (!mean) return Side::no_value;
    return *mean >= 0 ? Side::above : Side::below;
  };
  const Side at_low = side_at(low), at_high = side_at(high);
  for (const Side side : {at_low, at_high})
    if (side == Side::open) return progress;
  for (const Side side : {at_low, at_high}) {
    if (side != Side::no_value) continue;
    progress.state = CrossingState::no_value;
    return progress;
  }
  if (at_low == at_high) {
    progress.state = at_low == Side::above ? CrossingState::above : CrossingState::below;
    return progress;
  }
  while (const std::optional<double> between = middle(progress.low, progress.high)) {
    progress.visited.push_back(*between);
    const Side side = side_at(*between);
    if (side == Side::open) return progress;
    if (side == Side::no_value) {
      progress.state = CrossingState::no_value;
      return progress;
    }
    (side == at_low ? progress.low : progress.high) = *between;
  }
  progress.state = CrossingState::crosses;
  return progress;
}

CrossingEstimate estimate_crossing(const std::vector<CurvePoint>& curve, std::size_t left) {
  const double at_left = curve_mean(curve[left]).value_or(0),
               at_right = curve_mean(curve[left + 1]).value_or(0);
  const double share = at_left / (at_left - at_right);
  CrossingEstimate estimate{place_between(curve[left], curve[left + 1], share), {}, {}};
  double low = estimate.x, high = estimate.x;
  for (std::size_t i = 0; i + 1 < curve.size(); ++i) {
    const std::optional<Interval> shares = accepted_shares(test_between(curve[i], curve[i + 1]));
    if (!shares) continue;
    low = std::min(low, place_between(curve[i], curve[i + 1], shares->low));
    high = std::max(high, place_between(curve[i], curve[i + 1], shares->high));
  }
  if (low > curve.front().x) estimate.low = low;
  if (high < curve.back().x) estimate.high = high;
  return estimate;
}

int sign_changes(const std::vector<CurvePoint>& curve) {
  int changes = 0;
  std::optional<bool> before;
  for (const CurvePoint& point : curve) {
    const std::optional<double> mean = curve_mean(point);
    if (!mean) continue;
    const bool is_above = *mean >= 0;
    changes += before && *before != is_above ? 1 : 0;
    before = is_above;
  }
  return changes;
}

}  // namespace moelab
