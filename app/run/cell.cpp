#include "app/run/cell.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/run/measurement.h"
#include "sim/base/error.h"
#include "sim/data/problem.h"
#include "sim/train/gradient_error.h"
#include "sim/train/least_squares.h"
#include "sim/train/trainer.h"

namespace moelab {
namespace {

/// Pairs with a smaller gate are skipped in soft training unless the scenario says otherwise: they move the
/// output by at most 1e-8 of an expert's, below float's resolution. Adam divides gradients by their own size,
/// so there every pair counts.
constexpr double kSkipBelow = 1e-8;

/// Samples drawn at a time: a training set is the largest array of a cell, and is kept in one precision only.
constexpr int kDrawnSamples = 4096;

template <class Real>
TrainingSet<Real> draw_training_set(const Problem& problem, const Seeds& seeds, int samples) {
  const Layout layout = problem.layout();
  TrainingSet<Real> set{samples, {}, {}};
  set.x.reserve(static_cast<std::size_t>(samples) * static_cast<std::size_t>(layout.sample_dim()));
  set.y.reserve(static_cast<std::size_t>(samples) * static_cast<std::size_t>(layout.target_dim()));
  Engine engine = seeds.stream(Purpose::train_data);
  for (int first = 0; first < samples; first += kDrawnSamples) {
    const int count = std::min(kDrawnSamples, samples - first);
    const Dataset block = problem.draw(engine, {Purpose::train_data, first, count});
    set.x.insert(set.x.end(), block.x.data(), block.x.data() + block.x.size());
    set.y.insert(set.y.end(), block.y.data(), block.y.data() + block.y.size());
  }
  return set;
}

/// The first `count` rows of the training set, a token a row, (count, d).
Matrix first_rows(const Problem& problem, const Seeds& seeds, int count) {
  const Layout layout = problem.layout();
  const int samples = (count + layout.tokens - 1) / layout.tokens;
  const Dataset data = draw_set(problem, seeds, Purpose::train_data, samples);
  return MatrixView(data.x.data(), samples * layout.tokens, layout.input_dim).topRows(count);
}

template <class Real>
CellResult run_in(const Json& config, const CellProgress& progress) {
  const Json& data = config.at("data");
  const Json& train_spec = config.at("train");
  const Seeds seeds{config.at("seed").at("root"), config.at("seed").at("index")};
  const std::unique_ptr<Problem> problem = draw_problem(data, seeds);
  const bool population = train_spec.at("gradient") == "population";
  const int train_samples = data.value("train_samples", kMeasuredTrainSamples);
  const Dataset test_data = draw_set(*problem, seeds, Purpose::test_data, data.at("test_samples"));

  const double skip_below = rescales_gradients(train_spec.at("optimizer")) ? 0.0 : kSkipBelow;
  Model<Real> model(config.at("model"), problem->layout(), skip_below);
  model.initialize(seeds);
  if (model.has_router() && config.at("model").at("router").value("init", "") == "train_samples") {
    model.start_router_at(first_rows(*problem, seeds, model.experts()));
  }
  const std::unique_ptr<TaskLoss<Real>> loss = make_task_loss<Real>(config.at("loss").at("task"));
  const Dataset train_data =
      draw_set(*problem, seeds, Purpose::train_data, std::min(kMeasuredTrainSamples, train_samples));
  Measurement<Real> measurement(config, seeds, *problem, train_data, test_data);

  CellResult result;
  const auto record = [&](std::int64_t step) {
    MetricValues values = measurement.measure(model);
    if (population && measurement.wants("gradient")) {
      const GradientError error = population_gradient_error(model, *loss, *problem, train_spec, seeds,
                                                            static_cast<std::uint64_t>(step));
      values["population_gradient_norm"] = error.norm;
      values["population_gradient_standard_error"] = error.standard_error;
    }
    result.trace.push_back({step, std::move(values)});
  };
  const TrainCallbacks callbacks = {record, progress};
  const TrainOutcome outcome = [&]() -> TrainOutcome {
    if (population) {
      PopulationBatches<Real> batches(*problem, train_spec, seeds);
      return train(model, *loss, batches, total_steps(train_spec, 0), train_spec, callbacks);
    }
    const TrainingSet<Real> training = draw_training_set<Real>(*problem, seeds, train_samples);
    if constexpr (std::is_same_v<Real, double>) {
      if (is_least_squares(train_spec)) {
        const FitOutcome fit = fit_least_squares(model, config.at("model"), *loss, training, train_spec,
                                                 problem->true_measure(), seeds, callbacks);
        if (fit.state == TrainState::done && measurement.wants("fit")) {
          result.trace.back().metrics.merge(
              MetricValues{{"fit_converged", fit.converged ? 1.0 : 0.0},
                           {"fit_evaluations", static_cast<double>(fit.evaluations)},
                           {"fit_starts", static_cast<double>(fit.starts)}});
        }
        return {fit.state, fit.evaluations};
      }
    }
    return train(model, *loss, training, train_spec, seeds, callbacks);
  }();
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
