#include "app/run/cell.h"

#include <fmt/format.h>

#include "app/run/measurement.h"
#include "sim/base/error.h"
#include "sim/data/problem.h"
#include "sim/train/trainer.h"

namespace moelab {
namespace {

/// Pairs with a smaller gate are skipped in soft training unless the scenario says otherwise: they move the
/// output by at most 1e-8 of an expert's, below float's resolution. Adam divides gradients by their own size,
/// so there every pair counts.
constexpr double kSkipBelow = 1e-8;

template <class Real>
TrainingSet<Real> training_set(const Dataset& data) {
  TrainingSet<Real> set{static_cast<int>(data.x.rows()), {}, {}};
  set.x.assign(data.x.data(), data.x.data() + data.x.size());
  set.y.assign(data.y.data(), data.y.data() + data.y.size());
  return set;
}

template <class Real>
CellResult run_in(const Json& config, const CellProgress& progress) {
  const Json& data = config.at("data");
  const Json& train_spec = config.at("train");
  const Seeds seeds{config.at("seed").at("root"), config.at("seed").at("index")};
  const std::unique_ptr<Problem> problem = draw_problem(data, seeds);
  Engine train_engine = seeds.stream(Purpose::train_data);
  Engine test_engine = seeds.stream(Purpose::test_data);
  Dataset train_data = problem->draw(train_engine, data.at("train_samples"));
  const Dataset test_data = problem->draw(test_engine, data.at("test_samples"));

  const double skip_below = rescales_gradients(train_spec.at("optimizer")) ? 0.0 : kSkipBelow;
  Model<Real> model(config.at("model"), problem->input_dim(), problem->output_dim(), skip_below);
  model.initialize(seeds);
  const std::unique_ptr<TaskLoss<Real>> loss = make_task_loss<Real>(config.at("loss").at("task"));
  Measurement<Real> measurement(config, seeds, *problem, train_data, test_data);
  const TrainingSet<Real> training = training_set<Real>(train_data);
  train_data = {};  // the largest array of a cell: kept in one precision only

  CellResult result;
  const TrainCallbacks callbacks = {[&](std::int64_t step) {
                                      result.trace.push_back({step, measurement.measure(model)});
                                    },
                                    progress};
  const TrainOutcome outcome = train(model, *loss, training, train_spec, seeds, callbacks);
  if (outcome.state == TrainState::interrupted) {
    result.state = CellResult::State::interrupted;
    return result;
  }
  if (outcome.state == TrainState::diverged) {
    result.state = CellResult::State::diverged;
    result.message = fmt::format("not finite after {} steps", outcome.step);
    return result;
  }
  result.metrics = result.trace.back().metrics;
  result.arrays = measurement.arrays(model);
  return result;
}

}  // namespace

CellResult run_cell(const Cell& cell, const CellProgress& progress) {
  try {
    const bool in_double = cell.config.at("train").at("precision") == "double";
    return in_double ? run_in<double>(cell.config, progress) : run_in<float>(cell.config, progress);
  } catch (const UserError& error) {
    CellResult result;
    result.state = CellResult::State::failed;
    result.message = error.what();
    return result;
  }
}

}  // namespace moelab
