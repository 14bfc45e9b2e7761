/// What is not finite has no metrics: of every group, whatever else is measured.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>

#include "analysis/metrics/metric_groups.h"
#include "app/run/cell.h"
#include "app/run/measurement.h"
#include "app/scenario/schema.h"

namespace moelab::not_finite_test {
namespace {

using Limits = std::numeric_limits<double>;

constexpr int kTrain = 40, kTest = 30;

DataOptions data_from(const char* text) {
  return resolve_options<DataOptions>(Json::parse(text), "data");
}

DataOptions sequences() {
  return data_from(R"({"generator": "token_topics", "topics": 4, "dim": 5, "tokens": 4,
      "target": {"kind": "linear", "dim": 2}, "train_samples": 40, "test_samples": 30})");
}

DataOptions replaced_sequences() {
  DataOptions data = sequences();
  data.contamination = resolve_options<ContaminationOptions>({{"kind", "replaced"}, {"share", 0.2}}, "");
  return data;
}

DataOptions tree() {
  return data_from(R"({"generator": "gaussian_mixture", "dim": 5, "target": {"kind": "linear", "dim": 2},
      "hierarchy": {"depth": 2, "branching": 2, "std_per_level": 1}, "train_samples": 40, "test_samples": 30})");
}

DataOptions swapped_language() {
  return data_from(R"({"generator": "synthetic_language", "domains": 2, "vocabulary": 6, "tokens": 4,
      "contamination": {"kind": "swapped", "share": 0.3}, "train_samples": 40, "test_samples": 30})");
}

DataOptions language_with_facts() {
  return data_from(R"({"generator": "synthetic_language", "domains": 2, "vocabulary": 6, "tokens": 4,
      "facts": {"pairs": 2, "rate": 0.3}, "train_samples": 40, "test_samples": 30})");
}

DataOptions regression() {
  return data_from(R"({"generator": "moe_regression", "dim": 2, "router": "linear", "expert": "linear",
      "measure": {"kind": "drawn", "components": 2}, "train_samples": 40, "test_samples": 30})");
}

DataOptions patches() {
  return data_from(R"({"generator": "patches", "dim": 8, "patches": 4,
      "law": {"kind": "feature_noise", "clusters": 3}, "train_samples": 40, "test_samples": 30})");
}

DataOptions single_index() {
  return data_from(R"({"generator": "single_index", "clusters": 2, "dim": 6, "train_samples": 40,
      "test_samples": 30})");
}

ModelOptions model_from(const char* text) {
  return resolve_options<ModelOptions>(Json::parse(text), "model");
}

ModelOptions stack() {
  return model_from(R"({"layers": 2, "experts": 4, "router": "linear",
      "expert": {"kind": "mlp", "depth": 2, "width": 6},
      "gating": {"train": {"kind": "topk", "k": 2}, "eval": {"kind": "topk", "k": 2}}})");
}

ModelOptions weighing_stack() {
  return model_from(R"({"layers": 2, "experts": 4, "router": "adaptive_clustering",
      "expert": {"kind": "mlp", "depth": 2, "width": 6}})");
}

ModelOptions transformer() {
  return model_from(R"({"kind": "transformer", "width": 4, "layers": 2, "heads": 2, "feed_forward": 4,
      "moe_layers": [1], "experts": 4, "router": "linear",
      "gating": {"train": {"kind": "topk", "k": 2}, "eval": {"kind": "topk", "k": 2}}})");
}

ModelOptions filters() {
  return model_from(R"({"experts": 4, "router": "linear", "expert": {"kind": "filters", "filters": 2},
      "gating": {"train": {"kind": "topk", "k": 2}, "eval": {"kind": "topk", "k": 2}}})");
}

ModelOptions neurons() {
  return model_from(R"({"experts": 4, "router": "linear", "expert": {"kind": "neurons", "width": 2}})");
}

ModelOptions ridge() {
  return model_from(R"({"experts": 4, "router": {"kind": "linear", "bias": true}, "expert": "linear"})");
}

/// A model before its training by population gradients, with its data.
struct Example {
  CellOptions cell;
  Experiment<double> experiment;
  Dataset train, test;

  Example(const ModelOptions& model, const DataOptions& data)
      : cell(population_cell(model, data)),
        experiment(cell.experiment, cell.seeds),
        train(draw_set(experiment.problem(), cell.seeds, Purpose::train_data, kTrain)),
        test(draw_set(experiment.problem(), cell.seeds, Purpose::test_data, kTest)) {}

  static CellOptions population_cell(const ModelOptions& model, DataOptions data) {
    data.train_samples.reset();
    CellOptions cell{{data, model, {}, {}}, {}, {}, {}, {3, 1}};
    if (data.entry().token_ids) cell.experiment.loss.task = "cross_entropy";
    TrainOptions& train = cell.experiment.train;
    train.gradient = TrainOptions::Gradient::population;
    train.precision = TrainOptions::Precision::in_double;
    train.points = 16;
    train.lr = 0.05;
    train.steps = 6;
    return cell;
  }

