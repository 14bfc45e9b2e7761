#include "sim/model/expert/expert.h"

// To add an expert, write a new file that defines <name>_expert() and add a line here.
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

const std::vector<ExpertKind>& ExpertAxis::table() {
#define MOELAB_ENTRY(name) name##_expert(),
  static const std::vector<ExpertKind> own = {MOELAB_EXPERTS(MOELAB_ENTRY)};
#undef MOELAB_ENTRY
  return Extended<ExpertAxis>::table_or(own);
}

int expert_depth(const ExpertOptions& options) {
  const ExpertKind& kind = options.entry();
  return kind.depth ? kind.depth(options.options()) : 1;
}

}  // namespace moelab
