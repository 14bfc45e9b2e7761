/// Similarity-aware and attention-aware routers.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "app/scenario/schema.h"
#include "sim/model/expert/expert.h"
#include "sim/model/network.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/router/router_probe.h"

namespace moelab::mixing_router_test {
namespace {

constexpr int kInputs = 3, kExperts = 4, kTokens = 5, kSamples = 2, kHeads = 3, kRows = kSamples * kTokens;
constexpr std::size_t kStride = kernels::padded(kInputs), kScores = kernels::padded(kExperts),
                      kWeights = kernels::padded(kTokens);

/// Sums of a few terms of order one, rounded in double.
constexpr double kRounding = 1e-13;
constexpr double kStep = RouterProbe::kStep;

std::vector<double> normal_rows(std::uint64_t seed, double scale) {
  Engine engine = Seeds{seed, 0}.stream(Purpose::train_data);
  std::vector<double> rows(kRows * kInputs);
  for (double& value : rows) value = scale * draw_normal(engine);
  return rows;
}

/// A router of given fields on random rows, behind the attention of other random rows.
struct Example : StartedRouter {
  explicit Example(const Json& fields, double scale = 1)
      : StartedRouter(resolve_options<RouterOptions>(fields, "router"),
                      {.input_dim = kInputs, .experts = kExperts}, {{1, 0}}),
        attention(attention_of(normal_rows(6, scale), kInputs, kTokens, kHeads, {{1, 0}})),
        x(normal_rows(5, scale)),
        scores(kRows * kScores) {}
  RouterContext<double> context(double progress = 0) const {
    RouterContext<double> context;
    context.x = rows_of(x.data(), kRows, kInputs);
    context.tokens = kTokens;
    context.signals.attention = &attention;
    context.progress = progress;
    return context;
  }
  /// p (n, E) after a forward pass.
  Matrix probabilities(double progress = 0) {
    output = router->forward(context(progress), parameters.data(), *scratch, scores.data());
    return matrix_of(scores.data()).unaryExpr([](double score) { return std::exp(score); });
  }
  /// r (n, E) of the last forward pass.
  Matrix base() const { return matrix_of(output.base_probabilities); }
  /// The (n, E) that lie as scores do.
  static Matrix matrix_of(const double* entries) {
    return Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>(entries, kRows, kExperts,
                                                             Eigen::OuterStride<>(kScores));
  }
  AttentionState<double> attention;
  std::vector<double> x;
  AlignedVector<double> scores;
  RouterOutput<double> output;
};

double largest_difference(const Matrix& left, const Matrix& right) {
  return (left - right).cwiseAbs().maxCoeff();
}

Matrix softmax(const Matrix& logits) {
  Matrix weights(logits.rows(), logits.cols());
  for (Eigen::Index i = 0; i < logits.rows(); ++i) {
    const Eigen::RowVectorXd mass = (logits.row(i).array() - logits.row(i).maxCoeff()).exp();
    weights.row(i) = mass / mass.sum();
  }
  return weights;
}

/// p by the formula, from S (s, s) of every sequence and r.
template <class WeightsOf>
Matrix mixed(const Matrix& r, const WeightsOf& weights_of) {
  Matrix p(kRows, kExperts);
  for (int sample = 0; sample < kSamples; ++sample) {
    p.middleRows(sample * kTokens, kTokens) = weights_of(sample) * r.middleRows(sample * kTokens, kTokens);
  }
  return p;
}

/// Logits log A_h[i, j] − ‖u_i − c_hj‖² / (2σ²) of a sequence and head.
Matrix joint_logits(const AttentionState<double>& attention, int sample, int head, double sigma) {
  Matrix logits(kTokens, kTokens);
  for (int i = 0; i < kTokens; ++i) {
    for (int j = 0; j < kTokens; ++j) {
      double square = 0;
      for (std::size_t q = 0; q < kInputs; ++q) {
        const std::size_t u = size(sample * kTokens + i) * kStride + q;
        const std::size_t c = size(head * kRows + sample * kTokens + j) * kStride + q;
        square += std::pow(attention.outputs[u] - attention.centres[c], 2);
      }
      const std::size_t at = size((sample * kHeads + head) * kTokens + i) * kWeights + size(j);
      logits(i, j) = attention.log_weights[at] - square / (2 * sigma * sigma);
    }
  }
  return logits;
}

TEST_CASE("similarity-aware routing is the formula, and mixes within a sequence") {
  constexpr double kTau = 0.7;
  Example example({{"kind", "similarity_aware"}, {"tau", kTau}});
  const Matrix p = example.probabilities(), r = example.base();
  const MatrixView u(example.x.data(), kRows, kInputs);
  const auto weights_of = [&](int sample) -> Matrix {
    const Matrix own = u.middleRows(sample * kTokens, kTokens);
    return softmax(own * own.transpose() / kTau);
  };
  CHECK(largest_difference(p, mixed(r, weights_of)) < kRounding);
  CHECK((p.rowwise().sum().array() - 1).abs().maxCoeff() < kRounding);
  CHECK(largest_difference(p, r) > 0.01);
  // At a tiny τ a token of the largest norm of all listens to itself alone.
  Example sharp({{"kind", "similarity_aware"}, {"tau", 1e-3}});
  const Matrix alone = sharp.probabilities();
  Eigen::Index longest = 0;
  u.rowwise().squaredNorm().maxCoeff(&longest);
  CHECK(largest_difference(alone.row(longest), sharp.base().row(longest)) < kRounding);
}

TEST_CASE("attention-aware routing is the formula, for the head of lowest entropy and for all of them") {
  constexpr double kSigma = 0.8;
  for (const char* head : {"lowest_entropy", "posterior"}) {
    CAPTURE(head);
    Example example({{"kind", "attention_aware"}, {"sigma", kSigma}, {"head", head}});
    const Matrix p = example.probabilities(), r = example.base();
    const auto lowest = [&](int sample) {
      int best = 0;
      double least = std::numeric_limits<double>::infinity();
      for (int h = 0; h < kHeads; ++h) {
        double entropy = 0;
        for (int i = 0; i < kTokens; ++i) {
          for (std::size_t j = 0; j < kTokens; ++j) {
            const std::size_t at = size((sample * kHeads + h) * kTokens + i) * kWeights + j;
            entropy -= example.attention.weights[at] * std::log(example.attention.weights[at]);
          }
        }
        if (entropy < least) best = h;
        least = std::min(least, entropy);
      }
      return best;
    };
    const auto posterior_of = [&](int sample) -> Matrix {
      Matrix logits(kTokens, kHeads * kTokens);
      for (int h = 0; h < kHeads; ++h) {
        logits.middleCols(h * kTokens, kTokens) = joint_logits(example.attention, sample, h, kSigma);
      }
      const Matrix all = softmax(logits);
      Matrix sum = Matrix::Zero(kTokens, kTokens);
      for (int h = 0; h < kHeads; ++h) sum += all.middleCols(h * kTokens, kTokens);
      return sum;
    };
    const auto chosen_of = [&](int sample) -> Matrix {
      return softmax(joint_logits(example.attention, sample, lowest(sample), kSigma));
    };
    const Matrix of_all = mixed(r, posterior_of), of_chosen = mixed(r, chosen_of);
    const bool all = std::string(head) == "posterior";
    CHECK(largest_difference(p, all ? of_all : of_chosen) < kRounding);
    CHECK(largest_difference(p, all ? of_chosen : of_all) > 0.001);
  }
}

TEST_CASE("attention-aware routers: gradients in weights, centres and outputs of the attention") {
  for (const char* head : {"lowest_entropy", "posterior"}) {
    CAPTURE(head);
    Example example({{"kind", "attention_aware"}, {"sigma", 0.8}, {"head", head}});
    Engine engine(3);
    AlignedVector<double> upstream(kRows * kScores, 0.0);
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t e = 0; e < kExperts; ++e) upstream[i * kScores + e] = draw_normal(engine);
    }
    const auto value = [&] {
      example.router->forward(example.context(), example.parameters.data(), *example.scratch,
                              example.scores.data());
      double sum = 0;
      for (std::size_t i = 0; i < upstream.size(); ++i) sum += upstream[i] * example.scores[i];
      return sum;
    };
    value();
    AttentionState<double>& state = example.attention;
    AttentionGradients<double> gradients;
    AlignedVector<double> of_parameters(example.parameters.size()), inputs(kRows * kStride);
    RouterContext<double> context = example.context();
    context.signals.attention_gradients = &gradients;
    example.router->backward(context, example.parameters.data(), *example.scratch,
                             {upstream.data(), nullptr, of_parameters.data(), inputs.data()});
    CHECK(gradients.used);
    const auto check = [&](AlignedVector<double>& entries, const AlignedVector<double>& exact, int columns) {
      const std::size_t stride = size(kernels::padded(columns));
      GradientComparison comparison;
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (i % stride >= size(columns)) continue;
        const double kept = entries[i];
        entries[i] = kept + kStep;
        const double above = value();
        entries[i] = kept - kStep;
        const double difference = (above - value()) / (2 * kStep);
        entries[i] = kept;
        comparison.add(exact[i], difference);
      }
      comparison.check(RouterProbe::kTolerance);
    };
    check(state.log_weights, gradients.log_weights, kTokens);
    check(state.centres, gradients.centres, kInputs);
    check(state.outputs, gradients.outputs, kInputs);
  }
}

