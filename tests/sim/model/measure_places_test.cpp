#include "sim/model/measure_places.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/sim/data/data_of.h"
#include "tests/sim/model/example_model.h"

namespace moelab::measure_places_test {
namespace {

/// The model and the data code sum the same dozen terms of order one to ten in another order.
constexpr double kRounding = 1e-12;

constexpr int kInputs = 3, kExperts = 4;
const Layout kLayout{.input_dim = kInputs, .output_dim = 1};

ModelOptions measure_model(const Json& router, const Json& expert) {
  return example_model(resolve_options<RouterOptions>(router), resolve_options<ExpertOptions>(expert),
                       SoftGatingOptions{}, kExperts);
}

TEST_CASE("a model with the parameters of a measure computes its regression function") {
  for (const Json& router : {Json{{"kind", "linear"}, {"bias", true}}, Json{{"kind", "cosine"}},
                             Json{{"kind", "perturbed_cosine"}, {"tau1", 0.3}, {"tau2", 0.7}}}) {
    for (const Json& expert :
         {Json{{"kind", "linear"}}, Json{{"kind", "polynomial"}, {"power", 3}}, Json{{"kind", "relu"}}}) {
      CAPTURE(router.dump());
      CAPTURE(expert.dump());
      Json data_router = router;
      data_router.erase("bias");
      const std::unique_ptr<Problem> problem =
          draw_problem(data_of({{"generator", "moe_regression"},
                                {"dim", kInputs},
                                {"router", data_router},
                                {"expert", expert},
                                {"measure", {{"kind", "drawn"}, {"components", kExperts}, {"bias_std", 1}}}}),
                       {3, 0});
      const ModelOptions options = measure_model(router, expert);
      ExampleModel<double> model(options, kLayout, {});
      const MeasurePlaces places(options, model.network());
      const MixingMeasure& truth = *problem->true_measure();
      places.write(truth, model.parameters());
      const MixingMeasure back = places.read(model.parameters());
      CHECK(back.form == truth.form);
      CHECK(back.gate == truth.gate);
      CHECK(back.bias == truth.bias);
      CHECK(back.slope == truth.slope);
      CHECK(back.intercept == truth.intercept);

      const Matrix x = draw_set(*problem, {3, 0}, Purpose::test_data, 50).x;
      Matrix outputs(x.rows(), 1);
      const auto difference = [&] {
        predict(model.model, model.network().soft_gating(), x.data(), static_cast<int>(x.rows()),
                model.workspace, outputs.data());
        return (outputs - *problem->bayes_prediction(x)).cwiseAbs().maxCoeff();
      };
      CHECK(difference() <= kRounding);
      MixingMeasure other = truth;
      other.bias[1] += 0.01;
      places.write(other, model.parameters());
      CHECK(difference() > kRounding);
    }
  }
}

TEST_CASE("models without a mixing measure are refused") {
  const Json linear = {{"kind", "linear"}}, biased = {{"kind", "linear"}, {"bias", true}};
  const auto refused_at = [](const ModelOptions& options) {
    try {
      MeasurePlaces places(options, Network<double>(options, kLayout));
    } catch (const InvalidOption& error) {
      return error.path();
    }
    return std::string();
  };
  CHECK(refused_at(measure_model(biased, linear)).empty());
  CHECK(refused_at(measure_model(linear, linear)) == "model.router.bias");
  CHECK(refused_at(measure_model({{"kind", "mlp"}}, linear)) == "model");
  CHECK(refused_at(measure_model(biased, {{"kind", "mlp"}})) == "model");
}

}  // namespace
}  // namespace moelab::measure_places_test
