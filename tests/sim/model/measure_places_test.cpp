#include "sim/model/measure_places.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/sim/model/mixture_gates.h"

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

TEST_CASE("a model with the parameters of a measure computes its regression function, by its own gates") {
  for (const MixtureGates& gates : mixture_gates()) {
    for (const Json& expert :
         {Json{{"kind", "linear"}}, Json{{"kind", "polynomial"}, {"power", 3}}, Json{{"kind", "relu"}},
          Json{{"kind", "gelu"}}, Json{{"kind", "sigmoid"}}, Json{{"kind", "gelu"}, {"normalize", "unit"}},
          Json{{"kind", "polynomial"}, {"power", 2}, {"normalize", "unit"}}}) {
      CAPTURE(gates.name);
      CAPTURE(expert.dump());
      const std::unique_ptr<Problem> problem =
          draw_problem(mixture_data(gates, expert, kInputs, kExperts), {3, 0});
      const ModelOptions options = mixture_model(gates, expert, kExperts);
      ExampleModel<double> model(options, kLayout, {});
      const MeasurePlaces places(options, model.network());
      const MixingMeasure& truth = *problem->true_measure();
      places.write(truth, model.parameters());
      const MixingMeasure back = places.read(model.parameters());
      CHECK(back.form == truth.form);
      CHECK(back.gate == truth.gate);
      CHECK(back.bias == truth.bias);
      CHECK((back.slope - truth.slope).cwiseAbs().maxCoeff() <= (truth.form.unit ? 1e-15 : 0));
      CHECK((back.intercept - truth.intercept).cwiseAbs().maxCoeff() <= (truth.form.unit ? 1e-15 : 0));
      CHECK(back.group_gate == truth.group_gate);
      CHECK(back.group_bias == truth.group_bias);
      CHECK(back.shared_slope.isApprox(truth.shared_slope, 1e-15));
      CHECK(back.shared_intercept.isApprox(truth.shared_intercept, 1e-15));
      CHECK(back.log_scale == truth.log_scale);

      const Matrix x = draw_set(*problem, {3, 0}, Purpose::test_data, 50).x;
      Matrix outputs(x.rows(), 1);
      const auto difference = [&] {
        predict(model.model, model.network().train_gating(), x.data(), static_cast<int>(x.rows()),
                model.workspace, outputs.data());
        return (outputs - *problem->bayes_prediction(x)).cwiseAbs().maxCoeff();
      };
      CHECK(difference() <= kRounding);
      MixingMeasure other = truth;
      other.slope(1, 0) += 0.01;
      places.write(other, model.parameters());
      CHECK(difference() > kRounding);
    }
  }
}

TEST_CASE("every parameter of a mixture with a measure is one of the measure's") {
  for (const MixtureGates& gates : mixture_gates()) {
    CAPTURE(gates.name);
    const ModelOptions options = mixture_model(gates, {{"kind", "linear"}}, kExperts);
    ExampleModel<double> model(options, kLayout, {4, 0});
    const AlignedVector<double> before = model.parameters();
    const MeasurePlaces places(options, model.network());
    const MixingMeasure measure = places.read(model.parameters());
    std::fill(model.parameters().begin(), model.parameters().end(), 0.0);
    places.write(measure, model.parameters());
    CHECK(model.parameters() == before);
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
  CHECK(refused_at(measure_model(biased, {{"kind", "sigmoid"}, {"normalize", "unit"}})).empty());
  CHECK(refused_at(measure_model(linear, linear)) == "model.router.bias");
  CHECK(refused_at(measure_model({{"kind", "mlp"}}, linear)) == "model");
  CHECK(refused_at(measure_model(biased, {{"kind", "mlp"}})) == "model");
  CHECK(refused_at(measure_model({{"kind", "two_level"}}, linear)) == "model.router.bias");
  CHECK(refused_at(measure_model({{"kind", "squared_distance"}, {"bias", true}, {"std", 1}}, linear)) ==
        "model");
  const auto gated = [&](const Json& gating) {
    return refused_at(mixture_model({"", {}, biased, gating}, linear, kExperts));
  };
  CHECK(gated({{"kind", "sigmoid"}}).empty());
  CHECK(gated({{"kind", "sigmoid"}, {"k", 2}}) == "model");
  CHECK(gated({{"kind", "topk"}, {"k", 2}, {"renormalize", false}}) == "model");
  CHECK(gated({{"kind", "top1"}}) == "model");
}

}  // namespace
}  // namespace moelab::measure_places_test
