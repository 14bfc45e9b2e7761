#include "analysis/theory/graph_of_tokens2025/models.h"

#include <cmath>

#include "analysis/theory/extremes.h"

namespace moelab {
namespace {

constexpr int kModelTokens = 6, kModelDim = 4, kModelExperts = 4, kModelOutputs = 2, kModelHeads = 2,
              kModelQueryDim = 3;
constexpr double kModelSigma = 0.7;
constexpr int kModelProblems = 4, kModelDraws = 10000;
/// Of up to a few hundred means none deviates by more, but for one root in some thousand.
constexpr double kModelStandardErrors = 5;

/// Means of vectors whose expectation is claimed to be zero.
class MeanOfZero {
 public:
  explicit MeanOfZero(Eigen::Index size) : sum_(Vector::Zero(size)), squares_(Vector::Zero(size)) {}
  void add(const Vector& values) {
    sum_ += values;
    squares_ += values.cwiseAbs2();
    ++count_;
  }
  /// max_j |m_j| / (s_j / √n); infinite where a value other than zero never varies.
  double largest_deviation() const {
    double largest = 0;
    for (Eigen::Index j = 0; j < sum_.size(); ++j) {
      if (squares_[j] == 0) continue;
      const double mean = sum_[j] / count_, variance = squares_[j] / count_ - mean * mean;
      largest = larger(largest, std::abs(mean) / std::sqrt(variance / count_));
    }
    return largest;
  }

