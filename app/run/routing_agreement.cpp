#include "app/run/routing_agreement.h"

#include <algorithm>
#include <optional>

#include "analysis/metrics/agreement.h"
#include "analysis/metrics/load.h"
#include "app/figures/saved_arrays.h"
#include "app/run/saved_file.h"

namespace moelab {
namespace {

constexpr const char *kInputs = "test_inputs", *kProbabilities = "test_probs";

/// A layer's routing of a cell.
struct SavedRouting {
  RoutingPlace place;
  int seed = 0;
  std::string layer;
  std::string rows;  ///< checksum of the test inputs
  std::vector<int> likeliest;
  Vector mean;
};

std::vector<SavedRouting> saved_routings(const NamedRun& run) {
  std::vector<SavedRouting> routings;
  for (const ResultRow& row : run.results.table.rows) {
    const auto saved = run.results.arrays.find(row.cell);
    if (row.state != "done" || saved == run.results.arrays.end() || !saved->second.contains(kInputs))
      continue;
    for (const auto& [name, checksum] : saved->second) {
      if (!name.starts_with(kProbabilities)) continue;
      const Matrix probabilities = read_rows(saved_file(run.results, run.directory, row.cell, name));
      routings.push_back({RoutingPlace{run.name, row.arm, row.point}, row.seed,
                          name.substr(std::string(kProbabilities).size()), saved->second.at(kInputs),
                          top1_assignment(probabilities), probabilities.colwise().mean().transpose()});
    }
  }
  return routings;
}

/// Whether two routings are a pair; of seeds if so.
std::optional<bool> pair_of_seeds(const SavedRouting& left, const SavedRouting& right) {
  const bool same_rows = left.rows == right.rows && left.likeliest.size() == right.likeliest.size();
  if (!same_rows || left.layer != right.layer) return std::nullopt;
  const int differences = (left.place.run != right.place.run) + (left.place.arm != right.place.arm) +
                          (left.place.point != right.place.point) + (left.seed != right.seed);
  if (differences != 1) return std::nullopt;
  return left.seed != right.seed;
}

}  // namespace

std::vector<RoutingAgreement> routing_agreements(const std::vector<NamedRun>& runs) {
  std::vector<SavedRouting> all;
  for (const NamedRun& run : runs) {
    for (SavedRouting& routing : saved_routings(run)) all.push_back(std::move(routing));
  }
  std::vector<RoutingAgreement> agreements;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      const SavedRouting &left = all[i], &right = all[j];
      const std::optional<bool> of_seeds = pair_of_seeds(left, right);
      if (!of_seeds) continue;
      auto own = std::find_if(agreements.begin(), agreements.end(), [&](const RoutingAgreement& known) {
        return known.left == left.place && known.right == right.place && known.layer == left.layer &&
               known.of_seeds == *of_seeds;
      });
      if (own == agreements.end())
        own = agreements.insert(own, {left.place, right.place, left.layer, *of_seeds, {}, {}, {}});
      const ContingencyTable both = routing_table(left.likeliest, right.likeliest);
      own->ari.push_back(adjusted_rand_index(both).value());
      own->nmi.push_back(normalized_mutual_information(both).value());
      // Experts of two models of different sizes: the further ones of the larger have no share in the
      // smaller.
      const Eigen::Index experts = std::max(left.mean.size(), right.mean.size());
      Vector p = Vector::Zero(experts), q = Vector::Zero(experts);
      p.head(left.mean.size()) = left.mean;
      q.head(right.mean.size()) = right.mean;
      own->divergence.push_back(jensen_shannon_divergence(p, q));
    }
  }
  return agreements;
}

}  // namespace moelab
