#include "sim/data/moe_regression.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "sim/base/error.h"
#include "tests/sim/data/data_of.h"
#include "tests/sim/data/pieces.h"

namespace moelab::moe_regression_test {
namespace {

/// Sums of a few terms of order one to ten, rounded in double.
constexpr double kRounding = 1e-13;
/// Statistical tests pass below this many standard errors.
constexpr double kStandardErrors = 5;

Json data_with(const Json& changes) {
  Json data = {{"generator", "moe_regression"},
               {"dim", 2},
               {"router", "linear"},
               {"expert", "linear"},
               {"measure",
                {{"kind", "given"},
                 {"gate", {{3, 4}, {0, 2}}},
                 {"bias", {0.5, 0}},
                 {"slope", {{1, -1}, {2, 0.5}}},
                 {"intercept", {-1, 0.25}}}},
               {"noise_std", 0.0}};
  data.update(changes);
  return data;
}

std::unique_ptr<Problem> problem_of(const Json& changes, const Seeds& seeds = {1, 0}) {
  return draw_problem(data_of(data_with(changes)), seeds);
}

TEST_CASE("the regression function by hand, for every router and expert") {
  // At x = (4, 3): ‖x‖ = 5, products of β1 with x 24 and 6, norms of β1 5 and 2; a^T x + b = 0 and 9.75. With
  // the second component's gate r, f = (1 − r) h_1 + r h_2.
  const Matrix x = (Matrix(2, 2) << 4, 3, 0, -2).finished();
  const auto value_at = [&](const Json& router, const Json& expert) {
    return (*problem_of({{"router", router}, {"expert", expert}})->bayes_prediction(x))(0, 0);
  };
  const auto gate = [](double first, double second) { return 1 / (1 + std::exp(first - second)); };
  const Json perturbed = {{"kind", "perturbed_cosine"}, {"tau1", 1}, {"tau2", 3}};
  const double linear = gate(24.5, 6), cosine = gate(24.0 / 25 + 0.5, 6.0 / 10),
               shifted = gate(24.0 / (6 * 8) + 0.5, 6.0 / (3 * 8));
  const Json square = {{"kind", "polynomial"}, {"power", 2}};
  CHECK(std::abs(value_at("linear", "linear") - linear * 9.75) <= kRounding);
  CHECK(std::abs(value_at("cosine", "linear") - cosine * 9.75) <= kRounding);
  CHECK(std::abs(value_at(perturbed, "linear") - shifted * 9.75) <= kRounding);
  CHECK(std::abs(value_at("cosine", square) - cosine * 9.75 * 9.75) <= kRounding);
  // At (0, −2) the affine parts are 1 and −0.75: a rectifier lets the first pass alone.
  const Matrix at_second = problem_of({{"expert", "relu"}})->bayes_prediction(x).value();
  CHECK(std::abs(at_second(1, 0) - (1 - gate(-8 + 0.5, -4))) <= kRounding);
}

TEST_CASE("GELU, sigmoid and unit experts by hand") {
  // At (0, −2) the affine parts are 1 and −0.75, and the scores −7.5 and −4.
  const Matrix x = (Matrix(1, 2) << 0, -2).finished();
  const auto value = [&](const Json& expert) {
    return (*problem_of({{"expert", expert}})->bayes_prediction(x))(0, 0);
  };
  const double second = 1 / (1 + std::exp(-3.5)), first = 1 - second;
  const double phi_one = 0.841344746068542949, phi_other = 0.226627352376867935;
  CHECK(std::abs(value("gelu") - (first * phi_one - second * 0.75 * phi_other)) <= kRounding);
  CHECK(std::abs(value("sigmoid") - (first / (1 + std::exp(-1.0)) + second / (1 + std::exp(0.75)))) <=
        kRounding);
  // Lengths √3 and √(4 + 1/4 + 1/16).
  const double one = 1 / std::sqrt(3.0), other = -0.75 / std::sqrt(4.3125);
  CHECK(std::abs(value({{"kind", "linear"}, {"normalize", "unit"}}) - (first * one + second * other)) <=
        kRounding);
  CHECK(std::abs(value({{"kind", "polynomial"}, {"power", 2}, {"normalize", "unit"}}) -
                 (first * one * one + second * other * other)) <= kRounding);
}

TEST_CASE("unit experts of every seed have length 1, and an expert 0 is refused") {
  for (const char* kind : {"linear", "polynomial", "relu", "gelu", "sigmoid"}) {
    const Json changes = {{"expert", {{"kind", kind}, {"normalize", "unit"}}},
                          {"shared_experts", 1},
                          {"measure", {{"kind", "drawn"}, {"components", 3}, {"slope_std", 2}}}};
    const std::unique_ptr<Problem> problem = problem_of(changes);
    const MixingMeasure& truth = *problem->true_measure();
    CHECK(truth.form.unit);
    for (Eigen::Index j = 0; j < 3; ++j)
      CHECK(std::abs(std::hypot(truth.slope.row(j).norm(), truth.intercept[j]) - 1) <= kRounding);
    CHECK(std::abs(std::hypot(truth.shared_slope.norm(), truth.shared_intercept[0]) - 1) <= kRounding);
  }
  Json data = data_with({{"expert", {{"kind", "relu"}, {"normalize", "unit"}}}});
  data["measure"]["slope"][1] = {0, 0};
  CHECK_NOTHROW(check(data_of(data)));
  data["measure"]["intercept"][1] = 0;
  CHECK_THROWS_WITH_AS(check(data_of(data)), doctest::Contains("(a, b) is 0"), InvalidOption);
  data["measure"] = {{"kind", "drawn"}, {"components", 2}, {"slope_std", 0}, {"intercept_std", 0}};
  CHECK_THROWS_AS(check(data_of(data)), InvalidOption);
}

TEST_CASE("the regression function of other gates by hand") {
  // At x = (4, 3) scores 24.5 and 6, experts 0 and 9.75; at (0, −2): −7.5 and −4, 1 and −0.75.
  const Matrix x = (Matrix(2, 2) << 4, 3, 0, -2).finished();
  const auto values = [&](const Json& changes) { return Matrix(*problem_of(changes)->bayes_prediction(x)); };
  const auto sigmoid = [](double score) { return 1 / (1 + std::exp(-score)); };
  const auto is_close = [](const Matrix& found, double first, double second) {
    return std::abs(found(0, 0) - first) <= kRounding && std::abs(found(1, 0) - second) <= kRounding;
  };
  CHECK(is_close(values({{"gating", "sigmoid"}}), sigmoid(6) * 9.75, sigmoid(-7.5) - 0.75 * sigmoid(-4)));
  CHECK(is_close(values({{"gating", {{"kind", "sigmoid"}, {"renormalize", true}}}}),
                 sigmoid(6) * 9.75 / (sigmoid(24.5) + sigmoid(6)),
                 (sigmoid(-7.5) - 0.75 * sigmoid(-4)) / (sigmoid(-7.5) + sigmoid(-4))));
  CHECK(is_close(values({{"gating", {{"kind", "topk"}, {"k", 1}}}}), 0, -0.75));
  CHECK(values({{"gating", {{"kind", "topk"}, {"k", 2}}}}) == values(Json::object()));
  // Half of the scores; squared distances 2 / 2 and 17 / 2, 45 / 2 and 16 / 2.
  const auto soft = [](double first, double second) { return 1 / (1 + std::exp(first - second)); };
  const double hot = soft(-3.75, -2), near = soft(0.5 - 22.5, -8);
  CHECK(is_close(values({{"router", {{"kind", "linear"}, {"temperature", 2}}}}), soft(12.25, 3) * 9.75,
                 1 - hot - 0.75 * hot));
  CHECK(
      is_close(values({{"router", "squared_distance"}}), soft(0.5 - 1, -8.5) * 9.75, 1 - near - 0.75 * near));
  // Two shared experts: x1 + 1 and −x2.
  Json measure = data_with(Json::object())["measure"];
  measure["shared_slope"] = {{1, 0}, {0, -1}};
  measure["shared_intercept"] = {1, 0};
  const Matrix alone = values(Json::object());
  CHECK(is_close(values({{"measure", measure}, {"shared_experts", 2}}), alone(0, 0) + 5 - 3,
                 alone(1, 0) + 1 + 2));
}

TEST_CASE("two levels by hand: a group's share, and an expert's in it") {
  // One input; groups {0, 1} and {2}; at x = 1 group scores 0 and log 3, in the first log 2 and log 6.
  const Json data = {{"dim", 1},
                     {"router", {{"kind", "two_level"}, {"groups", 2}}},
                     {"measure",
                      {{"kind", "given"},
                       {"gate", {{0}, {std::log(3)}, {7}}},
                       {"bias", {std::log(2), std::log(2), 1}},
                       {"slope", {{1}, {2}, {-1}}},
                       {"intercept", {0, 0, 0}},
                       {"group_gate", {{1}, {1}}},
                       {"group_bias", {-1, std::log(3) - 1}}}}};
  const std::unique_ptr<Problem> problem = problem_of(data);
  const Matrix x = Matrix::Ones(1, 1);
  CHECK(std::abs((*problem->bayes_prediction(x))(0, 0) - (0.25 * (0.25 * 1 + 0.75 * 2) - 0.75)) <= kRounding);
  // In U: the groups' vectors, and β1 minus its mean under the gates at 0, which are equal here.
  const double half = std::log(3) / 2;
  const Matrix expected = (Matrix(3, 2) << 1, -half, 1, half, 1, 0).finished();
  CHECK((effective_directions(*problem->true_measure()) - expected).isZero(kRounding));
  const double first = 1 / (1 + std::exp(std::log(3)));
  const Vector weights = (Vector(3) << first / 2, first / 2, 1 - first).finished();
  CHECK((gates_at_zero(*problem->true_measure()) - weights).isZero(kRounding));
}

TEST_CASE(
    "a fit may select more components than its truth or have free lengths, and nothing else may differ") {
  MixtureForm truth{.selected = 2}, fit{.selected = 3};
  CHECK(is_same_family(fit, truth));
  fit.selected = 0;
  CHECK_FALSE(is_same_family(fit, truth));
  CHECK_FALSE(is_same_family({.gate = MixtureForm::Gate::sigmoid}, {}));
  CHECK_FALSE(is_same_family({.shared = 1}, {}));
  CHECK_FALSE(is_same_family({.expert = MixtureForm::Expert::gelu}, {}));
  CHECK(is_same_family({}, {.unit = true}));
}

TEST_CASE("effective directions: rows, unit rows, rows over norm plus τ1") {
  MixingMeasure measure;
  measure.gate = (Matrix(2, 2) << 3, 4, 0, 0).finished();
  CHECK(effective_directions(measure) == measure.gate);
  measure.form.router = MixtureForm::Router::cosine;
  CHECK((effective_directions(measure) - (Matrix(2, 2) << 0.6, 0.8, 0, 0).finished()).isZero(kRounding));
  measure.form.tau1 = 5;
  CHECK((effective_directions(measure) - (Matrix(2, 2) << 0.3, 0.4, 0, 0).finished()).isZero(kRounding));
}

TEST_CASE("inputs, noise and labels follow their laws") {
  constexpr int kSamples = 20000;
  for (const char* inputs : {"normal", "uniform"}) {
    CAPTURE(inputs);
    const std::unique_ptr<Problem> problem = problem_of({{"inputs", inputs}, {"noise_std", 0.5}});
    const Dataset data = draw_set(*problem, {1, 0}, Purpose::train_data, kSamples);
    const double variance = std::string(inputs) == "normal" ? 1.0 : 1.0 / 3;
    // Fourth moments of N(0, 1) and U[−1, 1]: 3 and 1/5.
    const double spread = std::sqrt((variance == 1 ? 2.0 : 1.0 / 5 - 1.0 / 9) / (2 * kSamples));
    CHECK(std::abs(data.x.mean()) < kStandardErrors * std::sqrt(variance / (2 * kSamples)));
    CHECK(std::abs(data.x.squaredNorm() / (2 * kSamples) - variance) < kStandardErrors * spread);
    const Matrix noise = data.y - *problem->bayes_prediction(data.x);
    const auto is_of = [&](double deviation) {
      const double square = deviation * deviation;
      return std::abs(noise.squaredNorm() / kSamples - square) <
             kStandardErrors * square * std::sqrt(2.0 / kSamples);
    };
    CHECK(is_of(0.5));
    CHECK_FALSE(is_of(0.45));
    CHECK(std::abs((noise.array() * data.x.col(0).array()).mean()) <
          kStandardErrors * 0.5 * std::sqrt(variance / kSamples));
    for (int i = 0; i < 100; ++i) {
      const double lead = (data.x.row(i) * (Vector(2) << 3, 2).finished()).value() + 0.5;
      CHECK(data.cluster[static_cast<std::size_t>(i)] == (lead >= 0 ? 0 : 1));
    }
  }
}

TEST_CASE("a set drawn in pieces equals the set drawn at once") {
  const std::unique_ptr<Problem> problem = problem_of({{"noise_std", 0.5}});
  check_pieces(*problem, {1, 0}, Purpose::train_data, {7, 20, 23});
}

TEST_CASE("no two repetitions share data: neither inputs nor noise") {
  constexpr int kSamples = 200;
  const std::unique_ptr<Problem> problem = problem_of({{"noise_std", 0.5}});
  // Returns whether every number of the sets that `stream` gives occurs once.
  const auto are_disjoint = [&](const auto& stream) {
    std::set<double> inputs, noise;
    for (std::uint64_t index = 0; index < 20; ++index) {
      for (const Purpose purpose : {Purpose::train_data, Purpose::test_data}) {
        const Dataset data = draw_set(*problem, stream(index), purpose, kSamples);
        const Matrix residual = data.y - *problem->bayes_prediction(data.x);
        inputs.insert(data.x.data(), data.x.data() + data.x.size());
        noise.insert(residual.data(), residual.data() + residual.size());
      }
    }
    return inputs.size() == 20u * 2 * 2 * kSamples && noise.size() == 20u * 2 * kSamples;
  };
  CHECK(are_disjoint([](std::uint64_t index) { return Seeds{1, index}; }));
  CHECK_FALSE(are_disjoint([](std::uint64_t index) { return Seeds{1, index / 2}; }));
}

TEST_CASE(
    "a given measure is that of every seed, a drawn one is new for each and keeps its first components") {
  const Seeds first{1, 0}, second{1, 1};
  const Matrix x = Matrix::Random(20, 2);
  CHECK(*problem_of(Json::object(), first)->bayes_prediction(x) ==
        *problem_of(Json::object(), second)->bayes_prediction(x));
  const auto drawn = [](int components, const Seeds& seeds) {
    return problem_of({{"measure", {{"kind", "drawn"}, {"components", components}, {"bias_std", 1}}}}, seeds);
  };
  CHECK(drawn(3, first)->clusters() == 3);
  CHECK(*drawn(3, first)->bayes_prediction(x) != *drawn(3, second)->bayes_prediction(x));
  const std::unique_ptr<Problem> few = drawn(3, first), many = drawn(5, first);
  CHECK(few->true_measure()->gate == many->true_measure()->gate.topRows(3));
  CHECK(few->true_measure()->bias == many->true_measure()->bias.head(3));
  CHECK(few->true_measure()->slope == many->true_measure()->slope.topRows(3));
  CHECK(few->true_measure()->intercept == many->true_measure()->intercept.head(3));
}

TEST_CASE("arrays of a given measure that do not fit each other are refused") {
  const auto refusal = [](const char* pointer, const char* value) {
    Json data = data_with(Json::object());
    data[Json::json_pointer(pointer)] = Json::parse(value);
    try {
      check(data_of(data));
    } catch (const InvalidOption& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal("/measure/bias", "[0, 0]").empty());
  CHECK(refusal("/measure/bias", "[0]") ==
        "data.measure.bias: got 1 components, needs 2 as data.measure.gate has");
  CHECK(refusal("/measure/slope", "[[1, 2], [3]]") ==
        "data.measure.slope[1]: got 1 numbers, needs data.dim = 2");
  CHECK(refusal("/shared_experts", "1") ==
        "data.measure.shared_slope: got 0 components, needs 1 as data.shared_experts says");
  CHECK(refusal("/router", R"({"kind": "two_level"})") ==
        "data.measure.group_gate: got 0 components, needs 2 as data.router has groups");
  CHECK(refusal("/measure/group_bias", "[1]") ==
        "data.measure.group_bias: got 1 components, needs 0 as data.router has groups");
  CHECK(refusal("/measure/gate", "[[1, 2, 3], [1, 2, 3]]") ==
        "data.measure.gate[0]: got 3 numbers, needs data.dim = 2");
}

}  // namespace
}  // namespace moelab::moe_regression_test
