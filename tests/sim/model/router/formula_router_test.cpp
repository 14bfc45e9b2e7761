#include <doctest/doctest.h>

#include <cmath>

#include "app/scenario/schema.h"
#include "sim/base/error.h"
#include "sim/base/kernels/multiply.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/router/router_probe.h"

namespace moelab::formula_router_test {
namespace {

RouterOptions router_from(const std::string& text) {
  return resolve_options<RouterOptions>(Json::parse(text), "model.router");
}

/// A router's scores and gradients at its start, on drawn rows.
template <class Real>
struct Started {
  static constexpr int kInputs = 6, kExperts = 5, kRows = 7;

  explicit Started(const RouterOptions& options)
      : router(make_router<Real>(options, {.input_dim = kInputs, .experts = kExperts})),
        parameters(router->block_size()),
        of_parameters(router->block_size()),
        scores(entries(kRows, kernels::padded(kExperts))),
        of_inputs(entries(kRows, kernels::padded(kInputs))) {
    router->initialize({Seeds{5, 2}}, parameters.data());
    std::vector<Real> x;
    AlignedVector<Real> weights(scores.size());
    Engine engine = Seeds{6, 0}.stream(Purpose::train_data);
    for (int i = 0; i < kRows * kInputs; ++i) x.push_back(static_cast<Real>(draw_normal(engine)));
    for (int i = 0; i < kRows; ++i) {
      for (int e = 0; e < kExperts; ++e) {
        weights[entries(i, kernels::padded(kExperts)) + size(e)] = static_cast<Real>(draw_normal(engine));
      }
    }
    RouterContext<Real> context;
    context.x = rows_of<const Real>(x.data(), kRows, kInputs);
    const std::unique_ptr<Scratch> scratch = router->make_scratch();
    router->forward(context, parameters.data(), *scratch, scores.data());
    router->backward(context, parameters.data(), *scratch,
                     {weights.data(), nullptr, of_parameters.data(), of_inputs.data()});
  }

  /// All parameters (or gradients), in the order of the arrays.
  std::vector<Real> listed(const AlignedVector<Real>& block) const {
    std::vector<Real> all;
    for (const NamedArray<Real>& array : router->arrays(block.data())) {
      all.insert(all.end(), array.values.begin(), array.values.end());
    }
    return all;
  }

  std::unique_ptr<Router<Real>> router;
  AlignedVector<Real> parameters, of_parameters, scores, of_inputs;
};

/// Largest difference over the largest entry.
template <class Values>
double relative_miss(const Values& left, const Values& right) {
  REQUIRE(left.size() == right.size());
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(right[i])));
    const double miss = std::abs(static_cast<double>(left[i] - right[i]));
    worst = std::isfinite(miss) ? std::max(worst, miss) : INFINITY;
  }
  return worst / largest;
}

struct Twin {
  std::string router, formula;
};
const std::vector<Twin>& twins() {
  static const std::vector<Twin> all = {
      {R"json({"kind": "linear", "init_scale": 2})json",
       R"json({"kind": "formula", "score": "dot(x, w)", "parameters": {"w": "d"}, "init_scale": 2})json"},
      {R"json({"kind": "linear", "bias": true})json",
       R"json({"kind": "formula", "score": "dot(w, x) + b", "parameters": {"b": {}, "w": "d"}})json"},
      {R"json({"kind": "cosine"})json",
       R"json({"kind": "formula", "score": "cos(x, w) + b", "parameters": {"w": "d", "b": {"start": 0}}})json"},
      {R"json({"kind": "perturbed_cosine", "tau1": 0.1, "tau2": 0.3})json",
       R"json({"kind": "formula", "score": "dot(x, w) / ((norm(w) + tau1) * (norm(x) + tau2)) + b",
           "parameters": {"w": "d", "b": {}, "tau1": 0.1, "tau2": {"value": 0.3}}})json"},
      {R"json({"kind": "squared_distance"})json",
       R"json({"kind": "formula", "score": "-(norm(x)^2 - 2*dot(x, w) + norm(w)^2) / 2", "parameters": {"w": "d"}})json"},
      {R"json({"kind": "squared_distance", "std": 1.5})json",
       R"json({"kind": "formula", "score": "-(norm(x)^2 - 2*dot(x, w) + norm(w)^2) / (2*s^2)",
           "parameters": {"w": "d", "s": {"start": 1.5, "min": 0.01}}})json"}};
  return all;
}

template <class Real>
void check_twins(double tolerance) {
  for (const Twin& twin : twins()) {
    CAPTURE(twin.formula);
    const Started<Real> file(router_from(twin.router)), formula(router_from(twin.formula));
    CHECK(file.listed(file.parameters) == formula.listed(formula.parameters));
    CHECK(file.router->parameter_count() == formula.router->parameter_count());
    CHECK(relative_miss(formula.scores, file.scores) <= tolerance);
    CHECK(relative_miss(formula.of_inputs, file.of_inputs) <= tolerance);
    CHECK(relative_miss(formula.listed(formula.of_parameters), file.listed(file.of_parameters)) <= tolerance);
  }
}

