/// Attention and tokens that mix their routing against PyTorch (graph_of_tokens_reference.py wrote
/// graph_of_tokens_reference.json).

#include <doctest/doctest.h>

#include "tests/sim/model/example.h"
#include "tests/sim/reference_numbers.h"

namespace moelab {
namespace {

TEST_CASE("mixtures behind attention have PyTorch's probabilities, loss and gradients") {
  static const Json reference = read_json_file(MOELAB_TEST_DATA "/sim/model/graph_of_tokens_reference.json");
  for (const Json& item : reference.at("cases")) {
    CAPTURE(item.at("name").get<std::string>());
    const Json &x = item.at("x"), &y = item.at("y");
    const int samples = static_cast<int>(x.size());
    const Layout layout{.input_dim = static_cast<int>(x[0][0].size()),
                        .output_dim = static_cast<int>(y[0][0].size()),
                        .sequences = true,
                        .tokens = static_cast<int>(x[0].size()),
                        .target_per_token = true};
    const Json spec = resolve(model_shape(), item.at("model"), "model");
    const std::vector<double> inputs = numbers_of(x), targets = numbers_of(y);
    const ArrayPlaces places = array_places(spec, layout);
    REQUIRE(places.size() == item.at("before").size());

    Model<double> model(spec, layout, 0.0);
    for (const auto& [name, where] : places) {
      const std::vector<double> before = numbers_of(item.at("before").at(name));
      REQUIRE(before.size() == where.size());
      for (std::size_t i = 0; i < where.size(); ++i) model.parameters()[where[i]] = before[i];
    }
    std::vector<double> probabilities(static_cast<std::size_t>(samples * layout.tokens * model.experts()));
    model.route(inputs.data(), samples, probabilities.data());
    CHECK(misses(probabilities, numbers_of(item.at("probabilities"))) == 0);
    const double loss =
        model.loss_and_gradient(inputs.data(), targets.data(), samples, *make_task_loss<double>("mse"));
    CHECK(misses({loss}, {item.at("loss")}) == 0);
    for (const auto& [name, where] : places) {
      CAPTURE(name);
      const std::vector<double> expected = numbers_of(item.at("gradients").at(name));
      std::vector<double> values;
      for (const std::size_t place : where) values.push_back(model.gradient()[place]);
      CHECK(misses(values, expected) == 0);
      values.front() += 1e-9;
      CHECK(misses(values, expected) == 1);
    }
  }
}

}  // namespace
}  // namespace moelab
