#include <doctest/doctest.h>

#include <cmath>

#include "analysis/theory/graph_of_tokens2025.h"

namespace moelab::independence_test {
namespace {

const CheckEffort kEffort;
/// Sums of a few dozen probabilities.
constexpr double kRounding = 1e-13;

}  // namespace

TEST_CASE("independence: mutual information by hand") {
  CHECK(std::abs(mutual_information(Matrix{{0.5, 0.0}, {0.0, 0.5}}) - std::log(2)) < kRounding);
  CHECK(std::abs(mutual_information(Matrix{{0.06, 0.14}, {0.24, 0.56}})) < kRounding);
  const double expected = 0.4 * std::log(0.4 / 0.25) * 2 + 0.1 * std::log(0.1 / 0.25) * 2;
  CHECK(std::abs(mutual_information(Matrix{{0.4, 0.1}, {0.1, 0.4}}) - expected) < kRounding);
}

TEST_CASE("independence: laws of tokens and of pairs are distributions, the posterior is Bayes' rule") {
  Engine engine(3);
  const TokenWorld world = draw_world(engine);
  for (Eigen::Index i = 0; i < world.x.rows(); ++i)
    CHECK(std::abs(world.joint_of_token(i).sum() - 1) < kRounding);
  for (const TokenModel model : {TokenModel::plain, TokenModel::similarity_aware, TokenModel::attention,
                                 TokenModel::attention_aware}) {
    CHECK(std::abs(pair_without_tokens(world, model).sum() - 1) < kRounding);
    CHECK(std::abs(pair_given_tokens(world, model, {0, 2, 1}).sum() - 1) < kRounding);
  }
  // Where all tokens are equal, it does not matter whose routing is taken.
  const Matrix plain = pair_given_tokens(world, TokenModel::plain, {1, 1, 1});
  CHECK((pair_given_tokens(world, TokenModel::similarity_aware, {1, 1, 1}) - plain).norm() < kRounding);
  CHECK((pair_given_tokens(world, TokenModel::attention_aware, {1, 1, 1}) - plain).norm() < kRounding);
  CHECK((pair_given_tokens(world, TokenModel::similarity_aware, {0, 1, 2}) -
         pair_given_tokens(world, TokenModel::plain, {0, 1, 2}))
            .norm() > 1e-3);
  // The sum over the sources of all tokens has the factors of the product.
  for (const TokenModel model : {TokenModel::similarity_aware, TokenModel::attention_aware}) {
    CHECK((summed_pair(world, model, {0, 2, 1}) - pair_given_tokens(world, model, {0, 2, 1})).norm() <
          kRounding);
  }
}

TEST_CASE(
    "independence: given tokens in all models, without them where routings are mixed or tokens depend") {
  CHECK(verdict_of(check_independent_given_tokens(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_independent_given_tokens(kEffort, true)) == CheckVerdict::fails);
  CHECK(verdict_of(check_dependent_given_tokens(kEffort, TokenModel::similarity_aware)) ==
        CheckVerdict::fails);
  for (const TokenModel model : {TokenModel::plain, TokenModel::attention}) {
    CHECK(verdict_of(check_independent_without_tokens(kEffort, model)) == CheckVerdict::holds);
    CHECK(verdict_of(check_dependent_without_tokens(kEffort, model, false)) == CheckVerdict::fails);
    CHECK(verdict_of(check_dependent_without_tokens(kEffort, model, true)) == CheckVerdict::holds);
  }
  for (const TokenModel model : {TokenModel::similarity_aware, TokenModel::attention_aware}) {
    CHECK(verdict_of(check_dependent_without_tokens(kEffort, model, false)) == CheckVerdict::holds);
    CHECK(verdict_of(check_independent_without_tokens(kEffort, model)) == CheckVerdict::fails);
  }
}

}  // namespace moelab::independence_test