  CellOptions with(const std::string& group) const {
    CellOptions with = cell;
    with.metrics = {MetricOptions::named(group)};
    return with;
  }

  Moment<double> moment(const Model<double>& model) {
    return {model, experiment.objective(), experiment.workspace(), 0};
  }
};

std::vector<std::unique_ptr<Example>> examples() {
  std::vector<std::unique_ptr<Example>> all;
  all.push_back(std::make_unique<Example>(stack(), sequences()));
  all.push_back(std::make_unique<Example>(weighing_stack(), replaced_sequences()));
  all.push_back(std::make_unique<Example>(ridge(), regression()));
  all.push_back(std::make_unique<Example>(ridge(), tree()));
  all.push_back(std::make_unique<Example>(transformer(), swapped_language()));
  all.push_back(std::make_unique<Example>(transformer(), language_with_facts()));
  all.push_back(std::make_unique<Example>(filters(), patches()));
  all.push_back(std::make_unique<Example>(neurons(), single_index()));
  return all;
}

/// Groups that a cell measures, and not from its trace, its end, or the rounds of its training.
std::set<std::string> measured_groups() {
  std::set<std::string> names;
  for (const MetricGroup& group : metric_groups()) {
    const bool at_end = std::ranges::find(group.needs, &needs::last_step) != group.needs.end();
    const bool of_rounds = group.name == "continual";
    if ((group.make_row_meter || group.make_model_meter) && !at_end && !of_rounds) names.insert(group.name);
  }
  return names;
}

/// The values that compare no step with the one before.
MeasuredValues of_one_step(MeasuredValues values) {
  std::erase_if(values, [](const auto& value) {
    const std::vector<const Need*> all = needs_of(value.first.metric);
    return std::ranges::any_of(all, [](const Need* need) {
      return need == &needs::step_before || need == &needs::probabilities_before;
    });
  });
  return values;
}

/// A short run in float by sample gradients.
CellOptions sample_cell(double rate, int steps) {
  CellOptions cell{{sequences(), stack(), {}, {}}, {}, {"weights", "routing"}, {}, {3, 1}};
  TrainOptions& train = cell.experiment.train;
  train.lr = rate;
  train.steps = steps;
  train.record_every = 1;
  train.batch_size = 8;
  return cell;
}

CellOptions with_all_groups(CellOptions cell) {
  for (const MetricGroup& group : metric_groups()) cell.metrics.push_back(MetricOptions::named(group.name));
  return cell;
}

DataOptions with_noise(DataOptions data, const char* deviation) {
  data.contamination =
      resolve_options<ContaminationOptions>({{"kind", "noise"}, {"std", Json::parse(deviation)}}, "");
  return data;
}

CellResult run(const CellOptions& cell) {
  return run_experiment(cell, [](double) { return false; });
}

/// Noise beyond what float holds, and within it.
constexpr const char *kHuge = "1e40", *kMild = "0.5";

}  // namespace

TEST_CASE("not finite: a parameter leaves no group a metric, and the next step is not held against it") {
  std::set<std::string> seen;
  for (const std::unique_ptr<Example>& example : examples()) {
    const Model<double>& model = example->experiment.model();
    for (const std::string& group : measured_groups()) {
      CAPTURE(group);
      const CellOptions cell = example->with(group);
      Measurement<double> measurement(cell, cell.experiment.data, example->experiment.problem(),
                                      &example->train, example->test);
      measurement.measure(example->moment(model));
      const MeasuredValues before = measurement.measure(example->moment(model));  // fluctuation needs two
      CHECK(measurement.not_finite().empty());
      if (!before.empty()) seen.insert(group);
      for (const ParameterGroup& part : model.network->groups()) {
        for (const double value : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
          Model<double> broken = model;
          broken.parameters[part.begin] = value;
          CHECK(measurement.measure(example->moment(broken)).empty());
          CHECK(measurement.not_finite() == "parameters");
        }
      }
      const MeasuredValues after = measurement.measure(example->moment(model));
      CHECK(measurement.not_finite().empty());
      CHECK(after == of_one_step(before));
    }
  }
  CHECK(seen == measured_groups());
}