TEST_CASE("sigma 1e-3, temperatures 1e-3 and distances of 1e3 leave numbers, and the right ones") {
  for (const Json& fields : {Json{{"kind", "attention_aware"}, {"sigma", 1e-3}},
                             Json{{"kind", "attention_aware"}, {"sigma", 1e-3}, {"head", "posterior"}},
                             Json{{"kind", "similarity_aware"}, {"tau", 1e-3}}}) {
    CAPTURE(fields.dump());
    Example example(fields, 1e3);
    const Matrix p = example.probabilities(), r = example.base();
    CHECK(p.allFinite());
    CHECK((p.rowwise().sum().array() - 1).abs().maxCoeff() < kRounding);
    for (const double score : example.scores) CHECK(std::isfinite(score));
    // S is one-hot: every token routes as one of its sequence does.
    for (int i = 0; i < kRows; ++i) {
      const Matrix own = r.middleRows(i / kTokens * kTokens, kTokens);
      CHECK((own.rowwise() - p.row(i)).cwiseAbs().rowwise().maxCoeff().minCoeff() < kRounding);
    }
    AlignedVector<double> gradient(example.parameters.size()), inputs(kRows * kStride);
    const AlignedVector<double> upstream(kRows * kScores, 1.0);
    example.router->backward(example.context(), example.parameters.data(), *example.scratch,
                             {upstream.data(), nullptr, gradient.data(), inputs.data()});
    for (const double value : gradient) CHECK(std::isfinite(value));
    for (const double value : inputs) CHECK(std::isfinite(value));
  }
}

