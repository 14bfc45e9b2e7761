#include "sim/train/ridge_loss.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/sim/base/kernel_levels.h"
#include "tests/sim/train/regression_fit.h"

namespace moelab::ridge_loss_test {
namespace {

const std::function<bool(double)> kGoOn = [](double) { return false; };
constexpr double kTolerance = 1e-11;  // sums in another order

struct Form {
  Json router;
  Json expert = "linear";
  GatingRule gating = SoftGatingOptions{};
  int shared = 0;
};

std::vector<Form> forms() {
  const Json linear = {{"kind", "linear"}, {"bias", true}}, cosine = "cosine";
  const Json distance = {{"kind", "squared_distance"}, {"bias", true}};
  const Json tempered = {
      {"kind", "linear"}, {"bias", true}, {"temperature", {{"start", 1.5}, {"learned", true}}}};
  const Json cube = {{"kind", "polynomial"}, {"power", 3}};
  const auto unit = [](const char* kind) { return Json({{"kind", kind}, {"normalize", "unit"}}); };
  return {{linear},
          {linear, "gelu"},
          {cosine, "sigmoid"},
          {linear, unit("gelu")},
          {kPerturbed, unit("relu")},
          {linear, cube},
          {linear, "relu"},
          {cosine, kSquare},
          {kPerturbed, "relu"},
          {distance, kSquare},
          {tempered, "relu"},
          {linear, "relu", TopKGatingOptions{.k = 2}},
          {kPerturbed, kSquare, SigmoidGatingOptions{}},
          {linear, "linear", SigmoidGatingOptions{.renormalize = true}},
          {linear, "relu", SigmoidGatingOptions{.renormalize = true}, 2}};
}

/// A model of this form with parameters away from its start.
struct Moved : Fit {
  explicit Moved(const Form& form, int samples = 700, bool trainable = true)
      : Fit(regression(kPerturbed, kSquare, 0.3), model_of(form, trainable), samples, {5, 3}) {
    Engine engine(4);
    for (const auto& [name, places] : array_places(*model.network))
      for (const std::size_t place : places) model.parameters[place] += draw_normal(engine);
  }
  static ModelOptions model_of(const Form& form, bool trainable) {
    Json router = form.router.is_string() ? Json({{"kind", form.router}}) : form.router;
    if (!trainable) router["trainable"] = false;
    ModelOptions options = example_model(resolve_options<RouterOptions>(router),
                                         resolve_options<ExpertOptions>(form.expert), form.gating, 3);
    options.shared_experts = form.shared;
    return options;
  }
  SampleLoss loss() {
    return {model, objective, data, std::numeric_limits<double>::infinity(), kGoOn, workspace};
  }
};

struct Derivatives {
  double loss;
  Vector gradient;
  Matrix products;
};

Derivatives derivatives(SampleLoss loss, int rows) {
  loss.use_rows(rows);
  const std::vector<double> parameters = loss.parameters();
  Derivatives found{0, Vector(static_cast<Eigen::Index>(parameters.size())), {}};
  found.loss = loss.evaluate(parameters.data(), found.gradient.data());
  found.products = loss.products(std::min(rows, 50));
  return found;
}

template <class Values>
double difference(const Values& one, const Values& other) {
  return (one - other).norm() / other.norm();
}

}  // namespace

TEST_CASE("the loss, its gradient and the products of output gradients are the network's") {
  for (const Form& form : forms()) {
    for (const bool trainable : {true, false}) {
      CAPTURE(form.router.dump());
      CAPTURE(form.expert.dump());
      CAPTURE(form.gating.chosen());
      Moved moved(form, 700, trainable);
      for (const int rows : {1, 37, 256, 700}) {
        CAPTURE(rows);
        SampleLoss by_kernel = moved.loss();
        by_kernel.use_ridge_loss(moved.options);
        REQUIRE(by_kernel.uses_ridge_loss());
        const Derivatives known = derivatives(moved.loss(), rows);
        const Derivatives found = derivatives(std::move(by_kernel), rows);
        CHECK(found.loss == doctest::Approx(known.loss).epsilon(kTolerance));
        CHECK(difference(found.gradient, known.gradient) <= kTolerance);
        CHECK(difference(found.products, known.products) <= kTolerance);
        // One derivative off by a thousandth must not pass.
        Vector wrong = known.gradient;
        Eigen::Index largest = 0;
        wrong.cwiseAbs().maxCoeff(&largest);
        wrong[largest] *= 1.001;
        CHECK(difference(wrong, known.gradient) > kTolerance);
      }
    }
  }
}

TEST_CASE("every vector level gives the network's values, and those with fused multiply-adds the same bits") {
  for (const Form& form : forms()) {
    Moved moved(form);
    const auto values_of = [](const Derivatives& derivatives) {
      AlignedVector<double> values = {derivatives.loss};
      values.insert(values.end(), derivatives.gradient.begin(), derivatives.gradient.end());
      return values;
    };
    const AlignedVector<double> known = values_of(derivatives(moved.loss(), 700));
    const auto run = [&] {
      SampleLoss loss = moved.loss();
      loss.use_ridge_loss(moved.options);
      return values_of(derivatives(std::move(loss), 700));
    };
    const double bound = kTolerance * *std::max_element(known.begin(), known.end());
    kernels::check_levels<double>("ridge_mixture", run, {known.begin(), known.end()},
                                  std::vector<double>(known.size(), bound));
  }
}

TEST_CASE("other models are left to the network") {
  const Json two_level = {{"kind", "two_level"}, {"groups", 2}, {"bias", true}};
  const Json distance = {{"kind", "squared_distance"}, {"bias", true}};
  const Json linear = {{"kind", "linear"}, {"bias", true}};
  for (const Form& form : {Form{two_level}, Form{distance, "linear", SigmoidGatingOptions{}},
                           Form{linear, "linear", SoftGatingOptions{.skip_below = 1e-3}}}) {
    Moved moved(form, 20);
    SampleLoss loss = moved.loss();
    loss.use_ridge_loss(moved.options);
    CHECK_FALSE(loss.uses_ridge_loss());
  }
}

TEST_CASE("a loss that is not a number stays one") {
  Moved moved({kPerturbed, "relu"}, 40);
  SampleLoss loss = moved.loss();
  loss.use_ridge_loss(moved.options);
  std::vector<double> parameters = loss.parameters();
  parameters.back() = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(loss.evaluate(parameters.data(), nullptr)));
}

}  // namespace moelab::ridge_loss_test
