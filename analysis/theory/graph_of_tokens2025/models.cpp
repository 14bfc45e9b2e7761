#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "analysis/metrics/routing.h"
#include "analysis/theory/graph_of_tokens2025.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

/// log N(u; c_j, σ² I) − log N(u; c*, σ² I) for each row c_j of `centres` (m, d), c* the nearest to u. The
/// difference of squares is −(c_j − c*)ᵀ(c_j + c* − 2u) / (2σ²), so that equal distances cancel exactly.
Vector log_likelihood_ratios(const Vector& token, const Matrix& centres, double sigma) {
  const Matrix offsets = centres.rowwise() - token.transpose();
  Eigen::Index nearest = 0;
  offsets.rowwise().squaredNorm().minCoeff(&nearest);
  const Matrix differences = centres.rowwise() - centres.row(nearest);
  const Matrix sums = offsets.rowwise() + offsets.row(nearest);
  return -differences.cwiseProduct(sums).rowwise().sum() / (2 * sigma * sigma);
}

constexpr int kModelTokens = 6, kModelDim = 4, kModelExperts = 4, kModelOutputs = 2, kModelHeads = 2,
              kModelQueryDim = 3;
constexpr double kModelSigma = 0.7;
constexpr int kModelProblems = 4, kModelDraws = 10000;
/// For the largest of a few hundred means. About one root in some thousand exceeds it.
constexpr double kModelStandardErrors = 5;

/// The latent variables and the output of one token, as the four generative models draw them.
struct TokenDraw {
  int head = 0;        ///< h_i
  int source = 0;      ///< s_i or z_i: the token whose routing or value is taken
  int expert = 0;      ///< e_i
  Vector input = {};   ///< u_i (d)
  Vector output = {};  ///< o_i (o)
};

/// Draws e ~ Cat(routing) and o ~ N(g_e(u), I) for the input u of `draw`. This is the plain MoE (Eq. 3) where
/// `routing` is r(u).
void draw_answer(const TokenMixture& mixture, const Eigen::Ref<const Eigen::RowVectorXd>& routing,
                 TokenDraw& draw, Engine& engine) {
  draw.expert = draw_category(engine, routing);
  draw.output = mixture.answers(draw.input).row(draw.expert).transpose();
  for (double& value : draw.output) value += draw_normal(engine);
}

/// SAM (Definition 1) at token i of U (s, d): s_i ~ Cat(S_i), e ~ Cat(r(u_{s_i})), o ~ N(g_e(u_i), I).
TokenDraw draw_similarity_aware(const TokenMixture& mixture, const Matrix& tokens, const Matrix& similarity,
                                Eigen::Index i, Engine& engine) {
  TokenDraw draw;
  draw.input = tokens.row(i).transpose();
  draw.source = draw_category(engine, similarity.row(i));
  draw_answer(mixture, mixture.routing(tokens.row(draw.source)).row(0), draw, engine);
  return draw;
}

/// The models with attention for one X. The constructor computes what is the same for all draws.
class AttentionModel {
 public:
  AttentionModel(const TokenMixture& mixture, const AttentionHeads& heads, const Matrix& x)
      : mixture_(mixture) {
    for (int h = 0; h < heads.heads(); ++h) {
      attention_.push_back(heads.log_attention(x, h).array().exp());
      centres_.push_back(heads.centres(x, h));
    }
  }

  /// MAM (Definition 3) at token i: h ~ U{1, …, H}, z ~ Cat(A_h[i, ·]), u ~ N(W_hᵀ x_z, σ² I), e ~ Cat(r(u)),
  /// o ~ N(g_e(u), I).
  TokenDraw draw_plain_routing(Eigen::Index i, Engine& engine) const {
    TokenDraw draw = draw_input(i, engine);
    draw_answer(mixture_, mixture_.routing(draw.input.transpose()).row(0), draw, engine);
    return draw;
  }

