#include "analysis/metrics/entropy.h"

#include <algorithm>
#include <utility>

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

Vector router_margins(const Eigen::Ref<const Matrix>& probabilities) {
  if (probabilities.cols() < 2)
    throw InvalidOption("probs", "less than two columns; a margin is between two experts");
  Vector margins(probabilities.rows());
  for (Eigen::Index i = 0; i < probabilities.rows(); ++i) {
    double first = probabilities(i, 0), second = probabilities(i, 1);
    if (second > first) std::swap(first, second);
    for (Eigen::Index e = 2; e < probabilities.cols(); ++e) {
      second = std::max(second, std::min(first, probabilities(i, e)));
      first = std::max(first, probabilities(i, e));
    }
    margins[i] = first - second;
  }
  return margins;
}

std::optional<double> router_margin(const Eigen::Ref<const Matrix>& probabilities) {
  if (probabilities.rows() == 0) throw InvalidOption("probs", "empty; a mean margin needs at least one row");
  if (probabilities.cols() < 2) return std::nullopt;
  return router_margins(probabilities).mean();
}

}  // namespace moelab