TEST_CASE("not finite: probabilities leave no group a metric, though every gate of them is left out") {
  Example example(stack(), sequences());
  Model<double> model = example.experiment.model();
  const Network<double>& network = *model.network;
  const auto router = std::find_if(network.groups().begin(), network.groups().end(), [](const auto& part) {
    return part.role == ParameterGroup::Role::router;
  });
  REQUIRE(router != network.groups().end());
  // Finite weights of the first coordinate, whose scores are infinite where it is above 1.1 or below −1.1.
  for (std::size_t e = 0; e < 4; ++e) model.parameters[router->begin + e] = e % 2 == 0 ? 1.7e308 : -1.7e308;
  for (const std::string& group : measured_groups()) {
    CAPTURE(group);
    const CellOptions cell = example.with(group);
    Measurement<double> measurement(cell, cell.experiment.data, example.experiment.problem(), &example.train,
                                    example.test);
    CHECK(measurement.measure(example.moment(model)).empty());
    CHECK(measurement.not_finite().starts_with("outputs on the "));
  }
}

TEST_CASE("not finite: inputs or losses leave no group a metric of that test set") {
  for (const std::unique_ptr<Example>& example : examples()) {
    if (example->cell.experiment.data.entry().token_ids) continue;  // ids are no numbers
    // Finite inputs, outputs whose squares are not.
    for (const double value : {Limits::quiet_NaN(), Limits::infinity(), 1e200}) {
      CAPTURE(value);
      Dataset test = example->test;
      test.x.row(3).setConstant(value);
      for (const std::string& group : measured_groups()) {
        CAPTURE(group);
        const CellOptions cell = example->with(group);
        Measurement<double> measurement(cell, cell.experiment.data, example->experiment.problem(), nullptr,
                                        test);
        CHECK(measurement.measure(example->moment(example->experiment.model())).empty());
        CHECK_FALSE(measurement.not_finite().empty());
        CHECK((measurement.not_finite() == "inputs of the test data") == !std::isfinite(value));
      }
    }
  }
}

/// The group that checks predictions, at the last record alone.
MetricOptions task_at_last() {
  MetricOptions task = MetricOptions::named("task");
  task.records = MetricOptions::Records::last;
  return task;
}

TEST_CASE("not finite: an evaluation is empty alone") {
  CellOptions alone = with_all_groups(sample_cell(0.05, 3));
  SUBCASE("predictions are checked at every record") {}
  SUBCASE("predictions are checked at the last record") {
    std::replace_if(
        alone.metrics.begin(), alone.metrics.end(),
        [](const MetricOptions& group) { return group.chosen() == "task"; }, task_at_last());
  }
  CellOptions evaluated = alone;
  evaluated.evaluations = {{"huge", with_noise(sequences(), kHuge)},
                           {"mild", with_noise(sequences(), kMild)}};
  const CellResult plain = run(alone), both = run(evaluated);
  REQUIRE_MESSAGE(plain.state == CellResult::State::done, plain.message);
  REQUIRE_MESSAGE(both.state == CellResult::State::done, both.message);
  MetricValues own;
  std::size_t mild = 0;
  for (const auto& [key, value] : both.metrics) {
    const auto& name = key;
    CHECK_MESSAGE(!name.starts_with("huge."), name);
    CHECK_MESSAGE(std::isfinite(value), name);
    mild += name.starts_with("mild.");
    if (name.find('.') == std::string::npos) own[name] = value;
  }
  CHECK(mild > 20);
  CHECK(own == plain.metrics);
}

TEST_CASE("not finite: predictions on the cell's own data are divergence, whatever is measured") {
  CellOptions cell = sample_cell(0.05, 3);
  cell.experiment.data = with_noise(sequences(), kHuge);
  cell.evaluations = {{"clean", sequences()}};
  CellOptions overflowing = sample_cell(1e30, 1);  // parameters that float holds, outputs that it does not
  std::vector<CellOptions> cells = {cell, with_all_groups(cell), overflowing, with_all_groups(overflowing)};
  for (const std::string& group : measured_groups()) {
    for (const CellOptions& base : {cell, overflowing}) {
      cells.push_back(base);
      cells.back().metrics = {MetricOptions::named(group)};
      if (group == "task") continue;
      cells.push_back(base);
      cells.back().metrics = {task_at_last(), MetricOptions::named(group)};
    }
  }
  for (const CellOptions& measured : cells) {
    CAPTURE(measured.metrics.size());
    const CellResult result = run(measured);
    CHECK(result.state == CellResult::State::diverged);
    CHECK_MESSAGE(result.message.find("data not finite after ") != std::string::npos, result.message);
    CHECK(result.metrics.empty());
    CHECK(result.arrays.empty());
    REQUIRE_FALSE(result.trace.empty());
    for (const auto& [key, value] : result.trace.back().metrics) {
      const auto& name = key;
      // What training cost is no measure of the model.
      CHECK_MESSAGE((name.starts_with("clean.") || group_of_metric(name) == "training"), name);
      CHECK_MESSAGE(std::isfinite(value), name);
    }
  }
}

}  // namespace moelab::not_finite_test
