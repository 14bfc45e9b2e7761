#include "analysis/theory/graph_of_tokens2025/token_models.h"

namespace moelab {
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

}  // namespace moelab
