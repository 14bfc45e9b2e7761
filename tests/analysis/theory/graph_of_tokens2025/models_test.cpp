#include <doctest/doctest.h>

#include <cmath>

#include "analysis/theory/graph_of_tokens2025.h"
#include "sim/base/numerics.h"

namespace moelab::models_test {
namespace {

const CheckEffort kEffort;
/// Sums of a few products of order one.
constexpr double kRounding = 1e-13;

/// A^p and H^p of Lemma 1 for two tokens and two heads by the printed quotients, densities and all.
struct HandPosterior {
  double position[2][2][2];  // [h][i][j]
  double head[2][2];         // [i][h]
};
HandPosterior by_hand(const AttentionHeads& heads, const Matrix& x, const Matrix& u, double sigma) {
  HandPosterior posterior{};
  for (int i = 0; i < 2; ++i) {
    double evidence[2] = {};
    for (int h = 0; h < 2; ++h) {
      const std::size_t at = static_cast<std::size_t>(h);
      double scores[2], joint[2];
      for (int j = 0; j < 2; ++j) {
        const Vector query = heads.query[at] * x.row(i).transpose(),
                     key = heads.key[at] * x.row(j).transpose();
        scores[j] = std::exp(query.dot(key) / std::sqrt(static_cast<double>(query.size())));
      }
      for (int j = 0; j < 2; ++j) {
        const Vector centre = heads.value[at].transpose() * x.row(j).transpose();
        const double square = (u.row(i).transpose() - centre).squaredNorm();
        joint[j] = scores[j] / (scores[0] + scores[1]) * std::exp(-square / (2 * sigma * sigma));
        evidence[h] += joint[j];
      }
      for (int j = 0; j < 2; ++j) posterior.position[h][i][j] = joint[j] / (joint[0] + joint[1]);
    }
    for (int h = 0; h < 2; ++h) posterior.head[i][h] = evidence[h] / (evidence[0] + evidence[1]);
  }
  return posterior;
}

}  // namespace

TEST_CASE("the posterior of Lemma 1 is the printed quotient where that can be computed") {
  Engine engine(1);
  const AttentionHeads heads = draw_heads(engine, 2, 3, 2);
  const Matrix x = draw_normals(engine, 2, 3), u = draw_normals(engine, 2, 3);
  const HeadPosterior posterior = head_posterior(heads, x, u, 0.8);
  const HandPosterior expected = by_hand(heads, x, u, 0.8);
  Matrix routing(2, 3);
  routing << 0.2, 0.5, 0.3, 0.6, 0.3, 0.1;
  const Matrix experts = posterior.experts(routing);
  for (int i = 0; i < 2; ++i) {
    double first_expert = 0;
    for (int h = 0; h < 2; ++h) {
      CHECK(std::abs(posterior.heads(i, h) - expected.head[i][h]) < kRounding);
      for (int j = 0; j < 2; ++j) {
        const double position = std::exp(posterior.log_positions[static_cast<std::size_t>(h)](i, j));
        CHECK(std::abs(position - expected.position[h][i][j]) < kRounding);
        first_expert += expected.head[i][h] * expected.position[h][i][j] * routing(j, 0);
      }
    }
    CHECK(std::abs(experts(i, 0) - first_expert) < kRounding);
  }
  CHECK((experts.rowwise().sum().array() - 1).abs().maxCoeff() < kRounding);
}

TEST_CASE("attention: averaged heads of merged values, the most decided head, and a mixture's output") {
  Engine engine(2);
  AttentionHeads heads = draw_heads(engine, 2, 3, 2);
  const Matrix x = draw_normals(engine, 4, 3);
  Matrix sum = Matrix::Zero(4, 3);
  for (std::size_t h = 0; h < 2; ++h) {
    const Matrix scores = x * heads.query[h].transpose() * heads.key[h] * x.transpose() / std::sqrt(2.0);
    sum += softmax(scores) * x * heads.value[h];
  }
  CHECK((heads.output(x) - sum / 2).cwiseAbs().maxCoeff() < kRounding);
  heads.query[0].setZero();  // uniform attention
  CHECK(decided_head(heads, x) == 1);
  heads.query[1].setZero();
  CHECK(decided_head(heads, x) == 0);  // a tie

  const TokenMixture mixture = draw_mixture(engine, 3, 4, 2);
  const Vector token = draw_normals(engine, 4, 1);
  const Matrix r = mixture.routing(token.transpose());
  Vector output = Vector::Zero(2);
  for (Eigen::Index e = 0; e < 3; ++e) {
    output += r(0, e) * (mixture.slopes.middleRows(2 * e, 2) * token + mixture.values.row(e).transpose());
  }
  CHECK((mixture.output(token) - output).cwiseAbs().maxCoeff() < kRounding);
}

TEST_CASE("weights over the tokens that are no less decided") {
  Vector scores(3), entropies(3);
  scores << std::log(1.0), std::log(3.0), std::log(4.0);
  entropies << 0.5, 0.2, 0.9;
  const DecidedWeights first = decided_weights(scores, entropies, 0);
  CHECK(std::abs(first.weights[0] - 0.25) < kRounding);
  CHECK(std::abs(first.weights[1] - 0.75) < kRounding);
  CHECK(first.weights[2] == 0);
  CHECK(std::abs(first.log_odds - std::log(3.0)) < kRounding);
  const DecidedWeights second = decided_weights(scores, entropies, 1);
  CHECK(second.weights[1] == 1);
  CHECK(std::isinf(second.log_odds));
}

TEST_CASE("categories are drawn with their probabilities") {
  Engine engine(3);
  const Eigen::RowVector3d probabilities(0.2, 0, 0.8);
  constexpr int kDraws = 20000;
  int counts[3] = {};
  for (int i = 0; i < kDraws; ++i) ++counts[draw_category(engine, probabilities)];
  CHECK(counts[1] == 0);
  CHECK(std::abs(counts[0] - 0.2 * kDraws) < 5 * std::sqrt(0.2 * 0.8 * kDraws));
}

TEST_CASE("means of the samplers: those of the source, and no others") {
  CHECK(verdict_of(check_plain_mean(kEffort)) == CheckVerdict::holds);
  const auto likeliest = [](const TokenMixture& mixture, const Vector& token) -> Vector {
    Eigen::Index best = 0;
    mixture.routing(token.transpose()).row(0).maxCoeff(&best);
    return mixture.answers(token).row(best).transpose();
  };
  CHECK(verdict_of(check_plain_mean(kEffort, likeliest)) == CheckVerdict::fails);
  CHECK(verdict_of(check_similarity_aware_mean(kEffort)) == CheckVerdict::holds);
  const auto unmixed = [](const Matrix&, const Matrix& routing) { return routing; };
  CHECK(verdict_of(check_similarity_aware_mean(kEffort, unmixed)) == CheckVerdict::fails);
  CHECK(verdict_of(check_attention_mean(kEffort, true)) == CheckVerdict::holds);
  CHECK(verdict_of(check_attention_mean(kEffort, false)) == CheckVerdict::fails);
}

TEST_CASE("lemma 1 against draws: not with another noise, nor with the priors, nor with heads alike") {
  CHECK(verdict_of(check_posterior(kEffort)) == CheckVerdict::holds);
  const auto louder = [](const AttentionHeads& heads, const Matrix& x, const Matrix& u, double sigma) {
    return head_posterior(heads, x, u, 1.2 * sigma);
  };
  CHECK(verdict_of(check_posterior(kEffort, louder)) == CheckVerdict::fails);
  const auto prior = [](const AttentionHeads& heads, const Matrix& x, const Matrix& u, double sigma) {
    HeadPosterior posterior = head_posterior(heads, x, u, sigma);
    for (int h = 0; h < heads.heads(); ++h)
      posterior.log_positions[static_cast<std::size_t>(h)] = heads.log_attention(x, h);
    return posterior;
  };
  CHECK(verdict_of(check_posterior(kEffort, prior)) == CheckVerdict::fails);
  const auto alike = [](const AttentionHeads& heads, const Matrix& x, const Matrix& u, double sigma) {
    HeadPosterior posterior = head_posterior(heads, x, u, sigma);
    posterior.heads.setConstant(1.0 / heads.heads());
    return posterior;
  };
  CHECK(verdict_of(check_posterior(kEffort, alike)) == CheckVerdict::fails);
}

TEST_CASE("the point estimate: a gap of the Laplacian from noise, and one that stays") {
  CHECK(verdict_of(check_noise_gap(kEffort)) == CheckVerdict::holds);
  const auto twice = [](const TokenMixture& mixture, const Vector& token) -> Vector {
    return 2 * output_laplacian(mixture, token);
  };
  CHECK(verdict_of(check_noise_gap(kEffort, twice)) == CheckVerdict::fails);
  const CheckFinding gap = check_point_estimate(kEffort);
  CHECK(verdict_of(gap) == CheckVerdict::fails);
  CHECK(gap.measured > 0.05);
  // One expert is linear: no curvature, no gap.
  Engine engine(4);
  const TokenMixture single = draw_mixture(engine, 1, 4, 2);
  CHECK(output_laplacian(single, draw_normals(engine, 4, 1)).norm() < 1e-8);
}

TEST_CASE("likelihoods survive in logarithms, precisely where squares are subtracted as a product") {
  CHECK(verdict_of(check_proper(kEffort, product_posterior)) == CheckVerdict::fails);
  CHECK(check_proper(kEffort, product_posterior).measured == 0);
  CHECK(verdict_of(check_proper(kEffort, log_space_posterior)) == CheckVerdict::holds);
  CHECK(verdict_of(check_precise(kEffort)) == CheckVerdict::holds);
  const auto squares = [](const Vector& log_prior, const Vector& token, const Matrix& centres,
                          double sigma) -> Vector {
    const Vector distances = (centres.rowwise() - token.transpose()).rowwise().squaredNorm();
    const Vector joint = log_prior - distances / (2 * sigma * sigma);
    return log_softmax(joint.transpose()).transpose();
  };
  CHECK(verdict_of(check_proper(kEffort, squares)) == CheckVerdict::holds);
  CHECK(verdict_of(check_precise(kEffort, squares)) == CheckVerdict::fails);
}

TEST_CASE("the head of Eq. 14 has its prior on average, and not all of the posterior") {
  CHECK(verdict_of(check_single_head(kEffort, 0.5)) == CheckVerdict::holds);
  CHECK(verdict_of(check_single_head(kEffort, 0.55)) == CheckVerdict::fails);
  CHECK(verdict_of(check_single_head(kEffort, 1)) == CheckVerdict::fails);
}

}  // namespace moelab::models_test
