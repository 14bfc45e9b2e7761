#include "sim/model/expert/expert.h"

// To add an expert, write a new file that defines <name>_expert() and add a line here.
// clang-format off
#define MOELAB_EXPERTS(entry) \
  entry(constant_expert)      \
  entry(linear_expert)        \
  entry(mlp_expert)           \
  entry(polynomial_expert)    \
  entry(relu_expert)          \
  entry(gelu_expert)          \
  entry(sigmoid_expert)       \
  entry(neurons_expert)       \
  entry(filters_expert)
// clang-format on

namespace moelab {

MOELAB_TABLE(ExpertAxis, MOELAB_EXPERTS)

int expert_depth(const ExpertOptions& options) {
  const ExpertKind& kind = options.entry();
  return kind.depth ? kind.depth(options.options()) : 1;
}

}  // namespace moelab