  /// A2MM (Definition 4) of the whole sequence: the u_i as in MAM, then e_i ~ Cat(r(u_{z_i})) and
  /// o_i ~ N(g_{e_i}(u_i), I).
  std::vector<TokenDraw> draw_attention_aware(Engine& engine) const {
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

 private:
  TokenDraw draw_input(Eigen::Index i, Engine& engine) const {
    TokenDraw draw;
    draw.head = draw_index(engine, static_cast<int>(attention_.size()));
    const std::size_t h = size(draw.head);
    draw.source = draw_category(engine, attention_[h].row(i));
    draw.input = centres_[h].row(draw.source).transpose();
    for (double& value : draw.input) value += kModelSigma * draw_normal(engine);
    return draw;
  }

  const TokenMixture& mixture_;
  std::vector<Matrix> attention_;  ///< A_h (s, s)
  std::vector<Matrix> centres_;    ///< X W_h (s, d)
};

/// The largest deviation from zero of the means that means_of(engine, mixture) draws, over random problems.
template <class MeansOf>
CheckFinding zero_on_average(const CheckEffort& effort, const char* id, int draws, const MeansOf& means_of) {
  double largest = 0;
  for (int problem = 0; problem < kModelProblems; ++problem) {
    Engine engine = check_stream(effort, id, problem);
    const TokenMixture mixture = draw_mixture(engine, kModelExperts, kModelDim, kModelOutputs);
    largest = larger(largest, means_of(engine, mixture).largest_deviation());
  }
  return in_standard_errors(largest, {{"problems", kModelProblems}, {"draws of each", draws}},
                            kModelStandardErrors);
}

Vector indicator(Eigen::Index size, int place) {
  return Vector::Unit(size, place);
}

constexpr double kPosteriorSigma = 1e-3, kDistance = 1e3;
constexpr int kPosteriorDim = 8, kPosteriorCentres = 16, kPosteriorRows = 500;
/// The rounding of sums of 16 probabilities.
constexpr double kPosteriorRounding = 32 * kEpsilon;

struct Row {
  Vector log_prior;
  Vector token;
  Matrix centres;
};

/// Centres at kDistance in random directions, or with `close` in one direction and 1e-9 apart.
Row draw_row(Engine& engine, bool close) {
  Row row{log_softmax(draw_normals(engine, 1, kPosteriorCentres)).transpose(),
          draw_normals(engine, kPosteriorDim, 1),
          {}};
  const auto direction = [&]() -> Eigen::RowVectorXd {
    return draw_normals(engine, 1, kPosteriorDim).normalized();
  };
  const Eigen::RowVectorXd shared = direction();
  row.centres.resize(kPosteriorCentres, kPosteriorDim);
  for (int j = 0; j < kPosteriorCentres; ++j) {
    row.centres.row(j) = row.token.transpose() + kDistance * (close ? shared : direction());
    if (close) row.centres.row(j) += 1e-9 * draw_normals(engine, 1, kPosteriorDim);
  }
  return row;
}

/// The posterior from squared distances in long double, with a rounding of 1e-7 in log-odds.
Vector long_posterior(const Row& row) {
  long double logs[kPosteriorCentres], peak = -std::numeric_limits<long double>::infinity(), sum = 0;
  const long double variance = static_cast<long double>(kPosteriorSigma) * kPosteriorSigma;
  for (int j = 0; j < kPosteriorCentres; ++j) {
    long double square = 0;
    for (int k = 0; k < kPosteriorDim; ++k) {
      const long double difference = static_cast<long double>(row.token[k]) - row.centres(j, k);
      square += difference * difference;
    }
    logs[j] = row.log_prior[j] - square / (2 * variance);
    peak = std::max(peak, logs[j]);
  }
  Vector probabilities(kPosteriorCentres);
  for (const long double value : logs) sum += std::exp(value - peak);
  for (int j = 0; j < kPosteriorCentres; ++j)
    probabilities[j] = static_cast<double>(std::exp(logs[j] - peak) / sum);
  return probabilities;
}

constexpr const char* kTopkId = "graph_of_tokens2025.renormalised_topk";
constexpr int kTopkInstances = 2000, kMostExperts = 64;
constexpr double kTopkSpreads[] = {0.1, 1, 10, 100};

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
  const std::size_t h = size(head);
  const Matrix queries = x * query[h].transpose(), keys = x * key[h].transpose();
  return log_softmax(queries * keys.transpose() / std::sqrt(static_cast<double>(query[h].rows())));
}

