#pragma once

/// Fits of mixtures to draws of moe_regression.

#include "sim/model/measure_places.h"
#include "sim/train/least_squares.h"
#include "tests/sim/data/data_of.h"
#include "tests/sim/train/small_runs.h"

namespace moelab {

inline DataOptions regression(Json router, const Json& expert, double noise_std) {
  for (const char* key : {"bias", "trainable"}) router.erase(key);
  return data_of({{"generator", "moe_regression"},
                  {"dim", 2},
                  {"router", router},
                  {"expert", expert},
                  {"noise_std", noise_std},
                  {"measure",
                   {{"kind", "given"},
                    {"gate", {{2, 0}, {-1, 1.5}}},
                    {"bias", {0, 0.3}},
                    {"slope", {{1, -0.5}, {-0.5, 1.5}}},
                    {"intercept", {0.5, -0.5}}}}});
}

/// A problem and a model that is fitted to its samples.
struct Fit {
  Fit(const DataOptions& data_options, ModelOptions model_options, int samples, const Seeds& of)
      : seeds(of),
        problem(draw_problem(data_options, seeds)),
        options(std::move(model_options)),
        model(options, problem->layout(), {seeds}),
        workspace(model.network->make_workspace()) {
    const Dataset set = draw_set(*problem, seeds, Purpose::train_data, samples);
    data = {
        samples, {set.x.data(), set.x.data() + set.x.size()}, {set.y.data(), set.y.data() + set.y.size()}};
  }

  /// Two components in R², with `experts` fitted to them.
  Fit(const Json& router, const Json& expert, int experts, double noise_std, int samples, int seed = 0)
      : Fit(regression(router, expert, noise_std),
            example_model(resolve_options<RouterOptions>(router), resolve_options<ExpertOptions>(expert),
                          SoftGatingOptions{}, experts),
            samples, {5, static_cast<std::uint64_t>(seed)}) {}

  FitOutcome run(const FitStart& start, int steps = 3000) {
    TrainOptions train;
    train.optimizer = LeastSquaresOptions{};
    train.steps = steps;
    train.start = start;
    const TrainCallbacks callbacks = {[&](std::int64_t step) { recorded.push_back(step); },
                                      [&](double) { return ++calls > stop_after; }};
    return fit_least_squares(model, options, objective, data, train, problem->true_measure(), seeds,
                             callbacks, workspace);
  }
  double loss() {
    return loss_and_gradient(model, objective, data.x.data(), data.y.data(), data.rows, workspace);
  }
  /// The largest error of f over the sample, by the gates that were fitted.
  double error() {
    const Matrix x = MatrixView(data.x.data(), data.rows, problem->layout().input_dim);
    Matrix fitted(data.rows, 1);
    predict(model, model.network->train_gating(), data.x.data(), data.rows, workspace, fitted.data());
    return (fitted - *problem->bayes_prediction(x)).cwiseAbs().maxCoeff();
  }
  MeasurePlaces places() const { return {options, *model.network}; }

  Seeds seeds;
  std::unique_ptr<Problem> problem;
  ModelOptions options;
  Model<double> model;
  Workspace<double> workspace;
  std::unique_ptr<TaskLoss<double>> task = make_task_loss<double>("mse");
  Objective<double> objective{*task};
  TrainingSet<double> data;
  std::vector<std::int64_t> recorded;
  int calls = 0, stop_after = 1 << 30;
};

inline const Json kPerturbed = {{"kind", "perturbed_cosine"}, {"tau1", 0.5}, {"tau2", 0.5}};
inline const Json kSquare = {{"kind", "polynomial"}, {"power", 2}};
inline const FitStart kWarm = WarmStartOptions{.perturbation = 0.1, .tries = 2};

}  // namespace moelab
