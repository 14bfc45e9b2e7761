#include "sim/train/train_options.h"

#include <doctest/doctest.h>

#include <cmath>

#include "app/scenario/schema.h"
#include "tests/sim/train/small_runs.h"

namespace moelab::train_options_test {
namespace {

TrainOptions train_options(const Json& fields) {
  Json given = {{"lr", 0.05}, {"batch_size", 8}};
  given.update(fields);
  return resolve_options<TrainOptions>(given, "train");
}

TEST_CASE("total_steps counts steps, or batches of all epochs") {
  CHECK(total_steps(train_options({{"steps", 123}}), 1000) == 123);
  CHECK(total_steps(train_options({{"epochs", 3}, {"batch_size", 8}}), 16) == 6);
  CHECK(total_steps(train_options({{"epochs", 3}, {"batch_size", 8}}), 17) == 9);
  CHECK(total_steps(train_options({{"epochs", 3}, {"batch_size", 800}}), 17) == 3);
  CHECK(record_interval(train_options({{"steps", 5}}), 5) == 1);
  CHECK(record_interval(train_options({{"steps", 1000}}), 1000) == 100);
  CHECK(record_interval(train_options({{"steps", 1000}, {"record_every", 7}}), 1000) == 7);
}

TEST_CASE("schedules") {
  const auto factor = [](const ScheduleOptions& options, std::int64_t step, std::int64_t total) {
    return Schedule(options).factor(step, total);
  };
  const ScheduleOptions step = StepScheduleOptions{.every = 10, .factor = 0.5};
  const ScheduleOptions cosine = CosineScheduleOptions{.final_share = 0.2};
  for (const std::int64_t at : {0, 50, 99}) CHECK(factor(ConstantScheduleOptions{}, at, 100) == 1.0);
  CHECK(factor(step, 0, 100) == 1.0);
  CHECK(factor(step, 9, 100) == 1.0);
  CHECK(factor(step, 10, 100) == 0.5);
  CHECK(factor(step, 39, 100) == 0.125);
  CHECK(factor(cosine, 0, 100) == doctest::Approx(1.0).epsilon(1e-15));
  CHECK(factor(cosine, 50, 100) == doctest::Approx(0.6).epsilon(1e-15));
  CHECK(factor(cosine, 25, 100) == doctest::Approx(0.2 + 0.4 * (1 + std::sqrt(0.5))).epsilon(1e-15));
  CHECK(factor(cosine, 100, 100) == doctest::Approx(0.2).epsilon(1e-15));
  const ScheduleOptions warm = CosineScheduleOptions{.final_share = 0.2, .warmup_steps = 4};
  CHECK(factor(warm, 0, 104) == 0.25);
  CHECK(factor(warm, 3, 104) == 1.0);
  for (const std::int64_t later : {0, 25, 50, 100})
    CHECK(factor(warm, later + 4, 104) == factor(cosine, later, 100));
}

TEST_CASE("every schedule gives rates: finite, not negative, the same when asked again") {
  for (const ScheduleKind& kind : ScheduleAxis::table()) {
    CAPTURE(kind.name);
    const Schedule schedule(ScheduleOptions::example(kind.name));
    double largest = 0;
    for (std::int64_t step = 0; step < 100; ++step) {
      const double factor = schedule.factor(step, 100);
      CHECK(std::isfinite(factor));
      CHECK(factor >= 0);
      CHECK(schedule.factor(step, 100) == factor);
      largest = std::max(largest, factor);
    }
    CHECK(largest > 0);
  }
}

TEST_CASE(
    "tiny gates are skipped where updates follow the gradient's size, unless the options say otherwise") {
  const TrainOptions sgd = train_options({{"steps", 1}});
  CHECK(default_skip_below(sgd) == 1e-8);
  CHECK(default_skip_below(train_options({{"steps", 1}, {"optimizer", "adam"}})) == 0);
  CHECK(default_skip_below(train_options({{"steps", 1}, {"optimizer", "adamw"}})) == 0);
  ModelOptions model;
  model.gating.eval = SoftGatingOptions{.skip_below = 0.0};
  const ModelOptions resolved = resolved_for(model, sgd);
  CHECK(resolved.gating.train.as<SoftGatingOptions>()->skip_below == 1e-8);
  CHECK(resolved.gating.eval.as<SoftGatingOptions>()->skip_below == 0.0);
  model.gating.train = TopKGatingOptions{.k = 2};
  CHECK(resolved_for(model, sgd).gating.train.as<TopKGatingOptions>() != nullptr);
}

TrainOptions small_fit() {
  TrainOptions options;
  options.optimizer = LeastSquaresOptions{};
  options.steps = 10;
  options.precision = TrainOptions::Precision::in_double;
  return options;
}

TEST_CASE("what does not go together in training") {
  check(train_options({{"steps", 1}}));
  check_refused(train_options(Json::object()), "train.steps", "missing; needs train.steps or train.epochs");
  check_refused(train_options({{"steps", 1}, {"epochs", 1}}), "train.steps",
                "train.epochs is given, too; needs exactly one of the two");
  check_refused(train_options({{"steps", 1}, {"start", "cold"}}), "train.start",
                "given, but train.optimizer is not 'lbfgs'");
  check_refused(train_options({{"steps", 1}, {"points", 64}}), "train.points",
                "given, but train.gradient is \"sample\"");
  const Json population = {{"gradient", "population"}, {"lr", 0.1}, {"steps", 1}};
  check(resolve_options<TrainOptions>(population));
  TrainOptions options = resolve_options<TrainOptions>(population);
  options.batch_size = 8;
  check_refused(options, "train.batch_size", "given, but train.gradient is \"population\"");
  options = resolve_options<TrainOptions>(population);
  options.steps.reset();
  options.epochs = 1;
  check_refused(options, "train.epochs", "given, but population gradients have no epochs; needs train.steps");
  options = small_fit();
  check(options);
  options.lr = 0.1;
  check_refused(options, "train.lr", "given, but train.optimizer is \"lbfgs\"");
  options = small_fit();
  options.weight_decay.router = 0.1;
  check_refused(options, "train.weight_decay", "given, but train.optimizer is \"lbfgs\"");
  options = small_fit();
  options.schedule = CosineScheduleOptions{};
  check_refused(options, "train.schedule", "given, but train.optimizer is \"lbfgs\"");
  options = small_fit();
  options.precision = TrainOptions::Precision::in_float;
  check_refused(options, "train.precision", "got \"float\"; train.optimizer \"lbfgs\" needs \"double\"");
  options = small_fit();
  options.optimizer = AdamOptions{};
  check_refused(options, "train.lr", "missing; train.optimizer \"adam\" needs it");
}

}  // namespace
}  // namespace moelab::train_options_test
