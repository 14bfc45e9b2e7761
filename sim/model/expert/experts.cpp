#include "sim/model/expert/expert.h"

// Adding an expert is a new file that defines <name>_expert() and a line here.
// clang-format off
#define MOELAB_EXPERTS(entry) \
  entry(constant)             \
  entry(linear)               \
  entry(mlp)                  \
  entry(polynomial)           \
  entry(relu)
// clang-format on

namespace moelab {

#define MOELAB_DECLARE(name) ExpertKind name##_expert();
MOELAB_EXPERTS(MOELAB_DECLARE)
#undef MOELAB_DECLARE

namespace {

std::vector<ExpertKind>& experts() {
#define MOELAB_ENTRY(name) name##_expert(),
  static std::vector<ExpertKind> table = {MOELAB_EXPERTS(MOELAB_ENTRY)};
#undef MOELAB_ENTRY
  return table;
}

}  // namespace

const std::vector<ExpertKind>& ExpertAxis::table() {
  return experts();
}

void add_expert_kind(ExpertKind kind) {
  experts().push_back(std::move(kind));
}

int expert_depth(const ExpertOptions& options) {
  const ExpertKind& kind = options.entry();
  return kind.depth ? kind.depth(options.options()) : 1;
}

}  // namespace moelab
