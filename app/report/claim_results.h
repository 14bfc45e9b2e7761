#pragma once

/// A run's claims judged, and told to programs and people.

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

/// Judges the plan's claims, and those of imported arms (imported_claims.h). Metrics that the table of metric
/// groups declares positive are compared by their logarithms.
std::vector<ClaimResult> claim_results(const RunResults& results);

/// The same, written as claims.json among the plan's outputs; into a folder that is read-only it is not, with
/// a note on stderr. Throws EnvironmentError when the file cannot be written.
std::vector<ClaimResult> judge_claims(const RunResults& results, const std::filesystem::path& directory);

/// {id, verdict, origin, source, reported, text, statement, shape, p, seeds_to_decide, points: [{at, left,
/// left_interval, right, right_interval, estimate, interval, scale: "log ratio" | "difference", pairs, test:
/// "paired t" | "sign", p, verdict, seeds_to_decide, note}]}, with `matched` other than steps and `tuned`
/// where they are set. Of a run that was decided `test` is "t mixture" | "sign sequence", with
/// `median_interval` beside, and ends of intervals that are open are null. `at` holds the coordinates on
/// which the sides agree; where they do not, `left_at` and `right_at` stand beside it, so do `left_step` and
/// `right_step` of a monotone trend along the steps. A point with censored values has medians as `left` and
/// `right`, null where the median is censored, and {below, above, ties, undecided} as `signs`. p of a point:
/// the smaller of that for it and that against it.
Json to_json(const ClaimResult& result);

/// Where a point lies, "data.train_samples = 640", or "data.train_samples = 640 against 80" where its sides
/// lie at different ones; empty without a sweep.
std::string place_text(const ClaimPoint& point);
/// A side with its factor: "0.41 ± 0.03", "0.5 × 0.41 ± 0.03"; "-" without an estimate.
std::string side_text(const std::optional<MeanEstimate>& side, double factor);
/// "median 400", "median above 4000 (6 of 10 censored)", with the factor.
std::string median_text(const Median& side, double factor);
/// The sides of a point, as means or, where values are censored, as medians.
std::string left_text(const ClaimPoint& point);
std::string right_text(const ClaimPoint& point);
/// What was judged where the claim's text does not say it, and how a trend was: "a loss decreases along n
/// (monotone: …)"; empty where there is nothing to add.
std::string statement_text(const ClaimResult& claim);
/// "ratio 0.41 [0.35, 0.48]" or "difference -0.2 [-0.3, -0.1]"; empty without one.
std::string difference_text(const ClaimPoint& point);

/// What the paper reports, as the scenario writes it; null where it writes nothing.
Json reported_json(const ClaimResult& claim);
/// The same for people: a text as it is, an object as "learned 8.8, shuffled 11.5"; empty for null.
std::string reported_text(const Json& reported);

/// The claims for people: verdict and sentence, then at each point both sides (mean ± half of the 95 %
/// interval), the difference or ratio with its interval, and the number that the paper reports.
std::string claims_text(const std::vector<ClaimResult>& claims);

/// The plan's claims, then of each imported arm every one of them that it has the metrics of, with the arm in
/// the place of the left side's (of the only one that is an arm); id "<claim>@<arm>", ours, and in its source
/// the claim that it is taken from. Claims along the steps of training are left out: an imported arm has its
/// last numbers alone.
std::vector<Claim> claims_of(const RunResults& results);

// What a run's claims look like while its cells are recorded.

/// The mean of the main metric of each arm so far, and the verdict so far of every claim that is open, with
/// what is known at the point that decides least.
class LiveClaims : public SessionView {
 public:
  void begin(const Scenario& scenario, const std::filesystem::path& directory) override;
  void record(const Cell& cell, const CellResult& result) override;
  /// Made anew where cells were recorded since, and so rarely that it takes a small share of the time.
  std::string text() override;

 private:
  using Clock = std::chrono::steady_clock;

  RunResults results_;
  std::unordered_map<std::string, std::vector<std::size_t>> rows_;  ///< by cell: two arms may have the same
  std::mutex mutex_;                                                ///< guards fresh_
  std::vector<std::pair<std::string, CellResult>> fresh_;           ///< recorded since the last text
  std::string text_;
  Clock::time_point next_ = {};
};

// Which seeds the open claims of a run still need.

/// The next number of pairs at which an open claim is looked at: a quarter more, and at first those that a
/// verdict by sequences needs.
int next_look(int pairs);

/// The seeds of each arm at each point (in the order of the scenario's cells), at most `most`, that bring
/// every open point of a claim to its next look; `seeds` for arms and points that no open claim reads. A
/// claim is open that is inconclusive and more pairs could decide: not one on rates, which has no sequence,
/// and not at points with a cell that diverged or failed. `claims` are the results of the scenario's, in
/// their order.
std::vector<int> wanted_seeds(const Scenario& scenario, const std::vector<ClaimResult>& claims,
                              const std::vector<int>& seeds, int most);

/// The same were every claim open until its arms and points have `most`: what the looks come to at most.
std::vector<int> most_wanted_seeds(const Scenario& scenario, const std::vector<int>& seeds, int most);

}  // namespace moelab
