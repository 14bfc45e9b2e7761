/// Training steps must not allocate: the program's operator new counts here (for every test of this program).

#include <doctest/doctest.h>

#include <atomic>

#include "sim/train/optimizer.h"
#include "tests/replaced_allocation.h"
#include "tests/sim/model/example_model.h"
#include "tests/sim/model/small_transformer.h"

namespace {

std::atomic<long> allocations{0};

}  // namespace

void moelab::before_allocation() {
  ++allocations;
}

namespace moelab::allocation_test {
namespace {

constexpr int kInputs = 5, kOutputs = 3, kExperts = 4, kRows = 8, kTokens = 4, kSteps = 50;

/// Allocations of training steps whose buffers have grown.
long allocations_of_steps(const ModelOptions& options, const Layout& layout,
                          const std::string& task = "mse") {
  LossOptions loss_options;
  loss_options.task = task;
  const std::unique_ptr<TaskLoss<float>> loss = make_task_loss<float>(loss_options, layout.vocabulary > 0);
  ExampleModel<float> model(options, layout, {1, 0});
  const ExampleBatch<float> batch = model.batch(1, kRows);
  long during = 0;
  // Buffers follow the largest need, so the same run is done twice and counted the second time.
  for (const bool counting : {false, true}) {
    model.network().initialize({{1, 0}}, model.model.parameters, model.model.state);
    const std::unique_ptr<Optimizer<float>> optimizer =
        make_optimizer<float>(AdamOptions{}, model.parameters().size());
    const long before = allocations;
    for (int i = 0; i < kSteps; ++i) {
      model.step(batch, *loss, static_cast<double>(i) / kSteps);
      optimizer->step(0.01, 0.0, model.gradient().data(), model.parameters().data());
    }
    if (counting) during = allocations - before;
  }
  return during;
}

TEST_CASE("training steps of every sequence mixer do not allocate once the buffers have grown") {
  for (const MixerKind& mixer : MixerAxis::table()) {
    CAPTURE(mixer.name);
    ModelOptions options = small_transformer::with_mixer(mixer);
    options.expert = ExpertOptions::example(ExpertAxis::table().front().name);
    CHECK(allocations_of_steps(options, small_transformer::kLayout, "cross_entropy") == 0);
  }
}

TEST_CASE("training steps do not allocate once the buffers have grown") {
  const Layout layout{.input_dim = kInputs, .output_dim = kOutputs, .tokens = kTokens, .labels = kTokens};
  for (const RouterKind& router : RouterAxis::table()) {
    // Scores start near zero: every pair is active, and later steps skip some.
    const RouterOptions flat = with_field(RouterOptions::example(router.name), "init_scale", 0.1);
    for (const NamedGating& gating : example_gatings()) {
      CAPTURE(router.name);
      CAPTURE(gating.name);
      for (const ExpertKind& expert : ExpertAxis::table()) {
        CAPTURE(expert.name);
        const ModelOptions options =
            example_model(flat, ExpertOptions::example(expert.name), gating.rule, kExperts);
        CHECK(allocations_of_steps(options, with_image(options, layout)) == 0);
      }
      if (router.needs_image) continue;  // no stack has one
      ModelOptions stack = example_model(flat, ExpertOptions::example(ExpertAxis::table().front().name),
                                         gating.rule, kExperts);
      stack.layers = 2;
      if (gating.rule.entry().selects) stack.gating.balance_rate = 0.01;
      CHECK(allocations_of_steps(stack, layout) == 0);
    }
  }
  const long before = allocations;
  const AlignedVector<float> array(3);
  CHECK(allocations - before == 1);  // the counter sees aligned arrays
}

}  // namespace
}  // namespace moelab::allocation_test
