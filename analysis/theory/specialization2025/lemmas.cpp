#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/theory/specialization2025.h"

namespace moelab {
namespace {

constexpr const char* kLemma2Id = "specialization2025.lemma2";
constexpr int kLargestRows = 4, kLargestColumns = 5;
constexpr int kSetPairs = 200, kLargestSet = 6;

struct LemmaCase {
  int rows, nonzeros, columns;
};

/// N (K − 1) ≥ E, and E divides N K, so that the column sums of the first state are exactly N/E.
constexpr LemmaCase kCycleCases[] = {{2, 2, 2}, {4, 2, 4}, {6, 3, 9}, {16, 2, 8}, {32, 4, 16}, {48, 6, 32}};

/// Every choice of `nonzeros` of `columns`.
std::vector<std::vector<int>> choices(int nonzeros, int columns) {
  std::vector<std::vector<int>> all;
  for (unsigned mask = 0; mask < 1u << columns; ++mask) {
    std::vector<int> chosen;
    for (int j = 0; j < columns; ++j) {
      if (mask >> j & 1u) chosen.push_back(j);
    }
    if (static_cast<int>(chosen.size()) == nonzeros) all.push_back(std::move(chosen));
  }
  return all;
}

/// Calls visit(support) for every support with K nonzeros in each of N rows.
template <class Visit>
void for_each_support(const LemmaCase& sizes, const Visit& visit) {
  const std::vector<std::vector<int>> rows = choices(sizes.nonzeros, sizes.columns);
  std::vector<std::size_t> at(size(sizes.rows), 0);
  while (true) {
    Support support;
    for (const std::size_t choice : at) support.push_back(rows[choice]);
    visit(support);
    std::size_t place = 0;
    while (place < at.size() && ++at[place] == rows.size()) at[place++] = 0;
    if (place == at.size()) return;
  }
}

bool is_balanced(const Support& support, const LemmaCase& sizes) {
  std::vector<int> counts(size(sizes.columns), 0);
  for (const std::vector<int>& row : support) {
    for (const int column : row) ++counts[size(column)];
  }
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  return *most - *least <= 1;
}

bool has_wanted_cycle(const LemmaCase& sizes, bool every_support) {
  bool every = true, some = false;
  for_each_support(sizes, [&](const Support& support) {
    const bool cyclic = !find_cycle(support, sizes.columns).empty();
    every = every && cyclic;
    some = some || (cyclic && is_balanced(support, sizes));
  });
  return every_support ? every : some;
}

}  // namespace

Support balanced_support(int rows, int columns, int nonzeros) {
  Support support(size(rows));
  int next = 0;
  for (std::vector<int>& row : support) {
    for (int k = 0; k < nonzeros; ++k) row.push_back(next++ % columns);
  }
  return support;
}

std::vector<std::pair<int, int>> find_cycle(const Support& support, int columns) {
  const int rows = static_cast<int>(support.size());
  std::vector<std::set<int>> neighbours(size(rows + columns));
  const auto of = [&](int vertex) -> std::set<int>& { return neighbours[size(vertex)]; };
  for (int row = 0; row < rows; ++row) {
    for (const int column : support[size(row)]) {
      of(row).insert(rows + column);
      of(rows + column).insert(row);
    }
  }
  // Removing leaves repeatedly deletes a forest completely. In any other remainder no walk ends.
  std::vector<int> leaves;
  for (int v = 0; v < rows + columns; ++v) {
    if (of(v).size() == 1) leaves.push_back(v);
  }
  while (!leaves.empty()) {
    const int leaf = leaves.back();
    leaves.pop_back();
    for (const int other : of(leaf)) {
      of(other).erase(leaf);
      if (of(other).size() == 1) leaves.push_back(other);
    }
    of(leaf).clear();
  }
  const auto start = std::find_if(neighbours.begin(), neighbours.end(),
                                  [](const std::set<int>& all) { return !all.empty(); });
  if (start == neighbours.end()) return {};
  std::vector<int> walk = {static_cast<int>(start - neighbours.begin())};
  auto repeated = walk.end();
  do {
    const int previous = walk.size() > 1 ? walk[walk.size() - 2] : -1;
    const auto next = std::find_if(of(walk.back()).begin(), of(walk.back()).end(),
                                   [&](int vertex) { return vertex != previous; });
    walk.push_back(*next);
    repeated = std::find(walk.begin(), walk.end() - 1, walk.back());
  } while (repeated == walk.end() - 1);
  std::vector<std::pair<int, int>> cycle;
  for (auto at = repeated; at + 1 != walk.end(); ++at) {
    cycle.emplace_back(std::min(*at, at[1]), std::max(*at, at[1]) - rows);
  }
  return cycle;
}

Matrix cycle_state(const Support& support, int columns, const std::vector<std::pair<int, int>>& cycle,
                   double step) {
  Matrix state = Matrix::Zero(static_cast<Eigen::Index>(support.size()), columns);
  for (std::size_t row = 0; row < support.size(); ++row) {
    for (const int column : support[row])
      state(static_cast<Eigen::Index>(row), column) = 1 / static_cast<double>(support[row].size());
  }
  double sign = 1;
  for (const auto& [row, column] : cycle) {
    state(row, column) += sign * step;
    sign = -sign;
  }
  return state;
}

CheckFinding check_cycle(double relative_step, const CycleFinder& find) {
  double largest = 0, shortest = kInfinity, longest = 0;
  for (const LemmaCase& sizes : kCycleCases) {
    const double step = relative_step / sizes.nonzeros;
    const Support support = balanced_support(sizes.rows, sizes.columns, sizes.nonzeros);
    const std::vector<std::pair<int, int>> cycle = find(support, sizes.columns);
    const Matrix state = cycle_state(support, sizes.columns, cycle, step);
    std::set<Eigen::Index> on_cycle;
    for (const auto& [row, column] : cycle) on_cycle.insert(row);
    shortest = std::min(shortest, static_cast<double>(cycle.size()));
    longest = std::max(longest, static_cast<double>(cycle.size()));
    const double share = static_cast<double>(sizes.rows) / sizes.columns;
    for (Eigen::Index i = 0; i < state.rows(); ++i) {
      const double count = static_cast<double>((state.row(i).array() != 0).count());
      const double mean = state.row(i).sum() / sizes.nonzeros;
      const double variance = state.row(i).squaredNorm() / sizes.nonzeros - mean * mean;
      const double expected = on_cycle.contains(i) ? 2 * step * step / sizes.nonzeros : 0;
      largest = larger(largest, std::abs(state.row(i).sum() - 1));
      largest = larger(largest, std::abs(count - sizes.nonzeros));
      largest = larger(largest, std::abs(variance - expected));
    }
    for (Eigen::Index j = 0; j < state.cols(); ++j)
      largest = larger(largest, std::abs(state.col(j).sum() - share));
  }
  return {.hypotheses = {{"a cycle in the support (shortest length > 0)", shortest, shortest > 0}},
          .measured = largest,
          .error_bound = kCycleCases[std::size(kCycleCases) - 1].rows * kEpsilon,
          .error_origin = "rounding of sums of up to 48 entries",
          .details = {{"cases", std::size(kCycleCases)}, {"longest cycle", longest}}};
}

CheckFinding check_existence(const std::function<bool(int rows, int nonzeros, int columns)>& condition,
                             bool every_support) {
  CheckFinding finding;
  int cases = 0, failing = 0;
  LemmaCase first{};
  for (int rows = 1; rows <= kLargestRows; ++rows) {
    for (int columns = 2; columns <= kLargestColumns; ++columns) {
      for (int nonzeros = 2; nonzeros <= columns; ++nonzeros) {
        if (!condition(rows, nonzeros, columns)) continue;
        ++cases;
        if (has_wanted_cycle({rows, nonzeros, columns}, every_support)) continue;
        if (failing++ == 0) first = {rows, nonzeros, columns};
      }
    }
  }
  finding.measured = failing;
  finding.error_origin = "none: every support is tried";
  finding.details = {{"cases", cases}};
  if (failing > 0) {
    finding.details.insert(finding.details.end(),
                           {{"first without: N", first.rows}, {"K", first.nonzeros}, {"E", first.columns}});
  }
  return finding;
}

CheckFinding check_lemma2_partition(const CheckEffort& effort, bool disjoint) {
  const int pairs = kSetPairs * effort.seeds;
  int with_partition = 0, given_sets = 0, overlapping = 0;
  for (int repetition = 0; repetition < pairs; ++repetition) {
    Engine engine = check_stream(effort, kLemma2Id, repetition);
    const int size = 1 + draw_index(engine, kLargestSet);
    std::vector<int> points = draw_permutation(engine, 2 * kLargestSet);
    const std::set<int> a(points.begin(), points.begin() + size);
    if (!disjoint) points = draw_permutation(engine, 2 * kLargestSet);
    const std::set<int> b(points.end() - size, points.end());
    std::set<int> both = a;
    both.insert(b.begin(), b.end());
    with_partition += both.size() % 2 == 0 ? 1 : 0;
    const bool is_partition = both.size() == a.size() + b.size();
    given_sets += is_partition ? 1 : 0;
    overlapping += is_partition ? 0 : 1;
  }
  CheckFinding finding;
  finding.hypotheses = {{"|A| = |B|, nothing more", 0, true}};
  if (disjoint) {
    finding.hypotheses = {{"|A| = |B| and, as the proof assumes, no common points (pairs with some)",
                           static_cast<double>(overlapping), overlapping == 0}};
  }
  finding.predicted = 1;
  finding.measured = static_cast<double>(with_partition) / pairs;
  finding.error_origin = "none: sets are counted";
  finding.details = {{"pairs", pairs}, {"of them with A and B themselves as the partition", given_sets}};
  return finding;
}

std::vector<Check> specialization2025_lemma_checks() {
  const std::string lemma1 = "Guo et al. 2025, Lemma 1, proof C.1", lemma2 = "Guo et al. 2025, Lemma 2";
  const std::string id = "specialization2025.lemma1.";
  const auto at_least_two = [](int, int nonzeros, int) { return nonzeros >= 2; };
  const auto enough_entries = [](int rows, int nonzeros, int columns) {
    return rows * (nonzeros - 1) >= columns;
  };
  return {{id + "cycle.as_printed", lemma1,
           "steps +d, -d along a cycle, 0 < d <= 1/K, here 1/K, keep K nonzeros a row, row sums 1 and column "
           "sums N/E. They raise the variance of nonzeros in the cycle's rows to 2 d^2/K (largest deviation)",
           CheckVerdict::fails, [](Effort) { return check_cycle(1); }},
          {id + "cycle.corrected", lemma1,
           "steps +d, -d along a cycle, d = 1/(2K), keep K nonzeros a row, row sums 1 and column sums N/E. "
           "They raise the variance of nonzeros in the cycle's rows to 2 d^2/K (largest deviation)",
           CheckVerdict::holds, [](Effort) { return check_cycle(0.5); }},
          {id + "existence.as_printed", lemma1,
           "for K >= 2 there is a support with K ones a row and even column sums that has a cycle (cases of "
           "all N <= 4, K <= E <= 5 without)",
           CheckVerdict::fails, [=](const CheckEffort&) { return check_existence(at_least_two, false); }},
          {id + "existence.corrected", lemma1,
           "for N (K - 1) >= E every support with K ones a row has a cycle (cases of all N <= 4, K <= E <= 5 "
           "in which one has not)",
           CheckVerdict::holds, [=](const CheckEffort&) { return check_existence(enough_entries, true); }},
          {std::string(kLemma2Id) + ".as_printed", lemma2,
           "for sets of equal size A u B has a partition into sets of equal size (share of random pairs)",
           CheckVerdict::fails, [](Effort effort) { return check_lemma2_partition(effort, false); }},
          {std::string(kLemma2Id) + ".corrected", lemma2,
           "sets A and B of equal size without common points are a partition of A u B into sets of equal "
           "size, which adds nothing to the hypothesis (share of random pairs)",
           CheckVerdict::holds, [](Effort effort) { return check_lemma2_partition(effort, true); }}};
}

}  // namespace moelab
