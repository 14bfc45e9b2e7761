#pragma once

/// Which seeds the open claims of a run still need.

#include <vector>

#include "analysis/stats/claims.h"
#include "app/scenario/scenario.h"

namespace moelab {

/// The next number of pairs at which an open claim is looked at: a quarter more, and at first those that a
/// verdict by sequences needs.
int next_look(int pairs);

/// The seeds of each arm at each point (in the order of the scenario's cells), at most `most`, that bring
/// every open point of a claim to its next look; `seeds` for arms and points that no open claim reads. A
/// claim is open that is inconclusive and more pairs could decide: not one on rates, which has no sequence,
/// and not at points with a cell that diverged or failed. `claims` are the results of the scenario's, in
/// their order.
std::vector<int> wanted_seeds(const Scenario& scenario, const std::vector<ClaimResult>& claims,
                              const std::vector<int>& seeds, int most);

/// The same were every claim open until its arms and points have `most`: what the looks come to at most.
std::vector<int> most_wanted_seeds(const Scenario& scenario, const std::vector<int>& seeds, int most);

}  // namespace moelab
