/// Optimizers and whole training steps against PyTorch (reference.py wrote reference.json).

#include <doctest/doctest.h>

#include "app/scenario/schema.h"
#include "sim/train/trainer.h"
#include "tests/sim/model/model_reference.h"

namespace moelab::reference_test {
namespace {

const Json& reference() {
  static const Json json = read_json_file(MOELAB_TEST_DATA "/sim/train/reference.json");
  return json;
}

TEST_CASE("optimizers take PyTorch's steps") {
  for (const Json& item : reference().at("optimizers")) {
    CAPTURE(item.at("name").get<std::string>());
    const TrainingRule rule = resolve_options<TrainingRule>(item.at("optimizer"), "optimizer");
    AlignedVector<double> parameters, gradient;
    const std::vector<double> start = numbers_of(item.at("start"));
    parameters.assign(start.begin(), start.end());
    const std::unique_ptr<Optimizer<double>> optimizer = make_optimizer<double>(rule, parameters.size());
    for (std::size_t step = 0; step < item.at("gradients").size(); ++step) {
      const std::vector<double> given = numbers_of(item.at("gradients")[step]);
      gradient.assign(given.begin(), given.end());
      optimizer->step(item.at("lr"), item.at("weight_decay"), gradient.data(), parameters.data());
      std::vector<double> after(parameters.begin(), parameters.end());
      CHECK(misses(after, numbers_of(item.at("after")[step])) == 0);
      after[7] *= 1 + 1e-10;
      CHECK(misses(after, numbers_of(item.at("after")[step])) == 1);
    }
  }
}

TEST_CASE("a training step has PyTorch's loss, gradients and parameters") {
  for (const Json& item : reference().at("steps")) {
    CAPTURE(item.at("name").get<std::string>());
    const TrainOptions options = resolve_options<TrainOptions>(item.at("train"), "train");
    const int rows = static_cast<int>(item.at("x").size());
    const Layout layout{.input_dim = static_cast<int>(item.at("x")[0].size()),
                        .output_dim = static_cast<int>(item.at("y")[0].size())};
    const TrainingSet<double> data{rows, numbers_of(item.at("x")), numbers_of(item.at("y"))};
    const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
    const Objective<double> objective{*loss};
    Model<double> model(resolve_options<ModelOptions>(item.at("model"), "model"), layout, {});
    Workspace<double> workspace = model.network->make_workspace();
    const ArrayPlaces places = array_places(*model.network);
    set_parameters(model, places, item);
    CHECK(is_near(loss_and_gradient(model, objective, data.x.data(), data.y.data(), rows, workspace),
                  item.at("loss")));
    const auto check = [&](const AlignedVector<double>& buffer, const char* key) {
      for (const auto& [given_name, where] : places) {
        const auto& name = given_name;
        CAPTURE(key);
        CAPTURE(name);
        CHECK(misses(values_at(where, buffer), numbers_of(item.at(key).at(name))) == 0);
      }
    };
    check(workspace.gradient, "gradients");
    // The whole set is one batch, in random order: the step is the same up to rounding.
    train(model, objective, data, options, {1, 0}, {}, workspace);
    check(model.parameters, "after");
  }
}

}  // namespace
}  // namespace moelab::reference_test
