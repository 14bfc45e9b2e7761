/// The examples of docs/extending.md, registered before a test runs: tests that go through a table go through
/// them too.

#include "docs/example/distance_router.cpp"
#include "docs/example/entropy_loss.cpp"
#include "docs/example/gain_expert.cpp"
#include "docs/example/rings_generator.cpp"
#include "docs/example/sharpened_gating.cpp"

namespace moelab {
namespace {

[[maybe_unused]] const bool kRegistered = [] {
  add_router_kind(distance_router());
  add_auxiliary_loss_kind(entropy_loss());
  add_expert_kind(gain_expert());
  add_generator_kind(rings_generator());
  add_gating_kind(sharpened_gating());
  return true;
}();

}  // namespace
}  // namespace moelab