TEST_CASE("a probability that underflows keeps its logarithm") {
  // With S nearly one-hot, γ_i is the base's own log-softmax: here down to −3000, far below log of the least
  // double.
  Example example(
      {{"kind", "similarity_aware"}, {"tau", 1e-4}, {"base", {{"kind", "linear"}, {"init_scale", 1000}}}});
  example.probabilities();
  const double lowest = Example::matrix_of(example.scores.data()).minCoeff();
  CHECK(std::isfinite(lowest));
  CHECK(lowest < -1000);
}

TEST_CASE("tau moves to tau_end over the steps by its schedule") {
  const auto at = [](const Json& fields, double progress) {
    Json spec = {{"kind", "similarity_aware"}};
    spec.update(fields);
    return Example(spec).probabilities(progress);
  };
  const auto fixed = [&](double tau) { return at({{"tau", tau}}, 0.3); };
  const auto moving = [](const char* schedule) {
    return Json{{"tau", 4}, {"tau_end", 0.25}, {"tau_schedule", schedule}};
  };
  const double cosine = 4 - 3.75 * (1 - std::cos(std::numbers::pi * 0.3)) / 2;
  CHECK(largest_difference(at(moving("linear"), 0.3), fixed(4 - 3.75 * 0.3)) < kRounding);
  CHECK(largest_difference(at(moving("cosine"), 0.3), fixed(cosine)) < kRounding);
  CHECK(largest_difference(at(moving("geometric"), 0.3), fixed(4 * std::pow(16, -0.3))) < kRounding);
  for (const char* schedule : {"linear", "cosine", "geometric"}) {
    CHECK(largest_difference(at(moving(schedule), 0), fixed(4)) < kRounding);
    CHECK(largest_difference(at(moving(schedule), 1), fixed(0.25)) < kRounding);
  }
  CHECK(largest_difference(at(moving("linear"), 0.3), at(moving("cosine"), 0.3)) > 0.001);
}

TEST_CASE("a frozen base is a group of its own, and what mixes may still learn") {
  using Similarity = SimilarityAwareRouterOptions::Similarity;
  const auto groups = [](Similarity similarity) {
    ModelOptions options;
    options.experts = kExperts;
    options.router =
        SimilarityAwareRouterOptions{.base = LinearBaseOptions{.trainable = false}, .similarity = similarity};
    options.expert = ConstantExpertOptions{};
    const Layout layout{.input_dim = kInputs, .output_dim = 1, .sequences = true, .tokens = kTokens};
    return Network<double>(options, layout).groups();
  };
  const std::vector<ParameterGroup> learned = groups(Similarity::learned);
  REQUIRE(learned.size() == 3);
  CHECK_FALSE(learned[0].trainable);
  CHECK(learned[0].end == kInputs * kScores);
  CHECK(learned[1].trainable);
  CHECK(learned[1].role == ParameterGroup::Role::router);
  CHECK(learned[1].end - learned[1].begin == kInputs * kStride);
  const std::vector<ParameterGroup> fixed = groups(Similarity::identity);  // nothing is left to learn
  REQUIRE(fixed.size() == 2);
  CHECK_FALSE(fixed[0].trainable);
  CHECK(fixed[1].role == ParameterGroup::Role::expert);
}

}  // namespace
}  // namespace moelab::mixing_router_test
