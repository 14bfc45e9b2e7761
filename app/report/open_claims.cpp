#include "app/report/open_claims.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "analysis/stats/row_index.h"
#include "analysis/stats/sequences.h"
#include "app/metrics/metric_groups.h"
#include "app/scenario/claim_reader.h"
#include "app/scenario/fixed_numbers.h"
#include "app/scenario/sweep_values.h"

namespace moelab {
namespace {

/// What a claim compares; a trend compares its side with itself elsewhere.
struct ClaimSides {
  const ClaimSide &left, &right;
  char op;
};

/// None of a claim on rates, which has no sequence.
std::optional<ClaimSides> open_claim_sides(const Claim& claim) {
  if (const Comparison* const comparison = std::get_if<Comparison>(&claim.statement))
    return ClaimSides{comparison->left, comparison->right, comparison->op};
  if (const Trend* const trend = std::get_if<Trend>(&claim.statement))
    return ClaimSides{trend->side, trend->side, '<'};
  return std::nullopt;
}

/// Places of arms and points in the order of the cells.
class Places {
 public:
  explicit Places(const Scenario& scenario) {
    for (const Cell& cell : scenario.cells) {
      if (cell.seed == 0)
        places_.emplace(std::pair(cell.arm, point_key(read_point(cell.point))), places_.size());
    }
  }

  /// Gives the arms and points of a claim's point at least so many seeds.
  void raise(const ClaimSides& sides, const ClaimPoint& point, int seeds, std::vector<int>& wanted) const {
    std::vector<std::size_t> needed = of(sides.left, point.left_at);
    const std::vector<std::size_t> others = of(sides.right, point.right_at);
    needed.insert(needed.end(), others.begin(), others.end());
    for (const std::size_t place : needed) wanted[place] = std::max(wanted[place], seeds);
  }

 private:
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
    const std::optional<ClaimSides> sides = open_claim_sides(read[i]);
    if (claims[i].verdict != Verdict::inconclusive || !sides) continue;
    for (const ClaimPoint& point : claims[i].points) {
      if (is_open(point, sides->op))
        places.raise(*sides, point, std::min(most, next_look(point.pairs)), wanted);
    }
  }
  return wanted;
}

std::vector<int> most_wanted_seeds(const Scenario& scenario, const std::vector<int>& seeds, int most) {
  ResultTable table{scenario.arms, scenario.sweep_paths, fixed_numbers(scenario), {}};
  for (const Cell& cell : scenario.cells)
    table.rows.push_back({cell.id, cell.arm, cell.seed, read_point(cell.point), "missing", {}, {}});
  table.is_decided = true;
  const std::vector<Claim> read = read_claims(scenario.claims);
  const std::vector<ClaimResult> claims = evaluate_claims(read, table, is_declared_positive, seeds.front());
  const Places places(scenario);
  std::vector<int> wanted = seeds;
  for (std::size_t i = 0; i < read.size(); ++i) {
    const std::optional<ClaimSides> sides = open_claim_sides(read[i]);
    if (!sides) continue;
    for (const ClaimPoint& point : claims[i].points) {
      // See is_open().
      places.raise(*sides, point, point.is_step ? std::min(most, kLeastSequentialPairs) : most, wanted);
    }
  }
  return wanted;
}

}  // namespace moelab
