/// Free parameters: of mixtures by hand, and of dense networks that match them.

#include <doctest/doctest.h>

#include "sim/model/expert/expert.h"
#include "tests/sim/model/example_model.h"

namespace moelab::parameter_count_test {
namespace {

constexpr int kInputs = 5, kOutputs = 3, kExperts = 4;
const Layout kLayout{.input_dim = kInputs, .output_dim = kOutputs};
const GatingRule kSoft = SoftGatingOptions{};

TEST_CASE("parameter counts by hand") {
  // d = 5, o = 3, E = 4; routers: 5·4; an MLP 5-6-6-4 with biases; on images of 2 × 4 × 4, convolutions to 3
  // × 2 × 2 and 5 × 1 × 1, then an MLP 5-6-4, whose six hidden units the experts read, too; cosines 5·4 + 4;
  // two levels 5·2 + 5·4; the formula of distances 5·4 + 4.
  // Experts: 3; 5·3 + 3, whatever φ; an MLP 5-6-6-3 with biases.
  struct Counts {
    std::string kind;
    std::size_t parameters, per_feature;
  };
  const std::vector<Counts> routers = {{"linear", 20, 0},
                                       {"mlp", 36 + 42 + 28, 0},
                                       {"cnn", 19 * 3 + 28 * 5 + 36 + 28, 6},
                                       {"cosine", 24, 0},
                                       {"perturbed_cosine", 24, 0},
                                       {"squared_distance", 20, 0},
                                       {"two_level", 30, 0},
                                       {"formula", 24, 0},
                                       {"nearest_centroid", 0, 0},
                                       {"hash", 0, 0},
                                       {"random", 0, 0}};
  const std::vector<Counts> experts = {{"constant", 3, 0},    {"linear", 18, 3}, {"mlp", 36 + 42 + 21, 6},
                                       {"polynomial", 18, 3}, {"relu", 18, 3},   {"gelu", 18, 3},
                                       {"sigmoid", 18, 3}};
  for (const Counts& router : routers) {
    for (const Counts& expert : experts) {
      const ModelOptions options = model_of_kinds(router.kind, expert.kind, kSoft, kExperts);
      const Network<double> network(options, with_image(options, kLayout));
      const std::size_t per_expert = expert.parameters + router.per_feature * expert.per_feature;
      CHECK(network.mixture(0).parameters_per_expert() == per_expert);
      CHECK(network.parameter_count() == router.parameters + kExperts * per_expert);
    }
  }
}

TEST_CASE("a dense network of given depth: one matrix at depth 1, the width of least miss above") {
  ModelOptions options = example_model(RouterOptions::example("linear"), LinearExpertOptions{}, kSoft, 32);
  options.kind = DenseOptions{.match = Match::moe, .depth = 1};
  CHECK(Network<double>(options, kLayout).parameter_count() == (kInputs + 1) * kOutputs);
  options.kind = DenseOptions{.match = Match::moe, .depth = 2};
  const MlpExpertOptions given = dense_network(options, kLayout).options().get<MlpExpertOptions>();
  options.kind = DenseOptions{.match = Match::moe};
  const MlpExpertOptions usual = dense_network(options, kLayout).options().get<MlpExpertOptions>();
  CHECK(given.depth == usual.depth);
  CHECK(given.width == usual.width);
}

TEST_CASE("a dense network has one more layer than an expert and the width of least miss") {
  for (const ExpertKind& expert : ExpertAxis::table()) {
    for (const Match match : {Match::expert, Match::moe}) {
      for (const int experts : {1, 7, 64}) {
        CAPTURE(expert.name);
        CAPTURE(static_cast<int>(match));
        CAPTURE(experts);
        ModelOptions options = model_of_kinds("linear", expert.name, kSoft, experts);
        const Network<double> mixture(options, kLayout);
        const std::size_t target =
            match == Match::moe ? mixture.parameter_count() : mixture.mixture(0).parameters_per_expert();
        options.kind = DenseOptions{.match = match};
        const MlpExpertOptions network = dense_network(options, kLayout).options().get<MlpExpertOptions>();
        CHECK(network.depth == expert_depth(options.expert) + 1);
        const auto miss = [&](int width) {
          // d → w → … → w → o with biases.
          const int count =
              (kInputs + 1) * width + (network.depth - 2) * (width + 1) * width + (width + 1) * kOutputs;
          return std::abs(count - static_cast<int>(target));
        };
        for (int other = 1; other < 2000; ++other) REQUIRE(miss(network.width) <= miss(other));
        const Network<double> dense(options, kLayout);
        CHECK_FALSE(dense.has_router());
        CHECK(std::abs(static_cast<int>(dense.parameter_count()) - static_cast<int>(target)) ==
              miss(network.width));
      }
    }
  }
}

}  // namespace
}  // namespace moelab::parameter_count_test
