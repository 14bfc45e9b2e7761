#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "app/report/claim_results.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Whether the point must agree with the others. A step of a monotone trend can only refute.
bool is_judged(const ClaimPoint& point) {
  return point.verdict != Verdict::outside && point.verdict != Verdict::uninformative && !point.is_step;
}

std::string number(double value, bool logarithmic) {
  return fmt::format("{:.4g}", logarithmic ? std::exp(value) : value);
}

/// "below 1", "above 0" or "between 0.9 and 1.1", in units of ratios for logarithms.
std::string range_text(const Interval& range, bool logarithmic) {
  if (std::isinf(range.low)) return "below " + number(range.high, logarithmic);
  if (std::isinf(range.high)) return "above " + number(range.low, logarithmic);
  return fmt::format("between {} and {}", number(range.low, logarithmic), number(range.high, logarithmic));
}

std::string level_text(double level) {
  return fmt::format("{:.4g} %", 100 * level);
}

/// What a pair is, and on which scale it is compared.
std::string pairs_text(const ClaimResult& claim) {
  const ClaimPoint& first = claim.points.front();
  if (claim.is_rate) {
    return "Each repetition gives one slope: the least-squares line of ln(metric) on ln(n). The compared "
           "number is the slope minus the slope that the claim names. The interval is Student's t over the "
           "repetitions.\n";
  }
  std::string text =
      "A pair is one seed. Both sides of a pair have the same data and the same initial weights, so the "
      "comparison is within pairs. ";
  if (first.logarithmic) {
    text +=
        "All values are positive, so a pair is compared by the logarithm of left divided by right. "
        "Numbers below are ratios. ";
  } else {
    text += "A pair is compared by left minus right. ";
  }
  const bool has_signs = std::any_of(claim.points.begin(), claim.points.end(),
                                     [](const ClaimPoint& point) { return point.signs.has_value(); });
  if (first.is_sequential) {
    text +=
        "Seeds were added while the claim was open. So the intervals are confidence sequences, which stay "
        "valid however often one looks.\n";
  } else if (has_signs) {
    text +=
        "Some runs ended before their value was known. There, a sign test counts the pairs whose order is "
        "known.\n";
  } else {
    text += "The interval is the one of the paired t-test.\n";
  }
  return text;
}

std::string rule_text(const ClaimResult& claim, int tests) {
  const auto judged = std::find_if(claim.points.begin(), claim.points.end(),
                                   [](const ClaimPoint& point) { return point.claimed.has_value(); });
  std::string text;
  if (judged != claim.points.end()) {
    const bool logarithmic = judged->logarithmic;
    const char* const what = logarithmic ? "ratio" : "difference";
    text += fmt::format(
        "The claim holds where the {} is {}. A point is reproduced if its 95 % interval lies "
        "wholly there.",
        what, range_text(*judged->claimed, logarithmic));
    if (judged->negligible) {
      text += fmt::format(
          " A {} {} is too small to matter. A point whose 95 % interval lies wholly there is "
          "equivalent, whatever its sign.",
          what, range_text(*judged->negligible, logarithmic));
    }
    text += "\n";
  }
  if (tests > 1) {
    text += fmt::format(
        "One refuted point refutes the claim, and there are {} points. So refuting uses the wider {} "
        "interval "
        "(Bonferroni): a true claim is then refuted by chance in at most 5 % of studies.\n",
        tests, level_text(1 - (1 - kLevel) / tests));
  } else {
    text += "A point is refuted if its 95 % interval lies wholly on the other side.\n";
  }
  return text;
}

/// Why a point has its verdict.
std::string reason(const ClaimPoint& point) {
  const std::string level = level_text(point.level);
  switch (point.verdict) {
    case Verdict::excluded:  // never of a point
    case Verdict::outside:
      return "the paper's statement does not cover this point, so it has no part in the verdict";
    case Verdict::uninformative:
      return "it cannot tell the sides apart, so it has no part in the verdict";
    case Verdict::reproduced:
      return point.signs ? "the sign test supports the claim at the 5 % level"
                         : fmt::format("the {} interval lies wholly where the claim holds", level);
    case Verdict::equivalent:
      return fmt::format("the {} interval lies wholly where effects are too small to matter{}", level,
                         point.claimed && point.difference && point.difference->mean > point.claimed->low &&
                                 point.difference->mean < point.claimed->high
                             ? "; the sign is as claimed"
                             : "");
    case Verdict::refuted:
      return point.signs ? "the sign test opposes the claim"
                         : fmt::format("the {} interval lies wholly where the claim fails", level);
    case Verdict::inconclusive:
      break;
  }
  if (!point.p_values) return "the pairs cannot decide it";
  if (point.signs) return "the sign test decides neither way";
  return fmt::format("the {} interval reaches both where the claim holds and where it fails", level);
}

