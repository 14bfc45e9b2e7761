/// A score that is NaN shows in the probabilities of its row and in the loss, under every gating.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "sim/model/router/routers.h"
#include "tests/sim/base/kernel_levels.h"
#include "tests/sim/model/example_model.h"

namespace moelab::gating_not_a_number_test {
namespace {

constexpr int kRows = 6, kInputs = 3;

/// r of normal scores with NaN at (row, expert).
template <class Real>
AlignedVector<Real> probabilities_of(const GatingRule& rule, int experts, bool training, int row,
                                     int expert) {
  const std::size_t stride = size(kernels::padded(experts));
  const auto gating = make_gating<Real>(rule, {.input_dim = kInputs, .experts = experts});
  Engine engine(9);
  std::vector<Real> x(entries(kRows, kInputs));
  for (Real& value : x) value = static_cast<Real>(draw_normal(engine));
  AlignedVector<Real> scores(size(kRows) * stride), parameters(gating->block_size());
  for (std::size_t i = 0; i < scores.size(); ++i)
    scores[i] = i % stride < size(experts) ? static_cast<Real>(draw_normal(engine)) : Real(0);
  scores[size(row) * stride + size(expert)] = std::numeric_limits<Real>::quiet_NaN();
  std::size_t values = 0;
  for (const StateArray& array : gating->state_arrays()) values += size(array.size());
  std::vector<double> state(values);
  gating->start_state({{3, 0}}, state.data());
  gating->initialize({{3, 0}}, parameters.data());
  GatingContext<Real> context{scores.data(), kRows, experts, nullptr, parameters.data()};
  context.x = rows_of<const Real>(x.data(), kRows, kInputs);
  context.training = training;
  context.state = training ? state.data() : nullptr;
  GatingScratch<Real> scratch;
  gating->gate(context, scratch);
  return scratch.probabilities;
}

}  // namespace

TEST_CASE_TEMPLATE("a NaN score makes every probability of its row NaN, under every gating at every level",
                   Real, float, double) {
  const kernels::LevelGuard guard;
  for (const std::string& level : kernels::levels()) {
    CAPTURE(level);
    kernels::limit_vector_level(level);
    for (const NamedGating& gating : example_gatings()) {
      CAPTURE(gating.name);
      for (const int experts : {4, 17}) {
        const std::size_t stride = size(kernels::padded(experts));
        for (int expert = 0; expert < experts; ++expert) {
          CAPTURE(expert);
          for (const bool training : {false, true}) {
            const AlignedVector<Real> r = probabilities_of<Real>(gating.rule, experts, training, 1, expert);
            for (std::size_t e = 0; e < size(experts); ++e) CHECK(std::isnan(r[stride + e]));
            CHECK_FALSE(std::isnan(r[0]));
          }
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("the loss is NaN where a score is NaN, under every gating at every level", Real, float,
                   double) {
  const Layout layout{.input_dim = 5, .output_dim = 3, .sequences = false, .tokens = 1};
  const auto loss = make_task_loss<Real>("mse");
  FormulaRouterOptions router;
  router.score = "log(dot(x, w))";
  FormulaParameterOptions vector;
  vector.shape = {"d"};
  router.parameters = {{"w", vector}};
  router.trainable = false;
  const kernels::LevelGuard guard;
  for (const std::string& level : kernels::levels()) {
    CAPTURE(level);
    kernels::limit_vector_level(level);
    for (const NamedGating& gating : example_gatings()) {
      CAPTURE(gating.name);
      const ModelOptions options = example_model(router, ExpertOptions::example("linear"), gating.rule, 4);
      ExampleModel<Real> model(options, layout, {1, 0});
      // Normal inputs have negative scalar products. Their logarithm is NaN.
      CHECK(std::isnan(model.loss_and_gradient(model.batch(2, 8), *loss)));
    }
  }
}

}  // namespace moelab::gating_not_a_number_test
