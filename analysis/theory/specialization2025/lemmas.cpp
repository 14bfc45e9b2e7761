#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/theory/check.h"
#include "analysis/theory/specialization2025.h"
#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"

namespace moelab {

double term_value(const std::string& term, const RoutedBatch<double>& batch) {
  AuxiliaryScratch scratch;
  return auxiliary_loss_kinds()[auxiliary_loss_place(term)].value.in_double(batch, scratch);
}

AuxiliaryLosses losses_with(const std::string& term) {
  LossOptions options;
  options.coefficient(term) = 1;
  return AuxiliaryLosses(options);
}

namespace {

constexpr const char* kLemma2Id = "specialization2025.lemma2";
constexpr int kLargestRows = 4, kLargestColumns = 5;
constexpr int kSetPairs = 200, kLargestSet = 6;

struct LemmaCase {
  int rows, nonzeros, columns;
};

/// N (K − 1) ≥ E, and E divides N K, so that the column sums of the first state are N/E to the point.
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
  std::vector<std::size_t> at(static_cast<std::size_t>(sizes.rows), 0);
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
  std::vector<int> counts(static_cast<std::size_t>(sizes.columns), 0);
  for (const std::vector<int>& row : support) {
    for (const int column : row) ++counts[static_cast<std::size_t>(column)];
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
  Support support(static_cast<std::size_t>(rows));
  int next = 0;
  for (std::vector<int>& row : support) {
    for (int k = 0; k < nonzeros; ++k) row.push_back(next++ % columns);
  }
  return support;
}

std::vector<std::pair<int, int>> find_cycle(const Support& support, int columns) {
  const int rows = static_cast<int>(support.size());
  std::vector<std::set<int>> neighbours(static_cast<std::size_t>(rows + columns));
  const auto of = [&](int vertex) -> std::set<int>& { return neighbours[static_cast<std::size_t>(vertex)]; };
  for (int row = 0; row < rows; ++row) {
    for (const int column : support[static_cast<std::size_t>(row)]) {
      of(row).insert(rows + column);
      of(rows + column).insert(row);
    }
  }
  // Without its leaves, again and again, a forest vanishes; in what else remains no walk comes to an end.
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
  double largest = 0, shortest = std::numeric_limits<double>::infinity(), longest = 0;
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
  CheckFinding finding;
  finding.hypotheses = {{"a cycle in the support (shortest length > 0)", shortest, shortest > 0}};
  finding.measured = largest;
  finding.error_bound = kCycleCases[std::size(kCycleCases) - 1].rows * std::numeric_limits<double>::epsilon();
  finding.error_origin = "rounding of sums of up to 48 entries";
  finding.details = {{"cases", std::size(kCycleCases)}, {"longest cycle", longest}};
  return finding;
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
  return {
      {id + "cycle.as_printed", lemma1,
       "steps +d, -d along a cycle, 0 < d <= 1/K, here 1/K, keep K nonzeros a row, row sums 1 and column "
       "sums "
       "N/E and raise the variance of nonzeros in the cycle's rows to 2 d^2/K (largest deviation)",
       CheckVerdict::fails, [](const CheckEffort&) { return check_cycle(1); }},
      {id + "cycle.corrected", lemma1, "the same with d < 1/K, here half of it (largest deviation)",
       CheckVerdict::holds, [](const CheckEffort&) { return check_cycle(0.5); }},
      {id + "existence.as_printed", lemma1,
       "for K >= 2 there is a support with K ones a row and even column sums that has a cycle (cases of all "
       "N <= 4, K <= E <= 5 without)",
       CheckVerdict::fails, [=](const CheckEffort&) { return check_existence(at_least_two, false); }},
      {id + "existence.corrected", lemma1,
       "for N (K - 1) >= E every support with K ones a row has a cycle (cases of all N <= 4, K <= E <= 5 in "
       "which one has not)",
       CheckVerdict::holds, [=](const CheckEffort&) { return check_existence(enough_entries, true); }},
      {std::string(kLemma2Id) + ".as_printed", lemma2,
       "for sets of equal size A u B has a partition into sets of equal size (share of random pairs)",
       CheckVerdict::fails, [](const CheckEffort& effort) { return check_lemma2_partition(effort, false); }},
      {std::string(kLemma2Id) + ".corrected", lemma2,
       "the same of sets without common points, A and B themselves: no content beyond the hypothesis (share "
       "of random pairs)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_lemma2_partition(effort, true); }}};
}

namespace {

const std::string kCrossGradientPrefix = "specialization2025.cross_gradient.";
constexpr int kCrossGradientRows = 24, kCrossGradientDim = 5, kCrossGradientOutputs = 4,
              kCrossGradientExperts = 6;
constexpr int kCrossGradientRepetitions = 8;
constexpr double kCrossGradientDifferenceStep = 1e-6;

Model<double> draw_model(Engine& engine, int layers) {
  ModelOptions options;
  options.layers = layers;
  options.experts = kCrossGradientExperts;
  options.router = LinearRouterOptions{};
  options.expert = LinearExpertOptions{};
  options.gating.train = TopKGatingOptions{.k = 2, .renormalize = std::nullopt};
  const Layout layout{.input_dim = kCrossGradientDim, .output_dim = kCrossGradientOutputs};
  return {options, layout, Start{Seeds{engine(), 0}}};
}

/// The entries of a flat array that belong to parameters of a role.
Vector part_of(const AlignedVector<double>& values, const Model<double>& model, ParameterGroup::Role role) {
  Vector part = Vector::Zero(static_cast<Eigen::Index>(values.size()));
  for (const ParameterGroup& group : model.network->groups()) {
    if (group.role != role) continue;
    for (std::size_t i = group.begin; i < group.end; ++i) part[static_cast<Eigen::Index>(i)] = values[i];
  }
  return part;
}

}  // namespace

CheckFinding check_cross_gradient(const CheckEffort& effort, const std::string& term,
                                  ParameterGroup::Role role, int layers) {
  using Role = ParameterGroup::Role;
  const Role other = role == Role::router ? Role::expert : Role::router;
  const std::unique_ptr<TaskLoss<double>> task = make_task_loss<double>("mse");
  double largest = 0, smallest_other = std::numeric_limits<double>::infinity();
  for (int repetition = 0; repetition < kCrossGradientRepetitions * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kCrossGradientPrefix + term, repetition);
    const Matrix x = draw_normals(engine, kCrossGradientRows, kCrossGradientDim),
                 y = draw_normals(engine, kCrossGradientRows, kCrossGradientOutputs);
    Model<double> model = draw_model(engine, layers);
    Workspace<double> workspace = model.network->make_workspace();
    const auto pass = [&](const Objective<double>& objective) {
      loss_and_gradient(model, objective, x.data(), y.data(), kCrossGradientRows, workspace);
      return workspace.gradient;
    };
    const auto value_of_term = [&] {
      pass({*task});
      double sum = 0;
      for (int layer = 0; layer < layers; ++layer) {
        const PlacedBlock<double>& placed = model.network->placed_mixture(layer);
        MixtureScratch<double>& scratch = model.network->mixture_scratch(layer, workspace);
        placed.mixture->pair_outputs(model.network->values(placed, model.parameters, model.state), scratch);
        sum += term_value(term, placed.mixture->routed_batch(scratch, true));
      }
      return sum;
    };
    const AlignedVector<double> with_term = pass({*task, losses_with(term)});
    const AlignedVector<double> without = pass({*task});
    const auto gradient = [&](Role of) {
      return Vector(part_of(with_term, model, of) - part_of(without, model, of));
    };
    const double found = gradient(role).norm(), in_other = gradient(other).norm();
    const AlignedVector<double> kept = model.parameters;
    AlignedVector<double> direction(kept.size());
    fill_normal(engine, 1.0, direction.data(), direction.size());
    const Vector along = part_of(direction, model, role).normalized();
    const auto value_at = [&](double distance) {
      for (std::size_t i = 0; i < kept.size(); ++i)
        model.parameters[i] = kept[i] + distance * along[static_cast<Eigen::Index>(i)];
      return value_of_term();
    };
    const double slope = (value_at(kCrossGradientDifferenceStep) - value_at(-kCrossGradientDifferenceStep)) /
                         (2 * kCrossGradientDifferenceStep);
    largest = larger(largest, std::max(found, std::abs(slope)) / in_other);
    smallest_other = smaller(smallest_other, in_other);
  }
  CheckFinding finding;
  finding.hypotheses = {{"the term has a gradient in the other parameters (smallest norm > 0)",
                         smallest_other, smallest_other > 0}};
  finding.measured = largest;
  finding.error_bound = 1e-12;
  finding.error_origin = "rounding of the two gradients' difference";
  return finding;
}

std::vector<Check> specialization2025_cross_gradient_checks() {
  using Role = ParameterGroup::Role;
  const std::string source = "Guo et al. 2025, section 3.2";
  const std::string norm = " in one layer (its norm over that of the term's gradient in the others)";
  const auto check = [&](const std::string& term, Role role, const std::string& statement) {
    return Check{kCrossGradientPrefix + term, source, statement + norm, CheckVerdict::holds,
                 [=](const CheckEffort& effort) { return check_cross_gradient(effort, term, role); }};
  };
  return {check("aux", Role::expert, "the balance loss has no gradient in the experts"),
          check("variance", Role::expert, "the variance loss has no gradient in the experts"),
          check("orthogonality", Role::router,
                "the orthogonality loss has no gradient in the router, whose selection is held fixed,")};
}

}  // namespace moelab
