#include "analysis/theory/graph_of_tokens2025/topk.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "analysis/theory/extremes.h"
#include "sim/base/softmax.h"

namespace moelab {
namespace {

constexpr const char* kTopkId = "graph_of_tokens2025.renormalised_topk";
constexpr int kTopkInstances = 2000, kMostExperts = 64;
constexpr double kTopkSpreads[] = {0.1, 1, 10, 100};

/// Places in the order of falling values; of equal ones the first comes first.
std::vector<Eigen::Index> falling_order(const Vector& values) {
  std::vector<Eigen::Index> order(static_cast<std::size_t>(values.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](Eigen::Index a, Eigen::Index b) { return values[a] > values[b]; });
  return order;
}

}  // namespace

Vector renormalised_gates(const Vector& scores, int selected) {
  const Vector probabilities = softmax(scores.transpose()).transpose();
  const std::vector<Eigen::Index> order = falling_order(probabilities);
  Vector gates = Vector::Zero(scores.size());
  for (int k = 0; k < selected; ++k) {
    const Eigen::Index place = order[static_cast<std::size_t>(k)];
    gates[place] = probabilities[place];
  }
  return gates / gates.sum();
}

Vector masked_gates(const Vector& scores, int selected) {
  const std::vector<Eigen::Index> order = falling_order(scores);
  Vector masked = Vector::Constant(scores.size(), -std::numeric_limits<double>::infinity());
  for (int k = 0; k < selected; ++k) {
    const Eigen::Index place = order[static_cast<std::size_t>(k)];
    masked[place] = scores[place];
  }
  return softmax(masked.transpose()).transpose();
}

CheckFinding check_topk(const CheckEffort& effort, const GateRule& left, const GateRule& right) {
  double largest = 0, gap = std::numeric_limits<double>::infinity();
  int instances = 0;
  for (const double spread : kTopkSpreads) {
    Engine engine = check_stream(effort, kTopkId, instances);
    for (int i = 0; i < kTopkInstances * effort.seeds; ++i, ++instances) {
      const int experts = 2 + draw_index(engine, kMostExperts - 1);
      const int selected = 1 + draw_index(engine, experts - 1);
      const Vector scores = draw_normals(engine, experts, 1, spread);
      const std::vector<Eigen::Index> order = falling_order(scores);
      const std::size_t last = static_cast<std::size_t>(selected - 1);
      gap = smaller(gap, scores[order[last]] - scores[order[last + 1]]);
      largest = larger(largest, (left(scores, selected) - right(scores, selected)).cwiseAbs().maxCoeff());
    }
  }
  CheckFinding finding;
  finding.hypotheses = {{"no ties: gamma_(K) > gamma_(K+1) (smallest difference)", gap, gap > 0}};
  finding.measured = largest;
  finding.error_bound = 2 * kMostExperts * std::numeric_limits<double>::epsilon();
  finding.error_origin = "rounding of sums of up to 64 terms";
  finding.details = {{"instances", instances}};
  return finding;
}

std::vector<Check> graph_of_tokens2025_topk_checks() {
  return {{kTopkId, "Nguyen et al. 2025, Remark 1, appendix B.3",
           "Renormalize(TopK(softmax gamma)) = softmax(gamma on the K largest, -infinity elsewhere), for "
           "random "
           "scores, E <= 64 and K < E (largest difference)",
           CheckVerdict::holds, [](const CheckEffort& effort) { return check_topk(effort); }}};
}

}  // namespace moelab
