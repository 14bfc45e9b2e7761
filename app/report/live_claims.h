#pragma once

/// What a run's claims look like while its cells are recorded.

#include <chrono>
#include <filesystem>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/run/results.h"
#include "app/run/session.h"

namespace moelab {

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

}  // namespace moelab
