#include "analysis/metrics/co_activation.h"

#include <algorithm>
#include <cstdint>

namespace moelab {

void CoActivation::add(std::span<const int> experts) {
  of_rows_.insert(of_rows_.end(), experts.begin(), experts.end());
  row_ends_.push_back(of_rows_.size());
}

std::optional<double> CoActivation::value() const {
  std::vector<std::vector<std::size_t>> rows(static_cast<std::size_t>(experts_));  // of each expert
  for (std::size_t row = 0, at = 0; row < row_ends_.size(); ++row) {
    for (; at < row_ends_[row]; ++at) rows[static_cast<std::size_t>(of_rows_[at])].push_back(row);
  }
  double sum = 0;
  int used = 0;
  std::vector<std::int64_t> shared(rows.size(), 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty()) continue;
    std::int64_t most = 0;
    std::vector<std::size_t> partners;
    for (const std::size_t row : rows[i]) {
      for (std::size_t at = row > 0 ? row_ends_[row - 1] : 0; at < row_ends_[row]; ++at) {
        const std::size_t j = static_cast<std::size_t>(of_rows_[at]);
        if (j == i) continue;
        if (++shared[j] == 1) partners.push_back(j);
        most = std::max(most, shared[j]);
      }
    }
    for (const std::size_t j : partners) shared[j] = 0;
    sum += static_cast<double>(most) / static_cast<double>(rows[i].size());
    ++used;
  }
  if (used == 0 || experts_ < 2) return std::nullopt;
  return sum / used;
}

}  // namespace moelab