 private:
  Vector sum_;
  Vector squares_;
  double count_ = 0;
};

CheckFinding zero_on_average(double largest, int draws) {
  CheckFinding finding;
  finding.measured = largest;
  finding.error_bound = kModelStandardErrors;
  finding.error_origin = "5 standard errors";
  finding.details = {{"problems", kModelProblems}, {"draws of each", draws}};
  return finding;
}

Vector indicator(Eigen::Index size, int place) {
  return Vector::Unit(size, place);
}

}  // namespace

Vector mixture_output(const TokenMixture& mixture, const Vector& token) {
  return mixture.output(token);
}

CheckFinding check_plain_mean(const CheckEffort& effort, const PlainEstimate& estimate) {
  double largest = 0;
  const int draws = kModelDraws * effort.seeds;
  for (int problem = 0; problem < kModelProblems; ++problem) {
    Engine engine = check_stream(effort, "graph_of_tokens2025.moe.mean", problem);
    const TokenMixture mixture = draw_mixture(engine, kModelExperts, kModelDim, kModelOutputs);
    const Vector token = draw_normals(engine, kModelDim, 1);
    const Vector expected = estimate(mixture, token);
    MeanOfZero mean(kModelOutputs);
    for (int i = 0; i < draws; ++i) mean.add(draw_plain(mixture, token, engine).output - expected);
    largest = larger(largest, mean.largest_deviation());
  }
  return zero_on_average(largest, draws);
}

Matrix routing_of_similar(const Matrix& similarity, const Matrix& routing) {
  return similarity * routing;
}

CheckFinding check_similarity_aware_mean(const CheckEffort& effort, const MixedRouting& mixed) {
  double largest = 0;
  const int draws = kModelDraws * effort.seeds;
  for (int problem = 0; problem < kModelProblems; ++problem) {
    Engine engine = check_stream(effort, "graph_of_tokens2025.sam.mean", problem);
    const TokenMixture mixture = draw_mixture(engine, kModelExperts, kModelDim, kModelOutputs);
    const Matrix tokens = draw_normals(engine, kModelTokens, kModelDim);
    const Matrix similarity = log_similarity(tokens, 1).array().exp();
    const Vector shares = mixed(similarity, mixture.routing(tokens)).row(0).transpose();
    const Vector expected = mixture.answers(tokens.row(0).transpose()).transpose() * shares;
    MeanOfZero mean(kModelExperts + kModelOutputs);
    Vector difference(kModelExperts + kModelOutputs);
    for (int i = 0; i < draws; ++i) {
      const TokenDraw draw = draw_similarity_aware(mixture, tokens, similarity, 0, engine);
      difference << indicator(kModelExperts, draw.expert) - shares, draw.output - expected;
      mean.add(difference);
    }
    largest = larger(largest, mean.largest_deviation());
  }
  return zero_on_average(largest, draws);
}

CheckFinding check_attention_mean(const CheckEffort& effort, bool transposed) {
  double largest = 0;
  const int draws = kModelDraws * effort.seeds;
  for (int problem = 0; problem < kModelProblems; ++problem) {
    Engine engine = check_stream(effort, "graph_of_tokens2025.mam.mean", problem);
    const TokenMixture mixture = draw_mixture(engine, kModelExperts, kModelDim, kModelOutputs);
    const AttentionHeads heads = draw_heads(engine, kModelHeads, kModelDim, kModelQueryDim);
    const Matrix x = draw_normals(engine, kModelTokens, kModelDim);
    const Vector expected = heads.output(x).row(0).transpose();
    // Row j of X W_h is W_h^T x_j.
    AttentionHeads drawn = heads;
    for (Matrix& value : drawn.value) {
      if (!transposed) value.transposeInPlace();
    }
    const AttentionModel model(mixture, drawn, x, kModelSigma);
    MeanOfZero mean(kModelDim);
    for (int i = 0; i < draws; ++i) mean.add(model.draw_plain_routing(0, engine).input - expected);
    largest = larger(largest, mean.largest_deviation());
  }
  return zero_on_average(largest, draws);
}

CheckFinding check_posterior(const CheckEffort& effort, const PosteriorRule& rule) {
  constexpr Eigen::Index kIndicators = kModelHeads + kModelTokens + kModelExperts;
  double largest = 0, distance = 0;
  const int draws = kModelDraws / 2 * effort.seeds;
  for (int problem = 0; problem < kModelProblems; ++problem) {
    Engine engine = check_stream(effort, "graph_of_tokens2025.lemma1.posterior", problem);
    const TokenMixture mixture = draw_mixture(engine, kModelExperts, kModelDim, kModelOutputs);
    const AttentionHeads heads = draw_heads(engine, kModelHeads, kModelDim, kModelQueryDim);
    const Matrix x = draw_normals(engine, kModelTokens, kModelDim);
    const AttentionModel model(mixture, heads, x, kModelSigma);
    const int single = decided_head(heads, x);
    MeanOfZero mean(kIndicators * (1 + kModelDim));
    Vector difference(kIndicators), products(kIndicators * (1 + kModelDim)), functions(1 + kModelDim);
    Matrix u(kModelTokens, kModelDim);
    for (int i = 0; i < draws; ++i) {
      const std::vector<TokenDraw> sequence = model.draw_attention_aware(engine);
      for (int t = 0; t < kModelTokens; ++t) {
        u.row(t) = sequence[static_cast<std::size_t>(t)].input.transpose();
      }
      const Matrix routing = mixture.routing(u);
      const HeadPosterior posterior = rule(heads, x, u, kModelSigma);
      Vector positions = Vector::Zero(kModelTokens);
      for (Eigen::Index h = 0; h < kModelHeads; ++h) {
        positions += posterior.heads(0, h) *
                     Vector(posterior.log_positions[static_cast<std::size_t>(h)].row(0).array().exp());
      }
      const Vector experts = posterior.experts(routing).row(0).transpose();
      const TokenDraw& token = sequence.front();
      difference << indicator(kModelHeads, token.head) - posterior.heads.row(0).transpose(),
          indicator(kModelTokens, token.source) - positions, indicator(kModelExperts, token.expert) - experts;
      functions << 1, token.input;
      for (Eigen::Index f = 0; f <= kModelDim; ++f) {
        products.segment(f * kIndicators, kIndicators) = functions[f] * difference;
      }
      mean.add(products);
      const Eigen::RowVectorXd of_head =
          posterior.log_positions[static_cast<std::size_t>(single)].row(0).array().exp();
      distance += ((of_head * routing).transpose() - experts).cwiseAbs().sum() / 2 / (draws * kModelProblems);
    }
    largest = larger(largest, mean.largest_deviation());
  }
  CheckFinding finding = zero_on_average(largest, draws);
  finding.details.emplace_back("total variation to the experts of Eq. 14's single head, mean", distance);
  return finding;
}

std::vector<Check> graph_of_tokens2025_model_checks() {
  const std::string source = "Nguyen et al. 2025, ", id = "graph_of_tokens2025.";
  const std::string in_errors = " (largest deviation of a mean, in standard errors)";
  return {
      {id + "moe.mean", source + "Eqs. 3, 4",
       "E[o | u] = MoE(u) for e ~ Cat(r(u)), o ~ N(g_e(u), I)" + in_errors, CheckVerdict::holds,
       [](const CheckEffort& effort) { return check_plain_mean(effort); }},
      {id + "sam.mean", source + "Definition 1, Eqs. 6, 7",
       "P(e_i = e | U) = sum_j S_ij r_e(u_j) and E[o_i | U] is its sum over g_e(u_i)" + in_errors,
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_similarity_aware_mean(effort); }},
      {id + "mam.mean.as_printed", source + "Definition 3, appendix C",
       "E[u_i | X] = MHA(X)_i = (1/H) sum_h (A_h X W_h)_i for u_i ~ N(W_h x_z, sigma^2 I)" + in_errors,
       CheckVerdict::fails, [](const CheckEffort& effort) { return check_attention_mean(effort, false); }},
      {id + "mam.mean.corrected", source + "Definition 3, appendix C",
       "the same for u_i ~ N(W_h^T x_z, sigma^2 I), tokens being rows" + in_errors, CheckVerdict::holds,
       [](const CheckEffort& effort) { return check_attention_mean(effort, true); }},
      {id + "lemma1.posterior", source + "Lemma 1, Definition 4",
       "h, z and e of the attention-aware model given U have the probabilities H^p, A^p and sum_hj H^p A^p "
       "r(u_j): indicators less probabilities, times 1 and u_i, are zero on average" +
           in_errors,
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_posterior(effort); }}};
}

}  // namespace moelab