Matrix AttentionHeads::centres(const Matrix& x, int head) const {
  return x * value[size(head)];
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

Matrix HeadPosterior::experts(const Matrix& routing) const {
  Matrix probabilities = Matrix::Zero(routing.rows(), routing.cols());
  for (Eigen::Index h = 0; h < heads.cols(); ++h) {
    const Matrix positions = log_positions[size(h)].array().exp();
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
    // log Σ_j exp(a_j) = a_k − log softmax(a)_k for any k. Take the largest.
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

Vector mixture_output(const TokenMixture& mixture, const Vector& token) {
  return mixture.output(token);
}

CheckFinding check_plain_mean(const CheckEffort& effort, const PlainEstimate& estimate) {
  const int draws = kModelDraws * effort.seeds;
  return zero_on_average(effort, "graph_of_tokens2025.moe.mean", draws,
                         [&](Engine& engine, const TokenMixture& mixture) {
                           const Vector token = draw_normals(engine, kModelDim, 1);
                           const Vector expected = estimate(mixture, token);
                           MeanOfZero mean(kModelOutputs);
                           TokenDraw draw{.input = token};
                           for (int i = 0; i < draws; ++i) {
                             draw_answer(mixture, mixture.routing(token.transpose()).row(0), draw, engine);
                             mean.add(draw.output - expected);
                           }
                           return mean;
                         });
}

Matrix routing_of_similar(const Matrix& similarity, const Matrix& routing) {
  return similarity * routing;
}

CheckFinding check_similarity_aware_mean(const CheckEffort& effort, const MixedRouting& mixed) {
  const int draws = kModelDraws * effort.seeds;
  return zero_on_average(
      effort, "graph_of_tokens2025.sam.mean", draws, [&](Engine& engine, const TokenMixture& mixture) {
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
        return mean;
      });
}

CheckFinding check_attention_mean(const CheckEffort& effort, bool transposed) {
  const int draws = kModelDraws * effort.seeds;
  return zero_on_average(
      effort, "graph_of_tokens2025.mam.mean", draws, [&](Engine& engine, const TokenMixture& mixture) {
        const AttentionHeads heads = draw_heads(engine, kModelHeads, kModelDim, kModelQueryDim);
        const Matrix x = draw_normals(engine, kModelTokens, kModelDim);
        const Vector expected = heads.output(x).row(0).transpose();
        // Row j of X W_h is W_h^T x_j.
        AttentionHeads drawn = heads;
        for (Matrix& value : drawn.value) {
          if (!transposed) value.transposeInPlace();
        }
        const AttentionModel model(mixture, drawn, x);
        MeanOfZero mean(kModelDim);
        for (int i = 0; i < draws; ++i) mean.add(model.draw_plain_routing(0, engine).input - expected);
        return mean;
      });
}

CheckFinding check_posterior(const CheckEffort& effort, const PosteriorRule& rule) {
  constexpr Eigen::Index kIndicators = kModelHeads + kModelTokens + kModelExperts;
  double distance = 0;
  const int draws = kModelDraws / 2 * effort.seeds;
  CheckFinding finding = zero_on_average(
      effort, "graph_of_tokens2025.lemma1.posterior", draws,
      [&](Engine& engine, const TokenMixture& mixture) {
        const AttentionHeads heads = draw_heads(engine, kModelHeads, kModelDim, kModelQueryDim);
        const Matrix x = draw_normals(engine, kModelTokens, kModelDim);
        const AttentionModel model(mixture, heads, x);
        const int single = decided_head(heads, x);
        MeanOfZero mean(kIndicators * (1 + kModelDim));
        Vector difference(kIndicators), products(kIndicators * (1 + kModelDim)), functions(1 + kModelDim);
        Matrix u(kModelTokens, kModelDim);
        for (int i = 0; i < draws; ++i) {
          const std::vector<TokenDraw> sequence = model.draw_attention_aware(engine);
          for (int t = 0; t < kModelTokens; ++t) {
            u.row(t) = sequence[size(t)].input.transpose();
          }
          const Matrix routing = mixture.routing(u);
          const HeadPosterior posterior = rule(heads, x, u, kModelSigma);
          Vector positions = Vector::Zero(kModelTokens);
          for (Eigen::Index h = 0; h < kModelHeads; ++h) {
            positions +=
                posterior.heads(0, h) * Vector(posterior.log_positions[size(h)].row(0).array().exp());
          }
          const Vector experts = posterior.experts(routing).row(0).transpose();
          const TokenDraw& token = sequence.front();
          difference << indicator(kModelHeads, token.head) - posterior.heads.row(0).transpose(),
              indicator(kModelTokens, token.source) - positions,
              indicator(kModelExperts, token.expert) - experts;
          functions << 1, token.input;
          for (Eigen::Index f = 0; f <= kModelDim; ++f) {
            products.segment(f * kIndicators, kIndicators) = functions[f] * difference;
          }
          mean.add(products);
          const Eigen::RowVectorXd of_head = posterior.log_positions[size(single)].row(0).array().exp();
          distance +=
              ((of_head * routing).transpose() - experts).cwiseAbs().sum() / 2 / (draws * kModelProblems);
        }
        return mean;
      });
  finding.details.emplace_back("total variation to the experts of Eq. 14's single head, mean", distance);
  return finding;
}

CheckFinding check_single_head(const CheckEffort& effort, double claimed) {
  const int draws = kModelDraws / 2 * effort.seeds;
  double sum = 0;
  CheckFinding finding = zero_on_average(
      effort, "graph_of_tokens2025.eq14", draws, [&](Engine& engine, const TokenMixture& mixture) {
        const AttentionHeads heads = draw_heads(engine, kModelHeads, kModelDim, kModelQueryDim);
        const Matrix x = draw_normals(engine, kModelTokens, kModelDim);
        const AttentionModel model(mixture, heads, x);
        const int single = decided_head(heads, x);
        MeanOfZero mean(1);
        Matrix u(kModelTokens, kModelDim);
        for (int i = 0; i < draws; ++i) {
          const std::vector<TokenDraw> sequence = model.draw_attention_aware(engine);
          for (int t = 0; t < kModelTokens; ++t) u.row(t) = sequence[size(t)].input.transpose();
          const double share = head_posterior(heads, x, u, kModelSigma).heads(0, single);
          sum += share / (draws * kModelProblems);
          mean.add(Vector::Constant(1, share - claimed));
        }
        return mean;
      });
  finding.details.emplace_back("mean posterior of the head", sum);
  return finding;
}

std::vector<Check> graph_of_tokens2025_head_checks() {
  const std::string source = "Nguyen et al. 2025, Eq. 14", id = "graph_of_tokens2025.eq14.";
  const std::string text = "the head h* of lowest mean row entropy has the posterior H^p[i, h*] = ";
  return {{id + "as_printed", source,
           "with the paper's approximation taken as exact: " + text +
               "1 (mean over draws of the model, in standard errors)",
           CheckVerdict::fails, [](Effort effort) { return check_single_head(effort, 1); }},
          {id + "corrected", source,
           text + "1/H on average, like every head: h* depends on X alone, and the prior of heads does not "
                  "(the same)",
           CheckVerdict::holds, [](Effort effort) { return check_single_head(effort, 1.0 / kModelHeads); }}};
}

std::vector<Check> graph_of_tokens2025_model_checks() {
  const std::string source = "Nguyen et al. 2025, ", id = "graph_of_tokens2025.";
  const std::string in_errors = " (largest deviation of a mean, in standard errors)";
  return {{id + "moe.mean", source + "Eqs. 3, 4",
           "E[o | u] = MoE(u) for e ~ Cat(r(u)), o ~ N(g_e(u), I)" + in_errors, CheckVerdict::holds,
           [](Effort effort) { return check_plain_mean(effort); }},
          {id + "sam.mean", source + "Definition 1, Eqs. 6, 7",
           "P(e_i = e | U) = sum_j S_ij r_e(u_j) and E[o_i | U] is its sum over g_e(u_i)" + in_errors,
           CheckVerdict::holds, [](Effort effort) { return check_similarity_aware_mean(effort); }},
          {id + "mam.mean.as_printed", source + "Definition 3, appendix C",
           "E[u_i | X] = MHA(X)_i = (1/H) sum_h (A_h X W_h)_i for u_i ~ N(W_h x_z, sigma^2 I)" + in_errors,
           CheckVerdict::fails, [](Effort effort) { return check_attention_mean(effort, false); }},
          {id + "mam.mean.corrected", source + "Definition 3, appendix C",
           "E[u_i | X] = MHA(X)_i = (1/H) sum_h (A_h X W_h)_i for u_i ~ N(W_h^T x_z, sigma^2 I), with tokens "
           "as rows" +
               in_errors,
           CheckVerdict::holds, [](Effort effort) { return check_attention_mean(effort, true); }},
          {id + "lemma1.posterior", source + "Lemma 1, Definition 4",
           "h, z and e of the attention-aware model given U have the probabilities H^p, A^p and sum_hj H^p "
           "A^p r(u_j): indicators less probabilities, times 1 and u_i, are zero on average" +
               in_errors,
           CheckVerdict::holds, [](Effort effort) { return check_posterior(effort); }}};
}

Vector log_space_posterior(const Vector& log_prior, const Vector& token, const Matrix& centres,
                           double sigma) {
  const Vector log_joint = log_prior + log_likelihood_ratios(token, centres, sigma);
  return log_softmax(log_joint.transpose()).transpose();
}

Vector product_posterior(const Vector& log_prior, const Vector& token, const Matrix& centres, double sigma) {
  const double volume = std::pow(2 * std::numbers::pi * sigma * sigma, static_cast<double>(token.size()) / 2);
  const Vector squares = (centres.rowwise() - token.transpose()).rowwise().squaredNorm();
  Vector joint(log_prior.size());
  for (Eigen::Index j = 0; j < joint.size(); ++j) {
    joint[j] = std::exp(log_prior[j]) * std::exp(-squares[j] / (2 * sigma * sigma)) / volume;
  }
  return (joint / joint.sum()).array().log();
}

CheckFinding check_proper(const CheckEffort& effort, const PositionPosterior& rule) {
  Engine engine = check_stream(effort, "graph_of_tokens2025.likelihoods.proper", 0);
  const int rows = kPosteriorRows * effort.seeds;
  int proper = 0;
  for (int i = 0; i < rows; ++i) {
    const Row row = draw_row(engine, i % 2 == 0);
    const Vector probabilities = rule(row.log_prior, row.token, row.centres, kPosteriorSigma).array().exp();
    if (std::abs(probabilities.sum() - 1) <= kPosteriorRounding) ++proper;
  }
  return every_instance(proper, rows, "none: each row is judged beyond rounding");
}

CheckFinding check_precise(const CheckEffort& effort, const PositionPosterior& rule) {
  Engine engine = check_stream(effort, "graph_of_tokens2025.likelihoods.precise", 0);
  double largest = 0, mass = 0;
  const int rows = kPosteriorRows * effort.seeds;
  for (int i = 0; i < rows; ++i) {
    const Row row = draw_row(engine, true);
    const Vector probabilities = rule(row.log_prior, row.token, row.centres, kPosteriorSigma).array().exp();
    largest = larger(largest, (probabilities - long_posterior(row)).cwiseAbs().maxCoeff());
    mass += probabilities.maxCoeff() / rows;
  }
  return expected_zero(largest, 1e-6, "rounding of squares of 1e3 in long double, over 2 sigma^2",
                       {{"rows", rows}, {"largest probability of a row, mean", mass}});
}

std::vector<Check> graph_of_tokens2025_likelihood_checks() {
  const std::string source = "Nguyen et al. 2025, Lemma 1", id = "graph_of_tokens2025.likelihoods.";
  return {{id + "as_printed", source,
           "the posterior as a quotient of products with densities, sigma = 1e-3 and centres 1e3 away: share "
           "of rows that are probabilities",
           CheckVerdict::fails, [](Effort effort) { return check_proper(effort, product_posterior); }},
          {id + "corrected", source,
           "the posterior from logarithms, each relative to the nearest centre, sigma = 1e-3 and centres 1e3 "
           "away: share of rows that are probabilities",
           CheckVerdict::holds, [](Effort effort) { return check_proper(effort, log_space_posterior); }},
          {id + "precise", source,
           "the posterior from logarithms for centres 1e-9 apart, so that all keep some mass: difference to "
           "long double (largest)",
           CheckVerdict::holds, [](Effort effort) { return check_precise(effort); }}};
}

Vector renormalised_gates(const Vector& scores, int selected) {
  const Vector probabilities = softmax(scores.transpose()).transpose();
  const std::vector<Eigen::Index> order = descending_order(probabilities);
  Vector gates = Vector::Zero(scores.size());
  for (int k = 0; k < selected; ++k) {
    const Eigen::Index place = order[size(k)];
    gates[place] = probabilities[place];
  }
  return gates / gates.sum();
}

Vector masked_gates(const Vector& scores, int selected) {
  const std::vector<Eigen::Index> order = descending_order(scores);
  Vector masked = Vector::Constant(scores.size(), -kInfinity);
  for (int k = 0; k < selected; ++k) {
    const Eigen::Index place = order[size(k)];
    masked[place] = scores[place];
  }
  return softmax(masked.transpose()).transpose();
}

CheckFinding check_topk(const CheckEffort& effort, const GateRule& left, const GateRule& right) {
  double largest = 0, gap = kInfinity;
  int instances = 0;
  for (const double spread : kTopkSpreads) {
    Engine engine = check_stream(effort, kTopkId, instances);
    for (int i = 0; i < kTopkInstances * effort.seeds; ++i, ++instances) {
      const int experts = 2 + draw_index(engine, kMostExperts - 1);
      const int selected = 1 + draw_index(engine, experts - 1);
      const Vector scores = draw_normals(engine, experts, 1, spread);
      const std::vector<Eigen::Index> order = descending_order(scores);
      const std::size_t last = size(selected - 1);
      gap = smaller(gap, scores[order[last]] - scores[order[last + 1]]);
      largest = larger(largest, (left(scores, selected) - right(scores, selected)).cwiseAbs().maxCoeff());
    }
  }
  return {.hypotheses = {{"no ties: gamma_(K) > gamma_(K+1) (smallest difference)", gap, gap > 0}},
          .measured = largest,
          .error_bound = 2 * kMostExperts * kEpsilon,
          .error_origin = "rounding of sums of up to 64 terms",
          .details = {{"instances", instances}}};
}

std::vector<Check> graph_of_tokens2025_topk_checks() {
  return {{kTopkId, "Nguyen et al. 2025, Remark 1, appendix B.3",
           "Renormalize(TopK(softmax gamma)) = softmax(gamma on the K largest, -infinity elsewhere), for "
           "random scores, E <= 64 and K < E (largest difference)",
           CheckVerdict::holds, [](Effort effort) { return check_topk(effort); }}};
}

}  // namespace moelab
