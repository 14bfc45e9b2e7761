/// Draws clusters with moelab and routes every row to the nearest of the first rows, one for each expert.
/// Then measures how well these routes find the clusters. A router that starts at samples begins there.

#include <iostream>

#include "analysis/metrics/sparsity.h"
#include "sim/data/gaussian_mixture.h"

int main() {
  using namespace moelab;
  constexpr int kExperts = 24, kRows = 4000;
  const DataOptions data = GaussianMixtureOptions{
      .clusters = 8, .dim = 16, .mean_std = 2.0, .target = gaussian_mixture::ConstantTarget{.dim = 2}};
  const Seeds seeds = {1, 0};
  const std::unique_ptr<Problem> problem = draw_problem(data, seeds);
  const Dataset drawn = draw_set(*problem, seeds, Purpose::train_data, kRows);

  Matrix routing = Matrix::Zero(kRows, kExperts);
  for (int i = 0; i < kRows; ++i) {
    Eigen::Index nearest = 0;
    (drawn.x.topRows(kExperts).rowwise() - drawn.x.row(i)).rowwise().squaredNorm().minCoeff(&nearest);
    routing(i, nearest) = 1;
  }
  const ClusterRouting clusters(routing, drawn.cluster);
  std::cout << "purity " << clusters.top1_cluster_purity().value_or(0) << ", effective experts per cluster "
            << clusters.effective_experts() << '\n';
}
