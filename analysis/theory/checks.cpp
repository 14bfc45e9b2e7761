#include "analysis/theory/check.h"

/// By source, then by number. Adding a check is a new file in its paper's folder that defines
/// <name>_checks(), which returns one or several, and a line here.
// clang-format off
#define MOELAB_CHECKS(entry)                \
  entry(dikkala2023_local_minima)           \
  entry(dikkala2023_descent_step)           \
  entry(dikkala2023_theorem1)               \
  entry(dikkala2023_router_bias)            \
  entry(dikkala2023_lemma1)                 \
  entry(dikkala2023_theorem2)               \
  entry(dikkala2023_sample_router)          \
  entry(dikkala2023_lemma2)                 \
  entry(dikkala2023_claim)                  \
  entry(dikkala2023_theorem4)               \
  entry(dikkala2023_theorem4_gradient)      \
  entry(acmoe2025_theorem1)                 \
  entry(acmoe2025_lemma3)                   \
  entry(acmoe2025_lemma1)                   \
  entry(acmoe2025_lemma2)                   \
  entry(acmoe2025_proposition1)             \
  entry(acmoe2025_proposition2)             \
  entry(acmoe2025_pooled_moment)            \
  entry(acmoe2025_router_hessian)           \
  entry(acmoe2025_lemma4)                   \
  entry(graph_of_tokens2025_topk)           \
  entry(graph_of_tokens2025_model)          \
  entry(graph_of_tokens2025_independence)   \
  entry(graph_of_tokens2025_point_estimate) \
  entry(graph_of_tokens2025_likelihood)     \
  entry(graph_of_tokens2025_proposition1)   \
  entry(graph_of_tokens2025_mixing)         \
  entry(specialization2025_cross_gradient)  \
  entry(specialization2025_slope)           \
  entry(specialization2025_balance)         \
  entry(specialization2025_lemma)           \
  entry(identifiability)
// clang-format on

namespace moelab {

#define MOELAB_DECLARE(name) std::vector<Check> name##_checks();
MOELAB_CHECKS(MOELAB_DECLARE)
#undef MOELAB_DECLARE

const std::vector<Check>& checks() {
  static const std::vector<Check> all = [] {
    std::vector<Check> list;
#define MOELAB_ADD(name) \
  for (Check & check : name##_checks()) list.push_back(std::move(check));
    MOELAB_CHECKS(MOELAB_ADD)
#undef MOELAB_ADD
    return list;
  }();
  return all;
}

}  // namespace moelab
