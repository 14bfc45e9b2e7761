/// Trains the two-layer mixture of two_layers.json with typed options, and prints its test loss. It equals
/// `test_loss_soft` of `moelab run docs/example/program/two_layers.json`.

#include <iostream>

#include "analysis/metrics/task.h"
#include "sim/data/gaussian_mixture.h"
#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "sim/train/experiment.h"

int main() {
  using namespace moelab;
  ExperimentOptions options;
  options.data = GaussianMixtureOptions{
      .clusters = 8, .dim = 6, .mean_std = 2.0, .target = gaussian_mixture::ConstantTarget{.dim = 3}};
  options.data.train_samples = 512;
  options.model.layers = 2;
  options.model.experts = 4;
  options.model.router = LinearRouterOptions{.init_scale = 2.0};
  options.model.expert = MlpExpertOptions{.depth = 2, .width = 8};
  options.train.optimizer = AdamOptions{};
  options.train.lr = PerGroup(0.003, 0.01);
  options.train.batch_size = 64;
  options.train.steps = 300;

  const Seeds seeds = {1, 0};
  Experiment<float> experiment(options, seeds);
  experiment.train({[](std::int64_t) {}, [](double) { return false; }});

  const Dataset test = draw_set(experiment.problem(), seeds, Purpose::test_data, options.data.test_samples);
  const MatrixOf<float> x = test.x.cast<float>();
  MatrixOf<float> f(test.y.rows(), test.y.cols());
  const Model<float>& model = experiment.model();
  predict(model, model.network->soft_gating(), x.data(), static_cast<int>(x.rows()), experiment.workspace(),
          f.data());
  std::cout.precision(17);
  std::cout << "test_loss_soft " << mean_squared_error(f.cast<double>(), test.y) << '\n';
}
