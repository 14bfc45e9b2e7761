#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/metrics/routing.h"
#include "analysis/theory/check.h"
#include "analysis/theory/graph_of_tokens2025.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Matrix TokenMixture::routing(const Matrix& tokens) const {
  return softmax(tokens * router.transpose());
}

Matrix TokenMixture::answers(const Vector& token) const {
  const Vector linear = slopes * token;
  return MatrixView(linear.data(), experts(), outputs()) + values;
}

Vector TokenMixture::output(const Vector& token) const {
  return (routing(token.transpose()) * answers(token)).transpose();
}

TokenMixture draw_mixture(Engine& engine, int experts, int dim, int outputs) {
  const Matrix router = draw_normals(engine, experts, dim);
  const Matrix slopes = draw_normals(engine, experts * outputs, dim, 1 / std::sqrt(dim));
  return {router, slopes, draw_normals(engine, experts, outputs)};
}

Matrix log_similarity(const Matrix& tokens, double temperature) {
  return log_softmax(tokens * tokens.transpose() / temperature);
}

Matrix AttentionHeads::log_attention(const Matrix& x, int head) const {
  const std::size_t h = static_cast<std::size_t>(head);
  const Matrix queries = x * query[h].transpose(), keys = x * key[h].transpose();
  return log_softmax(queries * keys.transpose() / std::sqrt(static_cast<double>(query[h].rows())));
}

Matrix AttentionHeads::centres(const Matrix& x, int head) const {
  return x * value[static_cast<std::size_t>(head)];
}

Matrix AttentionHeads::output(const Matrix& x) const {
  Matrix sum = Matrix::Zero(x.rows(), x.cols());
  for (int h = 0; h < heads(); ++h) sum += Matrix(log_attention(x, h).array().exp()) * centres(x, h);
  return sum / heads();
}

AttentionHeads draw_heads(Engine& engine, int heads, int dim, int query_dim) {
  AttentionHeads drawn;
  const double scale = 1 / std::sqrt(dim);
  for (int h = 0; h < heads; ++h) {
    drawn.query.push_back(draw_normals(engine, query_dim, dim, scale));
    drawn.key.push_back(draw_normals(engine, query_dim, dim, scale));
    drawn.value.push_back(draw_normals(engine, dim, dim, scale));
  }
  return drawn;
}

Vector log_likelihood_ratios(const Vector& token, const Matrix& centres, double sigma) {
  const Matrix offsets = centres.rowwise() - token.transpose();
  Eigen::Index nearest = 0;
  offsets.rowwise().squaredNorm().minCoeff(&nearest);
  const Matrix differences = centres.rowwise() - centres.row(nearest);
  const Matrix sums = offsets.rowwise() + offsets.row(nearest);
  return -differences.cwiseProduct(sums).rowwise().sum() / (2 * sigma * sigma);
}

Matrix HeadPosterior::experts(const Matrix& routing) const {
  Matrix probabilities = Matrix::Zero(routing.rows(), routing.cols());
  for (Eigen::Index h = 0; h < heads.cols(); ++h) {
    const Matrix positions = log_positions[static_cast<std::size_t>(h)].array().exp();
    probabilities += heads.col(h).asDiagonal() * (positions * routing);
  }
  return probabilities;
}

HeadPosterior head_posterior(const AttentionHeads& heads, const Matrix& x, const Matrix& u, double sigma) {
  const Eigen::Index tokens = x.rows(), count = heads.heads();
  Matrix centres(count * tokens, x.cols()), log_prior(tokens, count * tokens);
  for (Eigen::Index h = 0; h < count; ++h) {
    centres.middleRows(h * tokens, tokens) = heads.centres(x, static_cast<int>(h));
    log_prior.middleCols(h * tokens, tokens) = heads.log_attention(x, static_cast<int>(h));
  }
  Matrix log_joint = log_prior;
  for (Eigen::Index i = 0; i < tokens; ++i) {
    log_joint.row(i) += log_likelihood_ratios(u.row(i).transpose(), centres, sigma).transpose();
  }
  HeadPosterior posterior;
  Matrix log_evidence(tokens, count);
  for (Eigen::Index h = 0; h < count; ++h) {
    const Matrix own = log_joint.middleCols(h * tokens, tokens);
    posterior.log_positions.push_back(log_softmax(own));
    // log Σ_j exp(a_j) = a_k − log softmax(a)_k for any k: here the largest.
    for (Eigen::Index i = 0; i < tokens; ++i) {
      Eigen::Index peak = 0;
      const double value = own.row(i).maxCoeff(&peak);
      log_evidence(i, h) = value - posterior.log_positions.back()(i, peak);
    }
  }
  posterior.heads = softmax(log_evidence);
  return posterior;
}

