/// The examples of docs/extending.md, registered before a test runs: tests that go through a table go through
/// them too.

#include "docs/example/distance_router.cpp"
#include "docs/example/entropy_loss.cpp"
#include "docs/example/gain_expert.cpp"
#include "docs/example/gated_recurrence_mixer.cpp"
#include "docs/example/not_above_operator.cpp"
#include "docs/example/rings_generator.cpp"
#include "docs/example/selectivity_metrics.cpp"
#include "docs/example/sharpened_gating.cpp"

namespace moelab {
namespace {

const Extended<RouterAxis> kRouters({distance_router()});
const Extended<AuxiliaryLossAxis> kAuxiliaryLosses({entropy_loss()});
const Extended<ExpertAxis> kExperts({gain_expert()});
const Extended<GeneratorAxis> kGenerators({rings_generator()});
const Extended<MixerAxis> kMixers({gated_recurrence_mixer()});
const Extended<GatingAxis> kGatings({sharpened_gating()});
const Extended<MetricAxis> kMetrics({selectivity_metrics()});
const Extended<ClaimAxis> kOperators({not_above_operator()});

}  // namespace
}  // namespace moelab
