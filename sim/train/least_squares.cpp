#include "sim/train/least_squares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "sim/base/error.h"
#include "sim/model/measure_places.h"
#include "sim/train/best_fit.h"
#include "sim/train/fit_starts.h"
#include "sim/train/likelihood_fit.h"
#include "sim/train/sample_loss.h"

namespace moelab {
namespace {

int tries_of(const FitStart& start) {
  const WarmStartOptions* const warm = start.as<WarmStartOptions>();
  return warm ? warm->tries : start.as<ColdStartOptions>()->tries;
}

}  // namespace

bool is_least_squares(const TrainOptions& options) {
  return options.optimizer.as<LeastSquaresOptions>() != nullptr;
}

FitOutcome fit_least_squares(Model<double>& model, const ModelOptions& model_options,
                             const Objective<double>& objective, const TrainingSet<double>& data,
                             const TrainOptions& options, const MixingMeasure* truth, const Seeds& seeds,
                             const TrainCallbacks& callbacks, Workspace<double>& workspace) {
  const LeastSquaresOptions* const optimizer = options.optimizer.as<LeastSquaresOptions>();
  if (!optimizer || !options.steps) {
    throw std::invalid_argument("a least-squares fit needs the optimizer \"lbfgs\" and a number of steps");
  }
  const FitStart start = options.start.value_or(ColdStartOptions{});
  const WarmStartOptions* const warm = start.as<WarmStartOptions>();
  if (warm && !truth)
    throw InvalidOption("train.start", "got \"warm\", needs data of a known mixing measure");
  const double bound = optimizer->bound.value_or(std::numeric_limits<double>::infinity());
  const int evaluations =
      static_cast<int>(std::min<std::int64_t>(*options.steps, std::numeric_limits<int>::max()));
  if (optimizer->likelihood) {
    check_likelihood_fit(model_options, options.start);
    return likelihood_fit({model, model_options, data, *start.as<BestStartOptions>(), *optimizer->likelihood,
                           evaluations, truth, seeds},
                          callbacks);
  }
  SampleLoss loss(model, objective, data, bound, callbacks.progress, workspace);
  if (const BestStartOptions* const best = start.as<BestStartOptions>())
    return best_fit({model, model_options, objective, data, *best, *optimizer, evaluations, truth, seeds},
                    loss, callbacks);
  const Network<double>& network = *model.network;
  const auto begin = [&](int attempt) {
    Engine engine = seeds.stream(Purpose::starts, static_cast<std::uint64_t>(attempt));
    if (warm) {
      const MeasurePlaces places(model_options, network);
      places.write(near_truth(*truth, network.experts(), warm->perturbation, engine), model.parameters);
    } else if (attempt > 0) {
      network.initialize({{engine(), seeds.index}}, model.parameters, model.state);
    }
  };
  FitOutcome outcome;
  std::vector<double> best;
  double least = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < tries_of(start) && !outcome.converged; ++attempt) {
    begin(attempt);
    if (attempt == 0) callbacks.record(0);
    std::vector<double> values = descend(loss, optimizer->memory, evaluations, loss.parameters());
    ++outcome.starts;
    outcome.evaluations = loss.evaluations();
    if (loss.interrupted()) {
      outcome.state = TrainState::interrupted;
      return outcome;
    }
    if (values.empty()) continue;
    const double value = loss.evaluate(values.data(), nullptr);
    outcome.converged = loss.has_converged();
    if (outcome.converged || value < least) {
      least = value;
      best = std::move(values);
    }
  }
  if (best.empty()) {
    outcome.state = TrainState::diverged;
    return outcome;
  }
  loss.set_parameters(best.data());
  callbacks.record(outcome.evaluations);
  return outcome;
}

}  // namespace moelab
