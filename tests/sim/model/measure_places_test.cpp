#include "sim/model/measure_places.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/data/problem.h"
#include "tests/sim/model/example.h"

namespace moelab {
namespace {

/// The model and the data code sum the same dozen terms of order one to ten in another order.
constexpr double kRounding = 1e-12;

constexpr int kInputs = 3, kExperts = 4;
const Layout kLayout{.input_dim = kInputs, .output_dim = 1};
const Gating kSoft{};

Json measure_spec(const Json& router, const Json& expert) {
  return example_model(router, expert, "soft", kExperts);
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
          draw_problem(resolve(data_shape(),
                               {{"generator", "moe_regression"},
                                {"dim", kInputs},
                                {"router", data_router},
                                {"expert", expert},
                                {"measure", {{"kind", "drawn"}, {"components", kExperts}, {"bias_std", 1}}}},
                               "data"),
                       {3, 0});
      const Json spec = measure_spec(router, expert);
      const MeasurePlaces places(spec, kLayout);
      Model<double> model(spec, kLayout, 0.0);
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
        model.predict(x.data(), static_cast<int>(x.rows()), kSoft, outputs.data());
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
  const auto refused_at = [](const Json& spec) {
    try {
      MeasurePlaces places(spec, kLayout);
    } catch (const UserError& error) {
      return error.path();
    }
    return std::string();
  };
  CHECK(refused_at(measure_spec(biased, linear)).empty());
  CHECK(refused_at(measure_spec(linear, linear)) == "model.router.bias");
  CHECK(refused_at(measure_spec({{"kind", "mlp"}}, linear)) == "model");
  CHECK(refused_at(measure_spec(biased, {{"kind", "mlp"}})) == "model");
}

}  // namespace
}  // namespace moelab