int decided_head(const AttentionHeads& heads, const Matrix& x) {
  int best = 0;
  double least = kInfinity;
  for (int h = 0; h < heads.heads(); ++h) {
    const double mean = routing_entropy(Matrix(heads.log_attention(x, h).array().exp()));
    if (mean >= least) continue;
    least = mean;
    best = h;
  }
  return best;
}

DecidedWeights decided_weights(const Vector& log_scores, const Vector& entropies, Eigen::Index token) {
  Matrix restricted = Matrix::Constant(1, log_scores.size(), -kInfinity);
  for (Eigen::Index j = 0; j < log_scores.size(); ++j) {
    if (entropies[j] <= entropies[token]) restricted(0, j) = log_scores[j];
  }
  std::vector<double> ordered(restricted.data(), restricted.data() + restricted.size());
  std::sort(ordered.begin(), ordered.end(), std::greater<>());
  return {softmax(restricted).transpose(), ordered.size() > 1 ? ordered[0] - ordered[1] : kInfinity};
}

namespace {

/// Sets e ~ Cat(routing) and o ~ N(g_e(u), I) of a draw whose input u is set.
void draw_answer(const TokenMixture& mixture, const Eigen::Ref<const Eigen::RowVectorXd>& routing,
                 TokenDraw& draw, Engine& engine) {
  draw.expert = draw_category(engine, routing);
  draw.output = mixture.answers(draw.input).row(draw.expert).transpose();
  for (double& value : draw.output) value += draw_normal(engine);
}

}  // namespace

int draw_category(Engine& engine, const Eigen::Ref<const Eigen::RowVectorXd>& probabilities) {
  double left = draw_uniform(engine);
  const Eigen::Index last = probabilities.size() - 1;
  for (Eigen::Index i = 0; i < last; ++i) {
    left -= probabilities[i];
    if (left < 0) return static_cast<int>(i);
  }
  return static_cast<int>(last);
}

TokenDraw draw_plain(const TokenMixture& mixture, const Vector& token, Engine& engine) {
  TokenDraw draw;
  draw.input = token;
  draw_answer(mixture, mixture.routing(token.transpose()).row(0), draw, engine);
  return draw;
}

TokenDraw draw_similarity_aware(const TokenMixture& mixture, const Matrix& tokens, const Matrix& similarity,
                                Eigen::Index i, Engine& engine) {
  TokenDraw draw;
  draw.input = tokens.row(i).transpose();
  draw.source = draw_category(engine, similarity.row(i));
  draw_answer(mixture, mixture.routing(tokens.row(draw.source)).row(0), draw, engine);
  return draw;
}

AttentionModel::AttentionModel(const TokenMixture& mixture, const AttentionHeads& heads, const Matrix& x,
                               double sigma)
    : mixture_(mixture), sigma_(sigma) {
  for (int h = 0; h < heads.heads(); ++h) {
    attention_.push_back(heads.log_attention(x, h).array().exp());
    centres_.push_back(heads.centres(x, h));
  }
}

TokenDraw AttentionModel::draw_input(Eigen::Index i, Engine& engine) const {
  TokenDraw draw;
  draw.head = draw_index(engine, static_cast<int>(attention_.size()));
  const std::size_t h = static_cast<std::size_t>(draw.head);
  draw.source = draw_category(engine, attention_[h].row(i));
  draw.input = centres_[h].row(draw.source).transpose();
  for (double& value : draw.input) value += sigma_ * draw_normal(engine);
  return draw;
}

TokenDraw AttentionModel::draw_plain_routing(Eigen::Index i, Engine& engine) const {
  TokenDraw draw = draw_input(i, engine);
  draw_answer(mixture_, mixture_.routing(draw.input.transpose()).row(0), draw, engine);
  return draw;
}

std::vector<TokenDraw> AttentionModel::draw_attention_aware(Engine& engine) const {
  const Eigen::Index tokens = attention_[0].rows();
  std::vector<TokenDraw> draws;
  Matrix inputs(tokens, centres_[0].cols());
  for (Eigen::Index i = 0; i < tokens; ++i) {
    draws.push_back(draw_input(i, engine));
    inputs.row(i) = draws.back().input.transpose();
  }
  const Matrix routing = mixture_.routing(inputs);
  for (TokenDraw& draw : draws) draw_answer(mixture_, routing.row(draw.source), draw, engine);
  return draws;
}

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
