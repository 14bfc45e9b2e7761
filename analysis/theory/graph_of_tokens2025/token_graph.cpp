#include "analysis/theory/graph_of_tokens2025/token_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/metrics/entropy.h"
#include "sim/base/softmax.h"

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

}  // namespace moelab