TEST_CASE("a router written as a formula is the router: starts, scores, gradients") {
  check_twins<double>(1e-12);
  check_twins<float>(1e-6);
  // Another router is none.
  const Started<double> linear(router_from(twins()[0].router)), cosine(router_from(twins()[2].formula));
  CHECK(relative_miss(cosine.scores, linear.scores) > 1e-3);
}

TEST_CASE("parameters start by the start law, at a number, or at draws of their own") {
  const Started<double> started(router_from(
      R"json({"kind": "formula", "score": "dot(A * x, v) + dot(w, x) + dot(u, x) + s + t",
          "parameters": {"w": "d", "u": "d", "v": {"shape": [3], "start": 0.5}, "s": {"start": -2},
                         "t": {"shared": true, "start": 4}, "A": {"shape": [3, "d"], "shared": true}}})json"));
  std::vector<std::string> names;
  for (const NamedArray<double>& array : started.router->arrays(started.parameters.data())) {
    names.push_back(array.name);
    const auto all = [&](double value) {
      return std::all_of(array.values.begin(), array.values.end(),
                         [&](double entry) { return entry == value; });
    };
    if (array.name == "router_formula_v") CHECK(all(0.5));
    if (array.name == "router_formula_s") CHECK(all(-2));
    if (array.name == "router_formula_t") CHECK((all(4) && array.shape == std::vector<std::int64_t>{1}));
    if (array.name == "router_formula_A") CHECK(array.shape == std::vector<std::int64_t>{3, 6});
  }
  // In the order of the formula.
  CHECK(names == std::vector<std::string>{"router_formula_A", "router_formula_v", "router_formula_w",
                                          "router_formula_u", "router_formula_s", "router_formula_t"});
  const std::vector<NamedArray<double>> arrays = started.router->arrays(started.parameters.data());
  const Started<double> linear(router_from(R"json({"kind": "linear"})json"));
  CHECK(arrays[2].values == linear.listed(linear.parameters));
  CHECK(arrays[3].values != arrays[2].values);
}

TEST_CASE("a number counts as its least value below it, and its gradient leaves out what would lower it") {
  const auto router = make_router<double>(router_from(R"json({"kind": "formula", "score": "s * norm(x)",
                          "parameters": {"s": {"start": 1, "min": 0.5}}})json"),
                                          {.input_dim = 2, .experts = 2});
  AlignedVector<double> parameters(router->block_size()), gradient(router->block_size()), scores(16);
  parameters[0] = 0.2;
  parameters[1] = 0.7;
  const std::vector<double> x = {3, 4};
  RouterContext<double> context;
  context.x = rows_of(x.data(), 1, 2);
  const std::unique_ptr<Scratch> scratch = router->make_scratch();
  router->forward(context, parameters.data(), *scratch, scores.data());
  CHECK(scores[0] == 2.5);
  CHECK(scores[1] == doctest::Approx(3.5).epsilon(1e-15));
  for (const double upstream : {1.0, -1.0}) {
    AlignedVector<double> of_scores(16);
    of_scores[0] = of_scores[1] = upstream;
    router->backward(context, parameters.data(), *scratch,
                     {of_scores.data(), nullptr, gradient.data(), nullptr});
    CHECK(gradient[0] == (upstream > 0 ? 0 : -5));
    CHECK(gradient[1] == 5 * upstream);
  }
}  // namespace

/// What is said of a formula with those parameters, at whose path.
std::pair<std::string, std::string> refusal(const std::string& score,
                                            const std::string& parameters = R"json({"w": "d"})json") {
  Json router = {{"kind", "formula"}, {"score", score}, {"parameters", Json::parse(parameters)}};
  try {
    const RouterOptions options = resolve_options<RouterOptions>(router, "model.router");
    const auto made = make_router<double>(options, {.input_dim = 3, .experts = 4});
    AlignedVector<double> block(made->block_size());
    made->initialize({Seeds{}}, block.data());
  } catch (const InvalidOption& error) {
    return {error.path(), error.message()};
  }
  return {};
}

