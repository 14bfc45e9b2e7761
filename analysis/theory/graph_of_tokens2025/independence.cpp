#include <cmath>

#include "analysis/theory/graph_of_tokens2025.h"

namespace moelab {
namespace {

constexpr int kWorldTokens = 3, kWorldDim = 2, kWorldExperts = 3, kWorldValues = 3, kWorldHeads = 2;
constexpr int kWorlds = 20;
/// The rounding of zero in a few dozen products of probabilities.
constexpr double kInformationRounding = 1e-13;
/// Far above the rounding, and below the information of every dependent instance.
constexpr double kSomeInformation = 1e-10;

constexpr TokenModel kTokenModels[] = {TokenModel::plain, TokenModel::similarity_aware, TokenModel::attention,
                                       TokenModel::attention_aware};

TokenWorld world_of(const CheckEffort& effort, int index) {
  Engine engine = check_stream(effort, "graph_of_tokens2025.independence", index);
  return draw_world(engine);
}

/// Calls visit(places, probability) for every U.
template <class Visit>
void for_each_sequence(const TokenWorld& world, const Visit& visit) {
  const Eigen::Index tokens = world.x.rows(), values = world.values.rows();
  Matrix laws(tokens, values);
  for (Eigen::Index i = 0; i < tokens; ++i) laws.row(i) = world.joint_of_token(i).colwise().sum();
  std::vector<int> places(size(tokens), 0);
  for (bool done = false; !done;) {
    double probability = 1;
    for (Eigen::Index i = 0; i < tokens; ++i) probability *= laws(i, places[size(i)]);
    visit(places, probability);
    std::size_t at = 0;
    while (at < places.size() && ++places[at] == values) places[at++] = 0;
    done = at == places.size();
  }
}

/// The law of the expert of token i given U, (E): Σ_j P(token i takes the routing of token j) r(u_j).
Eigen::RowVectorXd experts_of(const TokenWorld& world, TokenModel model, const Matrix& u,
                              const std::vector<int>& places, Eigen::Index i) {
  const Matrix routing = world.mixture.routing(u);
  if (model == TokenModel::plain || model == TokenModel::attention) return routing.row(i);
  if (model == TokenModel::similarity_aware) {
    const Matrix similarity = log_similarity(u, 1).array().exp();
    return similarity.row(i) * routing;
  }
  // P(z_i | u_i, X), over heads.
  const Vector given = world.joint_of_token(i).col(places[size(i)]);
  Eigen::RowVectorXd sources = Eigen::RowVectorXd::Zero(u.rows());
  for (Eigen::Index at = 0; at < given.size(); ++at) sources[at % u.rows()] += given[at] / given.sum();
  return sources * routing;
}

CheckFinding information_at_most(double largest) {
  return expected_zero(largest, kInformationRounding, "rounding of sums of probabilities",
                       {{"instances", kWorlds}});
}

CheckFinding information_at_least(double value) {
  return {.relation = Relation::at_least,
          .predicted = kSomeInformation,
          .measured = value,
          .error_origin = "none: sums over all values, far above their rounding",
          .details = {{"instances", kWorlds}}};
}

double largest_given_tokens(const CheckEffort& effort, TokenModel model, bool one_source = false) {
  double largest = 0;
  for (int index = 0; index < kWorlds * effort.seeds; ++index) {
    const TokenWorld world = world_of(effort, index);
    for_each_sequence(world, [&](const std::vector<int>& places, double) {
      largest = larger(largest, mutual_information(summed_pair(world, model, places, one_source)));
    });
  }
  return largest;
}

}  // namespace

Matrix TokenWorld::joint_of_token(Eigen::Index i) const {
  const Eigen::Index tokens = x.rows();
  Matrix joint(heads.heads() * tokens, values.rows());
  for (int h = 0; h < heads.heads(); ++h) {
    const Matrix attention = heads.log_attention(x, h).array().exp();
    const Matrix centres = heads.centres(x, h);
    for (Eigen::Index z = 0; z < tokens; ++z) {
      const Vector squares = (values.rowwise() - centres.row(z)).rowwise().squaredNorm();
      const Vector law = ((squares.minCoeff() - squares.array()) / (2 * sigma * sigma)).exp();
      joint.row(h * tokens + z) = attention(i, z) / heads.heads() * law.transpose() / law.sum();
    }
  }
  return joint;
}

TokenWorld draw_world(Engine& engine) {
  TokenWorld world;
  world.mixture = draw_mixture(engine, kWorldExperts, kWorldDim, 1);
  world.heads = draw_heads(engine, kWorldHeads, kWorldDim, kWorldDim);
  world.x = draw_normals(engine, kWorldTokens, kWorldDim);
  world.values = draw_normals(engine, kWorldValues, kWorldDim);
  return world;
}

Matrix summed_pair(const TokenWorld& world, TokenModel model, const std::vector<int>& tokens,
                   bool one_source) {
  const Eigen::Index count = world.x.rows();
  Matrix u(count, world.x.cols());
  for (Eigen::Index i = 0; i < count; ++i) u.row(i) = world.values.row(tokens[size(i)]);
  const Matrix routing = world.mixture.routing(u);
  // The weight of each latent of each token: a source, or a head and a source.
  std::vector<Vector> latents;
  for (Eigen::Index i = 0; i < count; ++i) {
    if (model == TokenModel::similarity_aware) {
      latents.push_back(log_similarity(u, 1).row(i).transpose().array().exp());
    } else if (model == TokenModel::attention_aware) {
      latents.push_back(world.joint_of_token(i).col(tokens[size(i)]));
    } else {
      latents.push_back(Vector::Unit(count, i));
    }
  }
  Matrix joint = Matrix::Zero(routing.cols(), routing.cols());
  const Eigen::Index values = latents[0].size();
  for (Eigen::Index a = 0; a < values; ++a) {
    for (Eigen::Index b = 0; b < values; ++b) {
      for (Eigen::Index c = 0; c < values; ++c) {
        if (one_source && (b != a || c != a)) continue;
        const double weight = latents[0][a] * latents[1][b] * latents[2][c];
        joint += weight * routing.row(a % count).transpose() * routing.row(b % count);
      }
    }
  }
  return joint / joint.sum();
}

Matrix pair_given_tokens(const TokenWorld& world, TokenModel model, const std::vector<int>& tokens) {
  Matrix u(world.x.rows(), world.x.cols());
  for (Eigen::Index i = 0; i < u.rows(); ++i) u.row(i) = world.values.row(tokens[size(i)]);
  const Eigen::RowVectorXd first = experts_of(world, model, u, tokens, 0),
                           second = experts_of(world, model, u, tokens, 1);
  return first.transpose() * second;
}

Matrix pair_without_tokens(const TokenWorld& world, TokenModel model, const TokenWorld* other) {
  Matrix joint = Matrix::Zero(world.mixture.experts(), world.mixture.experts());
  const auto add = [&](const TokenWorld& law, double weight) {
    for_each_sequence(law, [&](const std::vector<int>& places, double probability) {
      joint += weight * probability * pair_given_tokens(world, model, places);
    });
  };
  add(world, other ? 0.5 : 1.0);
  if (other) add(*other, 0.5);
  return joint;
}

double mutual_information(const Matrix& joint) {
  const Vector first = joint.rowwise().sum(), second = joint.colwise().sum();
  double sum = 0;
  for (Eigen::Index a = 0; a < joint.rows(); ++a) {
    for (Eigen::Index b = 0; b < joint.cols(); ++b) {
      if (joint(a, b) > 0) sum += joint(a, b) * std::log(joint(a, b) / (first[a] * second[b]));
    }
  }
  return sum;
}

CheckFinding check_independent_given_tokens(const CheckEffort& effort, bool one_source) {
  double largest = 0;
  for (const TokenModel model : kTokenModels)
    largest = larger(largest, largest_given_tokens(effort, model, one_source));
  return information_at_most(largest);
}

CheckFinding check_dependent_given_tokens(const CheckEffort& effort, TokenModel model) {
  return information_at_least(largest_given_tokens(effort, model));
}

CheckFinding check_independent_without_tokens(const CheckEffort& effort, TokenModel model) {
  double largest = 0;
  for (int index = 0; index < kWorlds * effort.seeds; ++index)
    largest = larger(largest, mutual_information(pair_without_tokens(world_of(effort, index), model)));
  return information_at_most(largest);
}

CheckFinding check_dependent_without_tokens(const CheckEffort& effort, TokenModel model, bool two_laws) {
  double least = kInfinity, largest = 0;
  for (int index = 0; index < kWorlds * effort.seeds; ++index) {
    const TokenWorld world = world_of(effort, index);
    TokenWorld other = world;
    other.x = world_of(effort, -1 - index).x;
    const double information =
        mutual_information(pair_without_tokens(world, model, two_laws ? &other : nullptr));
    least = smaller(least, information);
    largest = larger(largest, information);
  }
  return information_at_least(two_laws ? largest : least);
}

std::vector<Check> graph_of_tokens2025_independence_checks() {
  const std::string source = "Nguyen et al. 2025, sections 2 and 3";
  const std::string id = "graph_of_tokens2025.independence.";
  return {
      {id + "given_tokens.as_printed", source,
       "our stronger reading of the paper's sentence on i.i.d. tokens: in the similarity-aware model the "
       "experts of two tokens are dependent given U, and the largest I(e_1; e_2 | U) is above 0",
       CheckVerdict::fails,
       [](Effort effort) { return check_dependent_given_tokens(effort, TokenModel::similarity_aware); }},
      {id + "given_tokens.corrected", source,
       "given U, experts are independent in all four models: I(e_1; e_2 | U) = 0, summed over the sources of "
       "all tokens (largest)",
       CheckVerdict::holds, [](Effort effort) { return check_independent_given_tokens(effort); }},
      {id + "plain", source,
       "if tokens are independent, experts are independent in the plain model without U: I(e_1; e_2) = 0 "
       "(largest)",
       CheckVerdict::holds,
       [](Effort effort) { return check_independent_without_tokens(effort, TokenModel::plain); }},
      {id + "attention", source,
       "if tokens are independent, experts given X are independent in the model with attention, without U: "
       "I(e_1; e_2 | X) = 0 (largest)",
       CheckVerdict::holds,
       [](Effort effort) { return check_independent_without_tokens(effort, TokenModel::attention); }},
      {id + "similarity_aware", source,
       "without U, experts are dependent in the similarity-aware model: I(e_1; e_2) > 0 (least)",
       CheckVerdict::holds,
       [](Effort effort) {
         return check_dependent_without_tokens(effort, TokenModel::similarity_aware, false);
       }},
      {id + "attention_aware", source,
       "without U, experts given X are dependent in the attention-aware model: I(e_1; e_2 | X) > 0 (least)",
       CheckVerdict::holds,
       [](Effort effort) {
         return check_dependent_without_tokens(effort, TokenModel::attention_aware, false);
       }},
      {id + "dependent_tokens", source,
       "where tokens depend on each other, experts of the plain model can depend on each other, too: I(e_1; "
       "e_2) > 0 for U of one of two laws (largest)",
       CheckVerdict::holds,
       [](Effort effort) { return check_dependent_without_tokens(effort, TokenModel::plain, true); }}};
}

}  // namespace moelab
