#include "sim/train/optimizer.h"

#include <doctest/doctest.h>

#include "sim/base/arrays.h"
#include "sim/base/kernels/kernels.h"
#include "sim/base/random.h"

namespace moelab::optimizer_test {
namespace {

constexpr std::size_t kCount = 3 * kernels::kPadding;

AlignedVector<float> normal_values(std::uint64_t seed) {
  Engine engine(seed);
  AlignedVector<float> values(kCount);
  for (float& value : values) value = static_cast<float>(draw_normal(engine));
  return values;
}

TEST_CASE("every optimizer descends a bowl, to the same bits when it is run again") {
  for (const TrainingRuleKind& kind : TrainingRuleAxis::table()) {
    CAPTURE(kind.name);
    CHECK((kind.make.in_float == nullptr) == (kind.make.in_double == nullptr));
    const TrainingRule rule = TrainingRule::example(kind.name);
    if (!kind.make) {
      CHECK_THROWS_AS(make_optimizer<float>(rule, kCount), std::invalid_argument);
      continue;
    }
    const auto descended = [&] {
      const std::unique_ptr<Optimizer<float>> optimizer = make_optimizer<float>(rule, kCount);
      AlignedVector<float> parameters = normal_values(1);
      // ∂/∂w ‖w‖²/2 = w.
      for (int step = 0; step < 500; ++step) {
        optimizer->step(0.02, 0, AlignedVector<float>(parameters).data(), parameters.data());
      }
      return parameters;
    };
    const AlignedVector<float> start = normal_values(1), end = descended();
    double before = 0, after = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      before += static_cast<double>(start[i]) * static_cast<double>(start[i]);
      after += static_cast<double>(end[i]) * static_cast<double>(end[i]);
    }
    CHECK(after < 1e-3 * before);
    CHECK(end == descended());
  }
}

TEST_CASE("optimizers that may defer reach the same bits by parts and idle steps") {
  constexpr int kSteps = 200;
  for (const TrainingRuleKind& kind : TrainingRuleAxis::table()) {
    CAPTURE(kind.name);
    if (!kind.make) continue;
    const TrainingRule rule = TrainingRule::example(kind.name);
    const std::unique_ptr<Optimizer<float>> every = make_optimizer<float>(rule, kCount),
                                            some = make_optimizer<float>(rule, kCount);
    if (!some->can_defer()) {
      AlignedVector<float> unused(kCount);
      CHECK_THROWS_AS(some->step_part(0, 0, unused.data(), unused.data(), 0, kCount), std::logic_error);
      continue;
    }
    // The middle part has a gradient at the first step alone, the others at every step.
    const std::size_t part = kernels::kPadding;
    AlignedVector<float> expected = normal_values(1), parameters = expected, gradient = normal_values(2);
    std::vector<float> rates;
    for (int step = 0; step < kSteps; ++step) {
      const double rate = 0.1 / (1 + step);
      every->step(rate, 0.01, gradient.data(), expected.data());
      some->step_part(rate, 0.01, gradient.data(), parameters.data(), 0, part);
      some->step_part(rate, 0.01, gradient.data() + 2 * part, parameters.data(), 2 * part, part);
      if (step == 0) {
        some->step_part(rate, 0.01, gradient.data() + part, parameters.data(), part, part);
        std::fill_n(gradient.begin() + static_cast<std::ptrdiff_t>(part), part, 0.0f);
      } else {
        rates.push_back(static_cast<float>(rate));
      }
    }
    some->idle_steps(rates.data(), kSteps - 1, 0.01, parameters.data(), part, part);
    CHECK(parameters == expected);
  }
}

}  // namespace
}  // namespace moelab::optimizer_test
