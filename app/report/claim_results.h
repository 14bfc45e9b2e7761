#pragma once

/// Evaluates the claims of a run, and formats the results for programs and users.

#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/stats/claims.h"
#include "app/run/results.h"
#include "app/run/session.h"
#include "app/scenario/scenario.h"

namespace moelab {

/// Evaluates the claims of the plan and of imported arms (claims_of). Metrics that the table of metric groups
/// declares positive are compared by their logarithms.
std::vector<ClaimResult> claim_results(const RunResults& results);

/// Evaluates the claims and writes them to claims.json among the plan's outputs. If this folder is read-only,
/// it prints a note on stderr and writes nothing. Throws EnvironmentError if the file cannot be written.
std::vector<ClaimResult> judge_claims(const RunResults& results, const std::filesystem::path& directory);

/// Returns a claim's result as JSON:
///
///   {id, verdict, origin, reading, regime, source, reported, text, statement, shape, p, seeds_to_decide,
///    points: [{at, left, left_interval, right, right_interval, estimate, interval, level,
///              scale: "log ratio" | "difference", pairs, test: "paired t" | "sign", p, verdict,
///              seeds_to_decide, note}]}
///
/// `interval` is the one that the point's verdict used, and `level` is its level. A claim also has `matched`,
/// unless it is steps; `tuned`, if it is set; and `quote`, if it has one. A point has `lost` if diverged
/// cells lost pairs.
///
/// Additional fields of a point:
/// - `at` has the coordinates on which the sides agree. If they differ, `left_at` and `right_at` are added.
/// - A monotone trend along the steps has `left_step` and `right_step`.
/// - With censored values, `left` and `right` are medians, and null if the median is censored. The field
///   `signs` has {below, above, ties, undecided}.
/// - If seeds were added until the claims were decided, `test` is "t mixture" or "sign sequence", and
///   `median_interval` is added. Open ends of intervals are null.
/// - `p` is the smaller of the two p values for and against the claim at this point.
Json to_json(const ClaimResult& result);

/// Returns a point's location, "data.train_samples = 640". If its sides have different locations, returns
/// "data.train_samples = 640 against 80". Empty without a sweep.
std::string place_text(const ClaimPoint& point);
/// Formats a side with its factor: "0.41 ± 0.03" or "0.5 × 0.41 ± 0.03". Returns "-" without an estimate.
std::string side_text(const std::optional<MeanEstimate>& side, double factor);
/// Formats a median with its factor: "median 400" or "median above 4000 (6 of 10 censored)".
std::string median_text(const Median& side, double factor);
/// Format the sides of a point: as means, or as medians if values are censored.
std::string left_text(const ClaimPoint& point);
std::string right_text(const ClaimPoint& point);
/// Returns the statement that was tested, if it is not the claim's text, and how a trend was tested: "a loss
/// decreases along n (monotone: …)". Empty if there is nothing to add.
std::string statement_text(const ClaimResult& claim);
/// Returns "ratio 0.41 [0.35, 0.48]" or "difference -0.2 [-0.3, -0.1]". Empty without an estimate.
std::string difference_text(const ClaimPoint& point);

/// Returns the number that the paper reports, as written in the scenario. Null if the scenario has none.
Json reported_json(const ClaimResult& claim);
/// Formats a reported number for users. A text stays as it is. An object becomes "learned 8.8, shuffled
/// 11.5". Null becomes an empty string.
std::string reported_text(const Json& reported);

/// Formats the claims for users: the verdict and the sentence, then for each point
/// - both sides (mean ± half of the 95 % interval);
/// - their difference or ratio with its interval;
/// - the number that the paper reports.
std::string claims_text(const std::vector<ClaimResult>& claims);

/// Explains in plain sentences how the verdict on a claim came about: what was compared, on which pairs and
/// scale, the interval and the rule at each point, and how the points combine. Readers need to know the
/// t-test, and nothing of moelab.
std::string explanation(const ClaimResult& claim);

/// Returns "3 reproduced, 2 refuted, 4 inconclusive (1 would be decided by 8 more seeds)", the last line of
/// claims_text().
std::string claims_count_text(const std::vector<ClaimResult>& claims);

/// Returns the plan's claims, followed by the claims of each imported arm.
///
/// A claim of an imported arm is a copy of a plan's claim whose metrics the arm has. The arm replaces the
/// left side's arm, or the right side's arm if the left side is a constant. Its id is "<claim>@<arm>", its
/// origin is ours, and its source names the original claim. Claims along the steps of training are left out,
/// because an imported arm has no numbers before the end.
std::vector<Claim> claims_of(const RunResults& results);

// Live claims: a run's claims while its cells are recorded

/// Shows the current mean of the main metric for each arm, and the current verdict of each open claim. An
/// open claim is shown at its open point with the most pairs.
class LiveClaims : public SessionView {
 public:
  void begin(const Scenario& scenario, const std::filesystem::path& directory) override;
  void record(const Cell& cell, const CellResult& result) override;
  /// Updates the text after new cells were recorded, but rarely enough to use only a small share of the time.
  std::string text() override;

 private:
  using Clock = std::chrono::steady_clock;

  RunResults results_;
  std::unordered_map<std::string, std::vector<std::size_t>> rows_;  ///< indices by cell; arms may share cells
  std::mutex mutex_;                                                ///< guards fresh_
  std::vector<std::pair<std::string, CellResult>> fresh_;           ///< results since the last text
  std::string text_;
  Clock::time_point next_ = {};
};

// Adaptive seeds: the seeds that the open claims of a run still need

/// Returns the number of pairs at the next look at an open claim: n + ⌈n ÷ 4⌉ for n pairs, and at least the
/// number that a verdict by sequences needs.
int next_look(int pairs);

/// Returns the number of seeds of each arm at each point, in the order of the scenario's cells. The number
/// brings every open point of a claim to its next look, and it is at most `most`. Arms and points that no
/// open claim reads keep their number in `seeds`.
///
/// A claim is open if it is inconclusive and more pairs could decide it. Claims on rates are not open,
/// because they have no sequence. Points with a diverged or failed cell are not open. `claims` are the
/// results of the scenario's claims, in their order.
std::vector<int> wanted_seeds(const Scenario& scenario, const std::vector<ClaimResult>& claims,
                              const std::vector<int>& seeds, int most);

/// Returns the seeds that the looks need at most: every claim stays open until its arms and points have
/// `most` seeds.
std::vector<int> most_wanted_seeds(const Scenario& scenario, const std::vector<int>& seeds, int most);

}  // namespace moelab
