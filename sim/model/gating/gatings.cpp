#include <algorithm>

#include "sim/model/gating/gating.h"

// Adding a gating is a new file that defines <name>_gating() and a line here.
// clang-format off
#define MOELAB_GATINGS(entry) \
  entry(soft)                 \
  entry(top1)                 \
  entry(topk)                 \
  entry(topp)                 \
  entry(sigmoid)              \
  entry(noisy_topk)           \
  entry(expert_choice)        \
  entry(relu)                 \
  entry(sinkhorn)             \
  entry(balanced_assignment)  \
  entry(dense_to_sparse)      \
  entry(soft_slots)
// clang-format on

namespace moelab {

#define MOELAB_DECLARE(name) GatingKind name##_gating();
MOELAB_GATINGS(MOELAB_DECLARE)
#undef MOELAB_DECLARE

namespace {

std::vector<GatingKind>& gatings() {
#define MOELAB_CALL(name) name##_gating(),
  static std::vector<GatingKind> table = {MOELAB_GATINGS(MOELAB_CALL)};
#undef MOELAB_CALL
  return table;
}

}  // namespace

const std::vector<GatingKind>& GatingAxis::table() {
  return gatings();
}

void add_gating_kind(GatingKind kind) {
  gatings().push_back(std::move(kind));
}

double experts_per_row(const GatingRule& rule, int experts, double group_rows) {
  const GatingKind& kind = rule.entry();
  const double most = experts;
  if (kind.experts_per_row) return std::min(most, kind.experts_per_row(rule.options(), experts, group_rows));
  const int limit = kind.most_experts ? kind.most_experts(rule.options()) : 0;
  return limit > 0 ? std::min(most, static_cast<double>(limit)) : most;
}

}  // namespace moelab