std::string point_explanation(const ClaimPoint& point) {
  const std::string place = place_text(point), difference = difference_text(point);
  std::string text = fmt::format("- {}{}.", place.empty() ? "" : place + ": ", to_string(point.verdict));
  text += fmt::format(" Left {}, right {}, {}.", left_text(point), right_text(point),
                      counted(point.pairs, "pair"));
  if (!difference.empty())
    text += fmt::format(" {}{}.", difference[0] == 'r' ? "R" : "D", difference.substr(1));
  text += " Why: " + reason(point) + ".";
  if (point.p_values)
    text += fmt::format(" p = {:.2g} for the claim, {:.2g} against it.", point.p_values->supporting,
                        point.p_values->opposing);
  if (point.seeds_to_decide)
    text += fmt::format(" About {} seeds would decide it, at the present mean and spread.",
                        *point.seeds_to_decide);
  if (!point.note.empty()) text += " Note: " + point.note + ".";
  return text + "\n";
}

/// How the points combine.
std::string combination(const ClaimResult& claim) {
  std::map<Verdict, int> counts;
  for (const ClaimPoint& point : claim.points) ++counts[point.verdict];
  const int judged = static_cast<int>(std::count_if(claim.points.begin(), claim.points.end(), is_judged));
  std::string text;
  switch (claim.verdict) {
    case Verdict::refuted:
      text =
          fmt::format("Refuted, because {} refuted and one suffices.",
                      counts[Verdict::refuted] == 1 ? "one point is"
                                                    : fmt::format("{} points are", counts[Verdict::refuted]));
      break;
    case Verdict::reproduced:
    case Verdict::equivalent:
      text = fmt::format(
          "{}, because {} {}.", claim.verdict == Verdict::reproduced ? "Reproduced" : "Equivalent",
          judged == 1 ? "the only judged point is" : fmt::format("all {} judged points are", judged),
          to_string(claim.verdict));
      break;
    case Verdict::excluded:
      text = "Excluded, because the paper's own numbers rule out this reading.";
      break;
    default:
      text = judged == 0
                 ? "Inconclusive, because no point can speak."
                 : "Inconclusive, because no point is refuted and the points do not all agree. A claim "
                   "needs every judged point reproduced, or every one equivalent.";
  }
  const bool has_steps = std::any_of(claim.points.begin(), claim.points.end(),
                                     [](const ClaimPoint& point) { return point.is_step; });
  if (has_steps)
    text += " The last value against the first decides; a step between neighbours can only refute.";
  if (claim.p_value) text += fmt::format(" The p value of the verdict is {:.2g}.", *claim.p_value);
  if (claim.seeds_to_decide)
    text += fmt::format(" About {} seeds would decide the claim.", *claim.seeds_to_decide);
  return text + "\n";
}

}  // namespace

std::string explanation(const ClaimResult& claim) {
  std::string text = fmt::format("{}: {}\n\n", claim.id, to_string(claim.verdict));
  text += fmt::format("What is claimed ({}{}): {}\n", claim.origin == Origin::paper ? "the paper" : "ours",
                      claim.source.empty() ? "" : ", " + claim.source, claim.text);
  if (claim.statement != claim.text) text += fmt::format("What was tested: {}\n", claim.statement);
  if (!claim.regime.empty()) text += fmt::format("Where the paper claims it: {}\n", claim.regime);
  if (claim.reading == Reading::other)
    text += "This is another reading of the paper's sentence. The main reading decides its family.\n";
  if (claim.reading == Reading::excluded)
    text += "The paper's own numbers exclude this reading, so nothing here speaks against the paper.\n";
  if (!claim.quote.empty()) text += fmt::format("The paper's words: “{}”\n", claim.quote);
  if (claim.points.empty()) return text + "\nThere is no point to judge.\n";
  const auto tests =
      static_cast<int>(std::count_if(claim.points.begin(), claim.points.end(), [](const ClaimPoint& point) {
        return point.verdict != Verdict::outside;
      }));
  text += "\n" + pairs_text(claim) + rule_text(claim, tests) + "\n";
  for (const ClaimPoint& point : claim.points) text += point_explanation(point);
  text += "\n" + combination(claim);
  return text + "docs/calibration.md says how often these intervals and verdicts are right.\n";
}

}  // namespace moelab
