#pragma once

/// Exact assignment of rows to experts that take several of them each.

#include <algorithm>
#include <limits>
#include <vector>

#include "sim/base/aligned.h"

namespace moelab {

/// Assigns rows one after another along cheapest augmenting paths (the Hungarian method, for columns that
/// take several rows). Prices of the experts keep reduced costs from being negative, so each path is a
/// shortest one with edges that are none: row to expert, and from a full expert by one of its rows to
/// another.
class Assignment {
 public:
  /// Of n rows to experts with room for `most` each, least Σ cost(row, expert). Ties: the lower expert.
  template <class Cost>
  void solve(int rows, int experts, int most, const Cost& cost) {
    experts_ = experts;
    prices_.assign(size(experts), 0.0);
    members_.resize(std::max(members_.size(), size(experts)));
    for (std::vector<int>& members : members_) members.clear();
    expert_of_.assign(size(rows), -1);
    for (int row = 0; row < rows; ++row) place(row, most, cost);
  }
  /// −1 for a row whose costs are no numbers.
  int expert_of(int row) const { return expert_of_[size(row)]; }

 private:
  template <class Cost>
  void place(int row, int most, const Cost& cost) {
    constexpr double kUnreached = std::numeric_limits<double>::infinity();
    distances_.assign(size(experts_), kUnreached);
    from_row_.assign(size(experts_), row);
    is_done_.assign(size(experts_), 0);
    for (int e = 0; e < experts_; ++e) distances_[size(e)] = cost(row, e) - prices_[size(e)];
    int end = -1;
    while (true) {
      end = -1;
      for (int e = 0; e < experts_; ++e) {
        if (is_done_[size(e)] || !(distances_[size(e)] < kUnreached)) continue;
        if (end < 0 || distances_[size(e)] < distances_[size(end)]) end = e;
      }
      if (end < 0) return;
      if (static_cast<int>(members_[size(end)].size()) < most) break;
      is_done_[size(end)] = 1;
      for (const int member : members_[size(end)]) {
        const double own = cost(member, end) - prices_[size(end)];
        for (int e = 0; e < experts_; ++e) {
          const double by = distances_[size(end)] + (cost(member, e) - prices_[size(e)]) - own;
          if (is_done_[size(e)] || !(by < distances_[size(e)])) continue;
          distances_[size(e)] = by;
          from_row_[size(e)] = member;
        }
      }
    }
    const double length = distances_[size(end)];
    for (int e = 0; e < experts_; ++e) {
      if (is_done_[size(e)]) prices_[size(e)] += distances_[size(e)] - length;
    }
    for (int mover = -1; mover != row;) {
      mover = from_row_[size(end)];
      const int before = expert_of_[size(mover)];
      members_[size(end)].push_back(mover);
      expert_of_[size(mover)] = end;
      if (before >= 0) std::erase(members_[size(before)], mover);
      end = before;
    }
  }

  int experts_ = 0;
  std::vector<double> prices_, distances_;
  std::vector<std::vector<int>> members_;  ///< rows of each expert
  std::vector<int> expert_of_, from_row_;  ///< of each row; the row by which the path reaches an expert
  std::vector<char> is_done_;
};

}  // namespace moelab
