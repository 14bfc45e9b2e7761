#pragma once

/// Models against stored numbers of another implementation.

#include "tests/sim/model/example.h"
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
    for (std::size_t i = 0; i < where.size(); ++i) model.parameters()[where[i]] = before[i];
  }
}

/// Checks the routing probabilities, the loss and the gradients of a stored case of `spec`, and that a
/// gradient with one entry off would not pass. The model is left with the case's parameters.
inline void check_reference_case(Model<double>& model, const Json& spec, const Json& item) {
  const Layout& layout = model.layout();
  const std::vector<double> x = numbers_of(item.at("x")), y = numbers_of(item.at("y"));
  const int samples = static_cast<int>(item.at("x").size());
  const ArrayPlaces places = array_places(spec, layout);
  set_parameters(model, places, item);
  std::vector<double> probabilities(static_cast<std::size_t>(samples * layout.tokens * model.experts()));
  model.route(x.data(), samples, probabilities.data());
  CHECK(misses(probabilities, numbers_of(item.at("probabilities"))) == 0);
  const double loss = model.loss_and_gradient(x.data(), y.data(), samples, *make_task_loss<double>("mse"));
  CHECK(misses({loss}, {item.at("loss")}) == 0);
  for (const auto& [name, where] : places) {
    CAPTURE(name);
    const std::vector<double> expected = numbers_of(item.at("gradients").at(name));
    std::vector<double> values = values_at(where, model.gradient());
    CHECK(misses(values, expected) == 0);
    values.front() += 1e-9;
    CHECK(misses(values, expected) == 1);
  }
}

}  // namespace moelab
