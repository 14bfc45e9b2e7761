#include "app/report/open_claims.h"

#include <algorithm>
#include <map>
#include <string>

#include "analysis/stats/row_index.h"
#include "analysis/stats/sequences.h"
#include "app/scenario/claim_reader.h"
#include "app/scenario/sweep_values.h"

namespace moelab {
namespace {

/// Places of arms and points in the order of the cells.
class Places {
 public:
  explicit Places(const Scenario& scenario) {
    for (const Cell& cell : scenario.cells) {
      if (cell.seed == 0)
        places_.emplace(std::pair(cell.arm, point_key(read_point(cell.point))), places_.size());
    }
  }

  /// Those of a side's arms at a point; none for a number.
  std::vector<std::size_t> of(const ClaimSide& side, const SweepPoint& point) const {
    std::vector<std::size_t> found;
    if (side.is_constant()) return found;
    for (const std::string& arm : {side.arm, side.relative_to, side.distance_from}) {
      const auto place = places_.find(std::pair(arm, point_key(point)));
      if (place != places_.end()) found.push_back(place->second);
    }
    return found;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::size_t> places_;
};

bool is_open(const ClaimPoint& point, char op) {
  if (point.verdict != Verdict::inconclusive || !point.is_complete) return false;
  if (point.pairs < kLeastSequentialPairs) return true;
  if (point.signs && op == '~') return false;  // censored values never show that sides are equal
  return !point.is_step;                       // a step that does not lead the other way decides nothing
}

}  // namespace

int next_look(int pairs) {
  return std::max(kLeastSequentialPairs, pairs + (pairs + 3) / 4);
}

std::vector<int> wanted_seeds(const Scenario& scenario, const std::vector<ClaimResult>& claims,
                              const std::vector<int>& seeds, int most) {
  const std::vector<Claim> read = read_claims(scenario.claims);
  const Places places(scenario);
  std::vector<int> wanted = seeds;
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (claims[i].verdict != Verdict::inconclusive) continue;
    const Comparison* const comparison = std::get_if<Comparison>(&read[i].statement);
    const Trend* const trend = std::get_if<Trend>(&read[i].statement);
    if (!comparison && !trend) continue;
    const ClaimSide& left = comparison ? comparison->left : trend->side;
    const ClaimSide& right = comparison ? comparison->right : trend->side;
    for (const ClaimPoint& point : claims[i].points) {
      if (!is_open(point, comparison ? comparison->op : '<')) continue;
      std::vector<std::size_t> needed = places.of(left, point.left_at);
      const std::vector<std::size_t> others = places.of(right, point.right_at);
      needed.insert(needed.end(), others.begin(), others.end());
      const int count = std::min(most, next_look(point.pairs));
      for (const std::size_t place : needed) wanted[place] = std::max(wanted[place], count);
    }
  }
  return wanted;
}

}  // namespace moelab
