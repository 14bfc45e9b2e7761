#include <doctest/doctest.h>

#include <cmath>
#include <type_traits>

#include "sim/base/error.h"
#include "sim/data/patches.h"
#include "sim/model/router/routers.h"
#include "sim/train/experiment.h"

namespace moelab::expert_norm_test {
namespace {

constexpr double kRate = 0.01;

ExperimentOptions experiment_with(const ExpertOptions& expert, TrainOptions::ExpertNorm norm) {
  ExperimentOptions options;
  options.data = PatchesOptions{.dim = 8, .patches = 4, .law = patches::FeatureNoise{.clusters = 2}};
  options.data.train_samples = 40;
  options.model.experts = 3;
  options.model.router = LinearRouterOptions{};
  options.model.expert = expert;
  options.loss.task = "cross_entropy";
  options.train.lr = PerGroup(kRate, 0);
  options.train.batch_size = 40;
  options.train.steps = 1;
  options.train.expert_norm = norm;
  options.train.precision = TrainOptions::Precision::in_double;
  return options;
}

/// The step of each expert in each of its arrays, as a norm.
template <class Real = double>
std::vector<std::vector<double>> steps_of(const ExpertOptions& expert, TrainOptions::ExpertNorm norm) {
  ExperimentOptions options = experiment_with(expert, norm);
  if (std::is_same_v<Real, float>) options.train.precision = TrainOptions::Precision::in_float;
  Experiment<Real> experiment(options, {1, 0});
  const auto arrays = [&] { return experiment.model().network->arrays(experiment.model().parameters); };
  const std::vector<NamedArray<Real>> before = arrays();
  CHECK(experiment.train().state == TrainState::done);
  const std::vector<NamedArray<Real>> after = arrays();
  std::vector<std::vector<double>> steps(3);
  for (std::size_t a = 0; a < after.size(); ++a) {
    if (!after[a].name.starts_with("expert_")) continue;
    const std::size_t each = after[a].values.size() / 3;
    for (std::size_t e = 0; e < 3; ++e) {
      double squares = 0;
      for (std::size_t i = e * each; i < (e + 1) * each; ++i)
        squares += std::pow(after[a].values[i] - before[a].values[i], 2);
      steps[e].push_back(std::sqrt(squares));
    }
  }
  return steps;
}

TEST_CASE("a step of each expert has the length of the rate, or its parts add up to it") {
  for (const ExpertOptions& expert : {ExpertOptions(FiltersExpertOptions{.filters = 3, .bias = true}),
                                      ExpertOptions(MlpExpertOptions{.depth = 2, .width = 5})}) {
    for (const std::vector<double>& parts : steps_of(expert, TrainOptions::ExpertNorm::whole)) {
      double squares = 0;
      for (const double part : parts) squares += part * part;
      CHECK(std::sqrt(squares) == doctest::Approx(kRate).epsilon(1e-12));
    }
    for (const std::vector<double>& parts : steps_of(expert, TrainOptions::ExpertNorm::parts)) {
      double sum = 0;
      for (const double part : parts) sum += part;
      CHECK(sum == doctest::Approx(kRate).epsilon(1e-12));
    }
    const std::vector<std::vector<double>> plain = steps_of(expert, TrainOptions::ExpertNorm::none);
    CHECK(std::abs(std::hypot(plain[0][0], plain[0][1]) / kRate - 1) > 1e-3);
  }
}

TEST_CASE("a subnormal gradient gives a step of the same length") {
  // Cubic filters of size 1e-20 have gradients of about 1e-40, and 1e40 is no float.
  const FiltersExpertOptions tiny{.filters = 3, .init_scale = 1e-20};
  for (const std::vector<double>& parts : steps_of<float>(tiny, TrainOptions::ExpertNorm::whole))
    CHECK(parts.at(0) == doctest::Approx(kRate).epsilon(1e-5));
}

TEST_CASE("experts that are interleaved, and further experts, are refused") {
  const auto refused = [](ExperimentOptions options) {
    try {
      check(options);
    } catch (const InvalidOption& error) {
      return error.path();
    }
    return std::string();
  };
  const auto whole = TrainOptions::ExpertNorm::whole;
  CHECK(refused(experiment_with(LinearExpertOptions{}, whole)) == "train.expert_norm");
  CHECK(refused(experiment_with(LinearExpertOptions{}, TrainOptions::ExpertNorm::none)) == "");
  ExperimentOptions shared = experiment_with(FiltersExpertOptions{}, whole);
  CHECK(refused(shared) == "");
  shared.model.shared_experts = 1;
  CHECK(refused(shared) == "train.expert_norm");
}

}  // namespace
}  // namespace moelab::expert_norm_test
