#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/stats/claims.h"
#include "app/run/results.h"

namespace moelab {

/// Judges the plan's claims. Metrics that the table of metric groups declares positive are compared by their
/// logarithms.
std::vector<ClaimResult> claim_results(const RunResults& results);

/// The same, written as claims.json into `directory`. Throws EnvironmentError when the file cannot be
/// written.
std::vector<ClaimResult> judge_claims(const RunResults& results, const std::filesystem::path& directory);

/// Where a point lies, "data.train_samples = 640", or "data.train_samples = 640 against 80" where its sides
/// lie at different ones; empty without a sweep.
std::string place_text(const ClaimPoint& point);
/// A side with its factor: "0.41 ± 0.03", "0.5 × 0.41 ± 0.03"; "-" without an estimate.
std::string side_text(const std::optional<MeanEstimate>& side, double factor);
/// "ratio 0.41 [0.35, 0.48]" or "difference -0.2 [-0.3, -0.1]"; empty without one.
std::string difference_text(const ClaimPoint& point);

/// What the paper reports: a text as it is, an object as "learned 8.8, shuffled 11.5"; empty for null.
std::string reported_text(const Json& reported);

/// The claims for people: verdict and sentence, then at each point both sides (mean ± half of the 95 %
/// interval), the difference or ratio with its interval, and the number that the paper reports.
std::string claims_text(const std::vector<ClaimResult>& claims);

/// `moelab claims DIR`: judges and prints, as text or as a JSON list. Returns 1 when a claim is refuted, else
/// 0.
int run_claims_command(const std::filesystem::path& directory, bool json);

}  // namespace moelab
