/// The CNN router within a mixture against PyTorch (cnn_reference.py wrote cnn_reference.json).

#include <doctest/doctest.h>

#include "tests/sim/model/example.h"
#include "tests/sim/reference_numbers.h"

namespace moelab {
namespace {

TEST_CASE("a mixture with a CNN router has PyTorch's probabilities, loss and gradients") {
  static const Json reference = read_json_file(MOELAB_TEST_DATA "/sim/model/cnn_reference.json");
  for (const Json& item : reference.at("cases")) {
    CAPTURE(item.at("name").get<std::string>());
    const int rows = static_cast<int>(item.at("x").size());
    const Layout layout{.input_dim = static_cast<int>(item.at("x")[0].size()),
                        .output_dim = static_cast<int>(item.at("y")[0].size()),
                        .image = {item.at("image")[0], item.at("image")[1], item.at("image")[2]}};
    const Json spec = resolve(model_shape(), item.at("model"), "model");
    const std::vector<double> x = numbers_of(item.at("x")), y = numbers_of(item.at("y"));
    const ArrayPlaces places = array_places(spec, layout);
    REQUIRE(places.size() == item.at("before").size());

    Model<double> model(spec, layout, 0.0);
    for (const auto& [name, where] : places) {
      const std::vector<double> before = numbers_of(item.at("before").at(name));
      REQUIRE(before.size() == where.size());
      for (std::size_t i = 0; i < where.size(); ++i) model.parameters()[where[i]] = before[i];
    }
    std::vector<double> probabilities(static_cast<std::size_t>(rows * model.experts()));
    model.route(x.data(), rows, probabilities.data());
    CHECK(misses(probabilities, numbers_of(item.at("probabilities"))) == 0);
    const double loss = model.loss_and_gradient(x.data(), y.data(), rows, *make_task_loss<double>("mse"));
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
    for (const NamedArray<double>& array : model.arrays()) {
      if (array.name != "router_weight_1") continue;
      const std::int64_t out = spec.at("router").at("channels")[0];
      CHECK(array.shape == std::vector<std::int64_t>{out, layout.image.channels, 3, 3});
    }
  }
}

}  // namespace
}  // namespace moelab
