#include "sim/model/router/router.h"

// Adding a router is a new file that defines <name>_router() and a line here.
// clang-format off
#define MOELAB_ROUTERS(entry) \
  entry(linear)               \
  entry(mlp)                  \
  entry(cnn)                  \
  entry(adaptive_clustering)  \
  entry(stable)               \
  entry(cosine)               \
  entry(perturbed_cosine)     \
  entry(similarity_aware)     \
  entry(attention_aware)      \
  entry(sequence_mean)        \
  entry(squared_distance)     \
  entry(nearest_centroid)     \
  entry(two_level)            \
  entry(formula)              \
  entry(hash)                 \
  entry(random)               \
  entry(oracle)
// clang-format on

namespace moelab {

#define MOELAB_DECLARE(name) RouterKind name##_router();
MOELAB_ROUTERS(MOELAB_DECLARE)
#undef MOELAB_DECLARE

namespace {

std::vector<RouterKind>& routers() {
#define MOELAB_ENTRY(name) name##_router(),
  static std::vector<RouterKind> all = {MOELAB_ROUTERS(MOELAB_ENTRY)};
#undef MOELAB_ENTRY
  return all;
}

}  // namespace

const std::vector<RouterKind>& RouterAxis::table() {
  return routers();
}

void add_router_kind(RouterKind kind) {
  routers().push_back(std::move(kind));
}

bool is_trainable(const RouterOptions& options) {
  return options.entry().trainable(options.options());
}

}  // namespace moelab
