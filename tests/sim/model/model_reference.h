#pragma once

/// Models against stored numbers of another implementation.

#include "app/scenario/schema.h"
#include "tests/sim/model/example_model.h"
#include "tests/sim/reference_numbers.h"

namespace moelab {

/// The values at `places` of one of a model's flat buffers.
inline std::vector<double> values_at(const std::vector<std::size_t>& places,
                                     const AlignedVector<double>& buffer) {
  std::vector<double> values;
  for (const std::size_t place : places) values.push_back(buffer[place]);
  return values;
}

/// Gives a model the parameters of a stored case, its field "before".
inline void set_parameters(Model<double>& model, const ArrayPlaces& places, const Json& item) {
  REQUIRE(places.size() == item.at("before").size());
  for (const auto& [name, where] : places) {
    const std::vector<double> before = numbers_of(item.at("before").at(name));
    REQUIRE(before.size() == where.size());
    for (std::size_t i = 0; i < where.size(); ++i) model.parameters[where[i]] = before[i];
  }
}

/// Checks the routing probabilities, the loss and the gradients of a stored case on data of `layout`, and
/// that a gradient with one entry off would not pass. Returns the model with the case's parameters.
inline ExampleModel<double> check_reference_case(const Layout& layout, const Json& item,
                                                 const std::string& task = "mse") {
  ExampleModel<double> model(resolve_options<ModelOptions>(item.at("model"), "model"), layout, {});
  const ArrayPlaces places = array_places(model.network());
  set_parameters(model.model, places, item);
  ExampleBatch<double> batch = model.batch(1, static_cast<int>(item.at("x").size()));
  batch.x = numbers_of(item.at("x"));
  batch.y = numbers_of(item.at("y"));
  if (model.network().has_router())
    CHECK(misses(model.route(batch.x), numbers_of(item.at("probabilities"))) == 0);
  LossOptions options;
  options.task = task;
  const double loss = model.loss_and_gradient(batch, *make_task_loss<double>(options, layout.vocabulary > 0));
  CHECK(misses({loss}, {item.at("loss")}) == 0);
  for (const auto& [given_name, where] : places) {
    const auto& name = given_name;
    CAPTURE(name);
    const std::vector<double> expected = numbers_of(item.at("gradients").at(name));
    std::vector<double> values = values_at(where, model.gradient());
    CHECK(misses(values, expected) == 0);
    values.front() += 1e-9;
    CHECK(misses(values, expected) == 1);
  }
  return model;
}

/// The same of every case of a file on ids of tokens, below tests/sim/model/.
inline void check_token_reference(const std::string& file, const std::string& task) {
  const Json reference = read_json_file(std::string(MOELAB_TEST_DATA "/sim/model/") + file);
  for (const Json& item : reference.at("cases")) {
    CAPTURE(item.at("name").get<std::string>());
    const int tokens = static_cast<int>(item.at("x")[0].size());
    const Layout layout{.input_dim = 1,
                        .output_dim = 1,
                        .sequences = true,
                        .tokens = tokens,
                        .target_per_token = true,
                        .labels = tokens,
                        .vocabulary = reference.at("vocabulary").get<int>()};
    check_reference_case(layout, item, task);
  }
}

}  // namespace moelab
