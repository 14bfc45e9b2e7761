/// The laws from which rows of routers start.

#include <doctest/doctest.h>

#include "sim/base/kernels/kernels.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/router/router_probe.h"

namespace moelab::start_laws_test {
namespace {

constexpr int kInputs = 3, kExperts = 4;
constexpr double kScale = 1.5;

/// "router_weight" (E, d) as a router starts.
std::vector<double> rows_started(const std::string& law, const Start& start, int experts = kExperts) {
  const StartedRouter started(LinearRouterOptions{.init = law, .init_scale = kScale},
                              {.input_dim = kInputs, .experts = experts}, start);
  return started.router->arrays(started.parameters.data()).front().values;
}

TEST_CASE("every start law: row e does not depend on E, and is proportional to init_scale") {
  Engine engine(1);
  const Matrix train_rows = draw_normals(engine, 9, kInputs);
  const Start start{{2, 0}, &train_rows};
  for (const StartLaw& law : start_laws()) {
    CAPTURE(law.name);
    CHECK(&start_law(law.name) == &law);
    const std::vector<double> few = rows_started(law.name, start), many = rows_started(law.name, start, 9);
    REQUIRE(many.size() > few.size());
    CHECK(std::equal(few.begin(), few.end(), many.begin()));
    for (int e = 0; e < kExperts; ++e) {
      std::vector<double> once(kInputs), twice(kInputs);
      law.fill(start, e, kScale, once);
      law.fill(start, e, 2 * kScale, twice);
      CHECK(std::equal(once.begin(), once.end(), few.begin() + e * kInputs));
      for (std::size_t j = 0; j < kInputs; ++j) CHECK(twice[j] == doctest::Approx(2 * once[j]));
    }
    const RouterOptions options = LinearRouterOptions{.init = law.name};
    CHECK(options.entry().needs_train_rows(options.options()) == law.needs_train_rows);
  }
}

TEST_CASE("a router that starts at training samples does so in the first layer") {
  Engine engine(1);
  const Matrix train_rows = draw_normals(engine, kExperts, kInputs);
  const Start start{{2, 0}, &train_rows};
  const std::vector<double> rows = rows_started("train_samples", start.of_layer(0));
  for (int e = 0; e < kExperts; ++e) {
    for (int j = 0; j < kInputs; ++j) CHECK(rows[entries(e, kInputs) + size(j)] == kScale * train_rows(e, j));
  }
  CHECK(rows_started("train_samples", start.of_layer(1)) == rows_started("normal", start.of_layer(1)));
  CHECK(rows_started("train_samples", start.of_layer(1)) != rows_started("normal", start.of_layer(0)));
}

TEST_CASE("an unknown start law is refused, with the names there are") {
  CHECK_THROWS_WITH_AS(start_law("normul"),
                       "model.router.init: unknown init 'normul'; did you mean 'normal'? Allowed: "
                       "normal, train_samples",
                       InvalidOption);
}

}  // namespace
}  // namespace moelab::start_laws_test
