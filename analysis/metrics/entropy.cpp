#include "analysis/metrics/entropy.h"

#include "analysis/metrics/sparsity.h"
#include "sim/base/error.h"

namespace moelab {

Vector routing_entropies(const Eigen::Ref<const Matrix>& probabilities) {
  Vector entropies(probabilities.rows());
  const std::size_t experts = static_cast<std::size_t>(probabilities.cols());
  for (Eigen::Index i = 0; i < probabilities.rows(); ++i)
    entropies[i] = entropy({probabilities.data() + i * probabilities.outerStride(), experts});
  return entropies;
}

double routing_entropy(const Eigen::Ref<const Matrix>& probabilities) {
  if (probabilities.rows() == 0)
    throw InvalidOption("probs", "empty; routing entropy needs at least one row");
  return routing_entropies(probabilities).mean();
}

}  // namespace moelab
