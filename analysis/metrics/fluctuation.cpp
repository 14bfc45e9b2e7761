#include "analysis/metrics/fluctuation.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "analysis/metrics/agreement.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

void check_snapshots(std::span<const int> previous, std::span<const int> current, int k) {
  if (previous.size() != current.size() || previous.empty() ||
      previous.size() % static_cast<std::size_t>(k) != 0) {
    throw InvalidOption(
        "assignment",
        fmt::format("{} and {} assignments of {} to a row; needs as many of both, at least one row",
                    previous.size(), current.size(), k));
  }
}

double squared(std::int64_t count) {
  return static_cast<double>(count) * static_cast<double>(count);
}

/// Rows served in both snapshots: by expert before and now, and with each pair of experts.
struct JointCounts {
  std::int64_t rows = 0;
  std::map<int, std::int64_t> before, after;
  std::map<std::pair<int, int>, std::int64_t> both;

  JointCounts(std::span<const int> previous, std::span<const int> current) {
    for (std::size_t i = 0; i < current.size(); ++i) {
      if (previous[i] < 0 || current[i] < 0) continue;
      ++rows;
      ++before[previous[i]];
      ++after[current[i]];
      ++both[{previous[i], current[i]}];
    }
  }
};

}  // namespace

std::optional<double> routing_fluctuation(std::span<const int> previous, std::span<const int> current,
                                          int k) {
  check_snapshots(previous, current, k);
  const std::size_t size = static_cast<std::size_t>(k);
  std::vector<int> before(size), after(size);
  std::size_t changed = 0, rows = 0;
  for (std::size_t at = 0; at < current.size(); at += size) {
    std::copy_n(previous.begin() + static_cast<std::ptrdiff_t>(at), size, before.begin());
    std::copy_n(current.begin() + static_cast<std::ptrdiff_t>(at), size, after.begin());
    std::sort(before.begin(), before.end());
    std::sort(after.begin(), after.end());
    if (before.back() < 0 || after.back() < 0) continue;
    ++rows;
    if (before != after) ++changed;
  }
  if (rows == 0) return std::nullopt;
  return static_cast<double>(changed) / static_cast<double>(rows);
}

double routing_saturation(std::span<const int> now, std::span<const int> final, int k) {
  check_snapshots(now, final, k);
  const std::ptrdiff_t size = k;
  std::size_t kept = 0;
  for (auto own = now.begin(), last = final.begin(); own != now.end(); own += size, last += size) {
    kept += static_cast<std::size_t>(std::count_if(
        own, own + size, [&](int expert) { return std::find(last, last + size, expert) != last + size; }));
  }
  return static_cast<double>(kept) / static_cast<double>(now.size());
}

std::optional<double> router_instability(std::span<const int> previous, std::span<const int> current) {
  check_snapshots(previous, current, 1);
  const JointCounts counts(previous, current);
  if (counts.rows == 0) return std::nullopt;
  // Pairs together before or after, less twice those together in both.
  double pairs = 0;
  for (const auto& [expert, rows] : counts.before) pairs += squared(rows);
  for (const auto& [expert, rows] : counts.after) pairs += squared(rows);
  for (const auto& [experts, rows] : counts.both) pairs -= 2 * squared(rows);
  return pairs / squared(counts.rows);
}

std::optional<double> assignment_change_share(std::span<const int> previous, std::span<const int> current) {
  check_snapshots(previous, current, 1);
  const JointCounts counts(previous, current);
  if (counts.rows == 0) return std::nullopt;
  std::map<int, std::int64_t> majority;
  for (const auto& [experts, rows] : counts.both) {
    majority[experts.first] = std::max(majority[experts.first], rows);
  }
  double stay = 0;
  for (const auto& [expert, rows] : majority) stay += static_cast<double>(rows);
  return 1 - stay / static_cast<double>(counts.rows);
}

std::optional<double> layer_ari(std::span<const int> previous, std::span<const int> current) {
  check_snapshots(previous, current, 1);
  const ContingencyTable both = routing_table(previous, current);
  if (both.rows() == 1 || both.cols() == 1) return 0;
  return adjusted_rand_index(both);
}

}  // namespace moelab
