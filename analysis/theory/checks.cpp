#include "analysis/theory/acmoe2025_lemma1.h"
#include "analysis/theory/acmoe2025_lemma2.h"
#include "analysis/theory/acmoe2025_lemma3.h"
#include "analysis/theory/acmoe2025_lemma4.h"
#include "analysis/theory/acmoe2025_proposition1.h"
#include "analysis/theory/acmoe2025_proposition2.h"
#include "analysis/theory/acmoe2025_router_hessian.h"
#include "analysis/theory/acmoe2025_theorem1.h"
#include "analysis/theory/check.h"
#include "analysis/theory/dikkala2023_claims.h"
#include "analysis/theory/dikkala2023_descent_step.h"
#include "analysis/theory/dikkala2023_lemma1.h"
#include "analysis/theory/dikkala2023_lemma2.h"
#include "analysis/theory/dikkala2023_local_minima.h"
#include "analysis/theory/dikkala2023_sample_router.h"
#include "analysis/theory/dikkala2023_theorem1.h"
#include "analysis/theory/dikkala2023_theorem2.h"
#include "analysis/theory/dikkala2023_theorem4.h"
#include "analysis/theory/dikkala2023_theorem4_gradient.h"
#include "analysis/theory/graph_of_tokens2025_likelihoods.h"
#include "analysis/theory/graph_of_tokens2025_mixing.h"
#include "analysis/theory/graph_of_tokens2025_models.h"
#include "analysis/theory/graph_of_tokens2025_point_estimate.h"
#include "analysis/theory/graph_of_tokens2025_proposition1.h"
#include "analysis/theory/graph_of_tokens2025_topk.h"
#include "analysis/theory/specialization2025_balance.h"
#include "analysis/theory/specialization2025_cross_gradients.h"
#include "analysis/theory/specialization2025_lemmas.h"
#include "analysis/theory/specialization2025_slopes.h"

namespace moelab {
namespace {

/// By source, then by number. A new source adds its functions at its place.
constexpr std::vector<Check> (*kTables[])() = {
    dikkala2023_local_minima_checks,
    dikkala2023_descent_step_checks,
    dikkala2023_theorem1_checks,
    dikkala2023_lemma1_checks,
    dikkala2023_theorem2_checks,
    dikkala2023_sample_router_checks,
    dikkala2023_lemma2_checks,
    dikkala2023_claim_checks,
    dikkala2023_theorem4_checks,
    dikkala2023_theorem4_gradient_checks,
    acmoe2025_theorem1_checks,
    acmoe2025_lemma3_checks,
    acmoe2025_lemma1_checks,
    acmoe2025_lemma2_checks,
    acmoe2025_proposition1_checks,
    acmoe2025_proposition2_checks,
    acmoe2025_router_hessian_checks,
    acmoe2025_lemma4_checks,
    graph_of_tokens2025_topk_checks,
    graph_of_tokens2025_model_checks,
    graph_of_tokens2025_point_estimate_checks,
    graph_of_tokens2025_likelihood_checks,
    graph_of_tokens2025_proposition1_checks,
    graph_of_tokens2025_mixing_checks,
    specialization2025_cross_gradient_checks,
    specialization2025_slope_checks,
    specialization2025_balance_checks,
    specialization2025_lemma_checks,
};

}  // namespace

const std::vector<Check>& checks() {
  static const std::vector<Check> all = [] {
    std::vector<Check> list;
    for (const auto table : kTables) {
      for (Check& check : table()) list.push_back(std::move(check));
    }
    return list;
  }();
  return all;
}

}  // namespace moelab
