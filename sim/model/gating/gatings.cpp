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
  entry(sinkhorn)
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

}  // namespace moelab
