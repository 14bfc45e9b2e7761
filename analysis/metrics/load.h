#pragma once

/// How evenly rows are spread over experts. Uses `selected` or `serving`, whichever the assignment holds.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/arrays.h"

namespace moelab {

/// The expert of largest probability for each row of r(x) (n, E), the lowest index among equals; (n). It is
/// the serving expert where nothing biases the selection. Uses `probabilities`. Throws InvalidOption when
/// there are no experts.
std::vector<int> top1_assignment(const Eigen::Ref<const Matrix>& probabilities);

/// The k experts of largest probability for each row, the likeliest first and lower indices first among
/// equals; (n·k). Uses `probabilities`. Throws InvalidOption when k is not in 1 … E.
std::vector<int> topk_assignment(const Eigen::Ref<const Matrix>& probabilities, int k);

/// n_e: how many entries of `assignment` name expert e, (E); entries −1 name none. Throws InvalidOption for
/// an entry outside −1 … E − 1.
std::vector<std::int64_t> expert_loads(std::span<const int> assignment, int experts);

/// The share of rows that no expert serves, `serving` (n) with −1 for these. None without rows.
std::optional<double> unserved_share(std::span<const int> serving);

/// The share of experts that serve less than a tenth of an even share, n_e < n / (10 E), of `serving` (n)
/// with −1 for rows that none serves, which count in n. None without rows. Throws InvalidOption as above.
std::optional<double> dead_experts(std::span<const int> serving, int experts);

/// (max_e n_e − mean_e n_e) / mean_e n_e: 0 when balanced, E − 1 when one expert takes all. None without
/// rows.
std::optional<double> expert_load_max_violation(std::span<const std::int64_t> loads);

/// max_e |n_e − mean_e n_e| / mean_e n_e: an idle expert counts as one with twice an even share does (MaxVio
/// in the released code of Guo et al. 2025). None without rows.
std::optional<double> expert_load_max_deviation(std::span<const std::int64_t> loads);

/// The standard deviation over experts (ddof 0) of the percentage of assignments, 100·n_e/Σn (Nielsen et al.
/// 2025). None without rows.
std::optional<double> expert_load_std_percent(std::span<const std::int64_t> loads);

}  // namespace moelab
