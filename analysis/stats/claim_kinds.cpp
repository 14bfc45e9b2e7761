/// The operators of claims and their fields in a scenario.

#include <fmt/format.h>

#include "analysis/stats/claims.h"

// To add an operator, write a new file that defines <name>_operator() and add a line here.
// clang-format off
#define MOELAB_OPERATORS(entry) \
  entry(below_operator)         \
  entry(above_operator)         \
  entry(near_operator)          \
  entry(decreases_operator)     \
  entry(increases_operator)     \
  entry(rate_operator)          \
  entry(slower_operator)
// clang-format on

namespace moelab {
namespace {

constexpr const char* kMetricHelp =
    "a metric, or an expression of metrics and swept paths, operators + - * / between spaces: "
    "\"effective_experts / model.experts\"";

void bind_relative_to(Fields& fields, std::string& arm) {
  fields.optional().add("relative_to", arm, "an arm: the metric is divided by the metric of this arm");
}

void bind_arms(Fields& fields, std::vector<std::string>& arms) {
  fields.optional().add_list("arms", arms, 1,
                             "names or patterns (\"aux_*\"): a claim for each matching arm; {arm} stands for "
                             "its name (an id without {arm} becomes id_NAME)");
}

void bind_arm(Fields& fields, std::string& arm, std::vector<std::string>& arms) {
  fields.optional().add("arm", arm, "name of an arm (give arm or arms)");
  bind_arms(fields, arms);
}

void bind_smallest_effect(Fields& fields, Claim& claim) {
  fields.add("smallest_effect", claim.smallest_effect, positive(),
             "effects below it do not matter: relative on log scales (0.05: ±ln 1.05), else in the metric's "
             "units; an interval within is equivalent");
}

/// Binds a number or a text, which is stored as text.
void bind_number_or_text(Fields& fields, const char* name, std::string& text, const char* help) {
  std::optional<std::variant<double, std::string>> written;
  if (!text.empty()) written = text;
  fields.add(name, written, help);
  if (!written) return;
  const double* const number = std::get_if<double>(&*written);
  text = number ? fmt::to_string(*number) : std::get<std::string>(*written);
}

void bind_statement(Fields& fields, Comparison& comparison, Claim& claim) {
  fields.required().add("left", comparison.left, "left side");
  fields.required().add("right", comparison.right, "right side");
  bind_arms(fields, claim.arms);
  fields.add("at", comparison.at,
             "sweep points: each, the last, or a list of {path: value} (of values where one path is swept)");
  fields.add("matched", comparison.matched, {"steps", "loss", "flops"},
             "where sides are read: at their ends; at equal training loss; or at equal operations (the last "
             "record within the fewer; needs group training)");
  if (comparison.rule.has_tolerance)
    fields.required().add("tolerance", comparison.tolerance, positive(), "relative tolerance");
  else
    bind_smallest_effect(fields, claim);
}

void bind_statement(Fields& fields, Trend& trend, Claim& claim) {
  bind_arm(fields, trend.side.arm, claim.arms);
  fields.required().add("metric", trend.side.metric, kMetricHelp);
  bind_relative_to(fields, trend.side.relative_to);
  fields.required().add("along", trend.along, "a swept path, or step");
  fields.add("shape", trend.shape, {"ends", "monotone"},
             "ends: the last value against the first; monotone: also no step from one value to the next goes "
             "significantly the other way");
  bind_smallest_effect(fields, claim);
}

void bind_statement(Fields& fields, RateClaim& rate, Claim& claim) {
  RateQuery& query = rate.query;
  bind_arm(fields, query.arm, claim.arms);
  fields.required().add("metric", query.metric, "name of a metric: the error");
  fields.required().add("along", query.along, "the swept path whose values are n");
  fields.optional().add("where", query.where, "values of the other swept paths: {path: value}");
  fields.optional().add("window", rate.window, positive(), 2,
                        "[least n, most n] of the regression (default: all)");
  bind_average(fields, query.average);
  if (rate.slower) {
    fields.required().add("than", rate.against, "a slope, or the arm whose slope it is");
    bind_smallest_effect(fields, claim);
  } else {
    double exponent = std::get<double>(rate.against);
    fields.required().add("exponent", exponent, any_number(), "the slope, −1/2 for n^(−1/2)");
    rate.against = exponent;
    fields.add("tolerance", rate.tolerance, positive(), "around it");
  }
}

template <class Statement>
ClaimKind claim_kind(const std::string& op, const std::string& help,
                     const std::function<void(Statement&)>& choose) {
  Statement statement;
  choose(statement);
  Claim claim;
  claim.statement = std::move(statement);
  return {{op, help, claim, claim}};
}

ClaimKind trend(const char* op, const char* help, bool increases) {
  return claim_kind<Trend>(op, help, [&](Trend& own) { own.increases = increases; });
}

ClaimKind rate_claim(const char* op, const char* help, bool slower) {
  return claim_kind<RateClaim>(op, help, [&](RateClaim& own) { own.slower = slower; });
}

}  // namespace

ClaimKind comparison_operator(const ComparisonRule& rule) {
  return claim_kind<Comparison>(rule.op, rule.help, [&](Comparison& own) { own.rule = rule; });
}

ClaimKind below_operator() {
  return comparison_operator({"<", "left is below right, over paired seeds", [](double) { return kBelow; }});
}
ClaimKind above_operator() {
  return comparison_operator({">", "left is above right, over paired seeds", [](double) { return kAbove; }});
}
ClaimKind near_operator() {
  return comparison_operator({"~", "left equals right within a relative tolerance",
                              [](double tolerance) {
                                return Interval{-tolerance, tolerance};
                              },
                              true});
}
ClaimKind decreases_operator() {
  return trend("decreases", "the metric falls along a swept path", false);
}
ClaimKind increases_operator() {
  return trend("increases", "the metric rises along a swept path", true);
}
ClaimKind rate_operator() {
  return rate_claim("rate", "the slope of ln metric on ln n is an exponent", false);
}
ClaimKind slower_operator() {
  return rate_claim("slower", "the slope of ln metric on ln n is above another", true);
}

MOELAB_TABLE(ClaimAxis, MOELAB_OPERATORS)

std::vector<Binding> ClaimStep::alternatives() {
  const bool is_recorded = at == At::recorded;
  return {alternative(
              is_recorded ? std::optional(step) : std::nullopt,
              [](Fields& fields, auto& own) { fields.add("", own, between(0, count().maximum), ""); },
              [this](std::int64_t own) {
                at = At::recorded;
                step = own;
              }),
          alternative(
              is_recorded ? std::nullopt : std::optional(at),
              [](Fields& fields, auto& own) {
                fields.add("", own, {"start", "end"}, "");
              },
              [this](At own) { at = own; })};
}

std::vector<Binding> ClaimPlaces::alternatives() {
  const bool is_listed = which == Which::listed;
  return {alternative(
              is_listed ? std::nullopt : std::optional(which),
              [](Fields& fields, auto& own) {
                fields.add("", own, {"each", "last"}, "");
              },
              [this](Which own) { which = own; }),
          alternative(
              is_listed ? std::optional(written) : std::nullopt,
              [](Fields& fields, auto& own) { fields.add_list("", own, 1, ""); },
              [this](const std::vector<AnyValue>& own) {
                which = Which::listed;
                written = own;
              })};
}

std::vector<Binding> ClaimRegime::alternatives() {
  const bool is_listed = condition.empty();
  return {alternative(
              is_listed ? std::nullopt : std::optional(condition),
              [](Fields& fields, auto& own) { fields.add("", own, ""); },
              [this](const std::string& own) { condition = own; }),
          alternative(
              is_listed ? std::optional(written) : std::nullopt,
              [](Fields& fields, auto& own) { fields.add_list("", own, 1, ""); },
              [this](const std::vector<AnyValue>& own) { written = own; })};
}

void ClaimSide::bind(Fields& fields) {
  fields.optional().add("arm", arm, "name of an arm (give arm and metric, or value)");
  fields.optional().add("metric", metric, kMetricHelp);
  bind_relative_to(fields, relative_to);
  bind_number_or_text(fields, "value", value,
                      "a number instead of an arm's metric, or an expression: \"model.experts / 4\"; metrics "
                      "in it come from the other side's arm");
  fields.add("factor", factor, positive(), "multiplies the side");
  fields.optional().add("where", where, "sweep coordinates of this side: {path: value}");
  fields.add("step", step, "a recorded step (default: the last)");
  fields.optional().add(
      "distance_from", distance_from,
      "an arm: the side is the root mean square difference of the metric's curves over training");
}

void Claim::bind(Fields& fields) {
  fields.required().add("id", id, "name of the claim: letters, digits, . _ -");
  std::visit([&](auto& own) { bind_statement(fields, own, *this); }, statement);
  fields.optional().add("source", source, "where the paper says so");
  std::optional<AnyValue> number;
  if (!reported.empty()) number = AnyValue(reported, reported, std::nullopt);
  fields.add("reported", number, "the paper's number, shown next to ours; never a pass mark");
  if (number) reported = number->text();
  fields.add("tuned", is_tuned, "each arm is at its best: it sets every path of \"tune\"");
  fields.add("origin", origin, {"paper", "ours"}, "whose claim it is");
  fields.add("reading", reading, {"main", "other", "excluded"},
             "main: families count it; other: a further reading of the sentence, shown next to it; excluded: "
             "the paper's own numbers rule it out");
  fields.add("regime", regime,
             "sweep points that the claim covers: a list as in at, or a condition such as "
             "\"data.train_samples >= 1000 and model.experts > 4\" (default: all)");
  fields.optional().add(
      "quote", quote,
      "the paper's sentence that the regime or another reading rests on; a paper's claim with "
      "one of them needs it");
  // A rate has one side, or compares slopes, which a point without an error leaves undecided.
  if (!std::holds_alternative<RateClaim>(statement)) {
    fields.add("diverged", diverged, {"leaves", "loses"},
               "a diverged cell leaves its point undecided, or loses against the other side");
  }
  fields.add("text", text, "the claim as a sentence; where it is the paper's, in its words");
}

}  // namespace moelab
