#include "analysis/metrics/fluctuation.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/base/error.h"

namespace moelab {
namespace {

void check_snapshots(std::span<const int> previous, std::span<const int> current, int k) {
  if (previous.size() != current.size() || previous.empty() ||
      previous.size() % static_cast<std::size_t>(k) != 0) {
    throw UserError(
        "assignment",
        fmt::format("{} and {} assignments of {} to a row; needs as many of both, at least one row",
                    previous.size(), current.size(), k));
  }
}

double squared(std::int64_t count) {
  return static_cast<double>(count) * static_cast<double>(count);
}

}  // namespace

double routing_fluctuation(std::span<const int> previous, std::span<const int> current, int k) {
  check_snapshots(previous, current, k);
  const std::size_t size = static_cast<std::size_t>(k);
  std::vector<int> before(size), after(size);
  std::size_t changed = 0;
  for (std::size_t at = 0; at < current.size(); at += size) {
    std::copy_n(previous.begin() + static_cast<std::ptrdiff_t>(at), size, before.begin());
    std::copy_n(current.begin() + static_cast<std::ptrdiff_t>(at), size, after.begin());
    std::sort(before.begin(), before.end());
    std::sort(after.begin(), after.end());
    if (before != after) ++changed;
  }
  return static_cast<double>(changed) / static_cast<double>(current.size() / size);
}

double router_instability(std::span<const int> previous, std::span<const int> current) {
  check_snapshots(previous, current, 1);
  std::map<int, std::int64_t> before, after;
  std::map<std::pair<int, int>, std::int64_t> both;
  for (std::size_t i = 0; i < current.size(); ++i) {
    ++before[previous[i]];
    ++after[current[i]];
    ++both[{previous[i], current[i]}];
  }
  // Pairs together before or after, less twice those together in both.
  double pairs = 0;
  for (const auto& [expert, rows] : before) pairs += squared(rows);
  for (const auto& [expert, rows] : after) pairs += squared(rows);
  for (const auto& [experts, rows] : both) pairs -= 2 * squared(rows);
  return pairs / squared(static_cast<std::int64_t>(current.size()));
}

}  // namespace moelab
