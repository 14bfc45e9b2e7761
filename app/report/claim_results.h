#pragma once

/// A run's claims judged, and told to programs and people.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/claims.h"
#include "app/run/results.h"

namespace moelab {

/// Judges the plan's claims. Metrics that the table of metric groups declares positive are compared by their
/// logarithms.
std::vector<ClaimResult> claim_results(const RunResults& results);

/// The same, written as claims.json among the plan's outputs; into a folder that is read-only it is not, with
/// a note on stderr. Throws EnvironmentError when the file cannot be written.
std::vector<ClaimResult> judge_claims(const RunResults& results, const std::filesystem::path& directory);

/// {id, verdict, source, reported, text, points: [{at, left, left_interval, right, right_interval, estimate,
/// interval, scale: "log ratio" | "difference", pairs, verdict, note}]}. `at` holds the coordinates on which
/// the sides agree; where they do not, `left_at` and `right_at` stand beside it.
Json to_json(const ClaimResult& result);

/// Where a point lies, "data.train_samples = 640", or "data.train_samples = 640 against 80" where its sides
/// lie at different ones; empty without a sweep.
std::string place_text(const ClaimPoint& point);
/// A side with its factor: "0.41 ± 0.03", "0.5 × 0.41 ± 0.03"; "-" without an estimate.
std::string side_text(const std::optional<MeanEstimate>& side, double factor);
/// "ratio 0.41 [0.35, 0.48]" or "difference -0.2 [-0.3, -0.1]"; empty without one.
std::string difference_text(const ClaimPoint& point);

/// What the paper reports, as the scenario writes it; null where it writes nothing.
Json reported_json(const ClaimResult& claim);
/// The same for people: a text as it is, an object as "learned 8.8, shuffled 11.5"; empty for null.
std::string reported_text(const Json& reported);

/// The claims for people: verdict and sentence, then at each point both sides (mean ± half of the 95 %
/// interval), the difference or ratio with its interval, and the number that the paper reports.
std::string claims_text(const std::vector<ClaimResult>& claims);

}  // namespace moelab