TEST_CASE("what is wrong with a formula is said at its character") {
  const auto says = [](const std::string& score, const std::string& place, const std::string& message,
                       const std::string& parameters = R"json({"w": "d"})json") {
    CAPTURE(score);
    const auto [path, given_text] = refusal(score, parameters);
    const auto& text = given_text;
    CHECK(path == "model.router.score");
    CHECK_MESSAGE(text.rfind(place, 0) == 0, text);
    CHECK_MESSAGE(text.find(message) != std::string::npos, text);
  };
  CHECK(refusal("dot(x, w)").second.empty());
  says("dot(x, v)", "at character 8, \"v)\": ", "unknown name 'v'");
  says("dott(x, w)", "at character 1, \"dott(x, w)\": ", "did you mean 'dot'?");
  says("dot(x, w", "at character 4, \"(x, w\": ", "a '(' without its ')'");
  says("dot(x, w))", "at character 10, \")\": ", "a ')' without its '('");
  says("dot(x, w) +", "at the end: ", "a number, a name or '('");
  says("dot(x, w) $ 2", "at character 11, \"$ 2\": ", "needs an operator");
  says("dot(x, w) + α·x", "at character 13, \"α·x\": ", "needs a number, a name or '('");
  says("dot(x, w) ≥ ααααααααα", "at character 11, \"≥ αααα…\": ", "needs an operator");
  says("2 * * dot(x, w)", "at character 5, ", "needs a number, a name or '('");
  says("dot(x, w) + 1e999", "at character 13, ", "needs a finite number");
  says("dot(x)", "at character 1, ", "dot needs 2 argument(s), got 1");
  says("norm(x, w)", "at character 1, ", "norm needs 1 argument(s), got 2");
  says("norm(dot(x, w))", "at character 1, ", "norm needs a vector, got a number");
  says("x + w", "at character 1, ", "the score is a vector of d");
  says("norm(x)", "at character 1, ", "the same for all experts", "{}");
  says("dot(x, v)", "at character 1, ", "a vector of d and a vector of 3",
       R"json({"v": {"shape": [3]}})json");
  says("dot(x, w) + norm(x + v)", "at character 20, \"+ v)\": ", "a vector of d meets a vector of 2",
       R"json({"w": "d", "v": {"shape": "2"}})json");
  says("dot(A * v, w)", "at character 7, ", "a matrix of 3 by d needs a vector of d, got a vector of 3",
       R"json({"w": "d", "A": {"shape": [3, "d"]}, "v": {"shape": "3"}})json");
  says("dot(w * A, x)", "at character 7, ", "a matrix can only be multiplied by a vector",
       R"json({"w": "d", "A": {"shape": ["d", "d"]}})json");
  says("dot(x, w)^s", "at character 11, ", "an exponent needs to be a number or a constant",
       R"json({"w": "d", "s": {"start": 2}})json");
  says("dot(x, w) / s", "at character 11, \"/ s\": ", "divides by zero at the start",
       R"json({"w": "d", "s": {}})json");
  says("dot(x, w) + 1 / s^2", "at character 15, \"/ s^2\": ", "divides by zero at the start",
       R"json({"w": "d", "s": {"start": 0}})json");
  says("dot(x, w) + log(s)", "at character 13, \"log(s)\": ", "is not finite at the start",
       R"json({"w": "d", "s": {"start": 0}})json");
  says(std::string(1000, '(') + "dot(x, w)", "at character 201, ", "levels");
  says(std::string(1000, '-') + "dot(x, w)", "at character 201, ", "levels");
  // Trees as deep as they are long, whichever operator chains them.
  for (const std::string term : {" + 1", " - 1", " * 2", " / 2", " + x", " + (1)", " + exp(1)"}) {
    std::string chain = "dot(x, w)";
    for (int i = 0; i < 100'000; ++i) chain += term;
    says(chain, "at character ", "needs at most 1000 numbers, names and operators");
  }
  std::string longest = "dot(x, w)";
  for (int i = 0; i < 498; ++i) longest += " + 1";
  CHECK(refusal(longest, R"json({"w": "d"})json").second.empty());
}

TEST_CASE("what is wrong with a parameter is said at its field") {
  const auto path_of = [](const std::string& parameters, const std::string& score = "dot(x, w)") {
    return refusal(score, parameters).first;
  };
  const std::string at = "model.router.parameters.";
  CHECK(path_of(R"json({"w": "d", "s": {}})json") == at + "s");
  CHECK(path_of(R"json({"w": "d", "x": {}})json") == at + "x");
  CHECK(path_of(R"json({"w": "d", "exp": 1})json") == at + "exp");
  CHECK(path_of(R"json({"w": "m"})json") == at + "w.shape");
  CHECK(path_of(R"json({"w": {"shape": ["d", 2, 2]}})json") == at + "w.shape");
  CHECK(path_of(R"json({"w": {"shape": "d", "min": 0}})json") == at + "w.min");
  CHECK(path_of(R"json({"w": {"value": 2, "start": 0}})json") == at + "w.value");
  CHECK(path_of(R"json({"w": {"start": 1, "min": 2}})json") == at + "w.start");
  CHECK(path_of(R"json({"w": {"strat": 1}})json") == at + "w.strat");
  CHECK(path_of(R"json({"w": [1]})json") == at + "w");
  CHECK(refusal("dot(x, w)", R"json({"w": {"strat": 1}})json").second.find("did you mean 'start'?") !=
        std::string::npos);
}

}  // namespace
}  // namespace moelab::formula_router_test
