#include "sim/data/token_topics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>

#include "sim/base/error.h"
#include "tests/sim/data/pieces.h"
#include "tests/sim/data/statistics.h"
#include "tests/sim/data/token_topics_problem.h"

namespace moelab::token_topics_test {
namespace {

using namespace token_topics_problem;

/// Moments of a few dozen coordinates are compared within this many standard errors (two-sided level 6e-7
/// each).
constexpr double kStandardErrors = 5;
/// Regressions and sums of order-one numbers in a handful of dimensions.
constexpr double kRounding = 1e-10;

TEST_CASE("shapes: one target and one label a token") {
  for (const Json& target : {kLinear, kClass}) {
    const std::unique_ptr<Problem> problem = problem_of({{"tokens", 6}, {"target", target}});
    const Layout layout = problem->layout();
    CHECK(problem->clusters() == kTopics * kPerTopic);
    CHECK(layout.input_shape(7) == std::vector<std::int64_t>{7, 6, kDim});
    CHECK(layout.target_shape(7) == std::vector<std::int64_t>{7, 6, 3});
    CHECK(layout.label_shape(7) == std::vector<std::int64_t>{7, 6});
    CHECK(layout.class_targets == (target == kClass));
    const Dataset data = sample(*problem, 7);
    CHECK(data.x.cols() == 6 * kDim);
    CHECK(data.y.cols() == 6 * 3);
    CHECK(data.cluster.size() == 42);
  }
}

TEST_CASE("every set of m topics is equally likely, and so are its clusters") {
  // 40 tokens miss one of two topics with probability 2^-39.
  constexpr int kSequences = 4000, kTokens = 40;
  const Dataset data = sample(*problem_of({{"tokens", kTokens}}), kSequences);
  std::map<std::set<int>, double> sets;
  Vector clusters = Vector::Zero(kTopics * kPerTopic);
  for (std::size_t i = 0; i < kSequences; ++i) {
    std::set<int> topics;
    for (std::size_t t = 0; t < kTokens; ++t) topics.insert(data.cluster[i * kTokens + t] / kPerTopic);
    sets[topics] += 1;
    clusters[data.cluster[i * kTokens]] += 1;  // one token a sequence: independent
  }
  REQUIRE(sets.size() == 10);
  Vector counts(10);
  int place = 0;
  for (const auto& [topics, count] : sets) {
    CHECK(topics.size() == 2);
    counts[place++] = count;
  }
  CHECK(looks_uniform(counts));
  CHECK(looks_uniform(clusters));
  counts[0] *= 1.3;
  clusters[0] *= 1.5;
  CHECK_FALSE(looks_uniform(counts));
  CHECK_FALSE(looks_uniform(clusters));
}

TEST_CASE("tokens of a cluster are N(μ_c, σ² I), independent within a sequence") {
  constexpr double kSigma = 0.7;
  const Json changes = {{"noise_std", kSigma}};
  const Matrix means = means_of(changes);
  const std::unique_ptr<Problem> problem = problem_of(changes);
  const Dataset data = sample(*problem, 20000);
  Matrix noise = token_rows(*problem, data.x, kDim);
  for (Eigen::Index row = 0; row < noise.rows(); ++row) {
    noise.row(row) -= means.row(data.cluster[static_cast<std::size_t>(row)]);
  }
  noise /= kSigma;
  for (int c = 0; c < problem->clusters(); ++c) {
    const Matrix own = rows_of(noise, data.cluster, c);
    CHECK(standard_normal_deviation(own) < kStandardErrors);
    CHECK(standard_normal_deviation(own * 1.1) > kStandardErrors);
  }
  const Matrix together = MatrixView(noise.data(), data.x.rows(), data.x.cols());
  CHECK(standard_normal_deviation(together) < kStandardErrors);
}

TEST_CASE("centres have mean_std, clusters lie cluster_std around them") {
  const Matrix means = means_of({{"topics", 800}, {"mean_std", 2.0}, {"cluster_std", 0.5}});
  Matrix centres(800, kDim), apart(800, kDim);
  for (int topic = 0; topic < 800; ++topic) {
    centres.row(topic) = (means.row(2 * topic) + means.row(2 * topic + 1)) / 2;
    apart.row(topic) = means.row(2 * topic) - means.row(2 * topic + 1);
  }
  // The mean of two clusters has variance 2² + 0.5² / 2, their difference 2 · 0.5².
  const double centre_std = std::sqrt(4 + 0.125), apart_std = std::sqrt(0.5);
  CHECK(standard_normal_deviation(centres / centre_std) < kStandardErrors);
  CHECK(standard_normal_deviation(apart / apart_std) < kStandardErrors);
  CHECK(standard_normal_deviation(apart / centre_std) > kStandardErrors);
}

TEST_CASE("constant and class targets are those of the cluster; classes share the clusters evenly") {
  for (const Json& target : {kConstant, kClass}) {
    const std::unique_ptr<Problem> problem = problem_of({{"target", target}});
    const Dataset data = sample(*problem, 2000);
    const Matrix y = token_rows(*problem, data.y, 3);
    Eigen::RowVectorXd clusters_of_class = Eigen::RowVectorXd::Zero(3);
    for (int c = 0; c < problem->clusters(); ++c) {
      const Matrix own = rows_of(y, data.cluster, c);
      CHECK((own.rowwise() - own.row(0)).isZero(0));
      clusters_of_class += own.row(0);
    }
    CHECK_FALSE((y.rowwise() - y.row(0)).isZero(0));
    if (target != kClass) continue;
    CHECK((y.rowwise().sum().array() == 1).all());
    CHECK(y.maxCoeff() == 1);
    CHECK(y.minCoeff() == 0);
    CHECK(clusters_of_class.minCoeff() == 3);  // 10 clusters in 3 classes
    CHECK(clusters_of_class.maxCoeff() == 4);
  }
}

TEST_CASE("linear targets are W_c (x − μ_c), linear_class the indicator of their largest entry") {
  const Matrix means = means_of(Json::object());
  const std::unique_ptr<Problem> linear = problem_of({{"target", kLinear}}),
                                 classes = problem_of({{"target", kLinearClass}});
  const Dataset data = sample(*linear, 1000), same = sample(*classes, 1000);
  CHECK(data.x == same.x);
  const Matrix x = token_rows(*linear, data.x, kDim), y = token_rows(*linear, data.y, 3),
               indicator = token_rows(*classes, same.y, 3);
  for (int c = 0; c < linear->clusters(); ++c) {
    const Matrix centred = rows_of(x, data.cluster, c).rowwise() - means.row(c);
    const Matrix own = rows_of(y, data.cluster, c), chosen = rows_of(indicator, data.cluster, c);
    const Matrix slopes = regression(centred, own);
    CHECK((own - centred * slopes).cwiseAbs().maxCoeff() < kRounding);
    CHECK(own.cwiseAbs().maxCoeff() > 0.1);
    for (Eigen::Index i = 0; i < own.rows(); ++i) {
      Eigen::Index best = 0;
      own.row(i).maxCoeff(&best);
      CHECK(chosen(i, best) == 1);
      CHECK(chosen.row(i).sum() == 1);
    }
  }
}

TEST_CASE("rows of W_c are N(0, I / d) over problems") {
  Matrix slopes(3 * 400, kDim);
  const Json changes = {{"topics", 400}, {"clusters_per_topic", 1}, {"target", kLinear}};
  const Matrix means = means_of(changes);
  const std::unique_ptr<Problem> problem = problem_of(changes);
  const Dataset data = sample(*problem, 8000);
  const Matrix x = token_rows(*problem, data.x, kDim), y = token_rows(*problem, data.y, 3);
  for (int c = 0; c < 400; ++c) {
    const Matrix centred = rows_of(x, data.cluster, c).rowwise() - means.row(c);
    REQUIRE(centred.rows() > kDim);
    slopes.middleRows(3 * c, 3) = regression(centred, rows_of(y, data.cluster, c)).transpose();
  }
  CHECK(standard_normal_deviation(slopes * 2) < kStandardErrors);  // √d = 2
  CHECK(standard_normal_deviation(slopes) > kStandardErrors);
}

TEST_CASE("weights fall as a power of the cluster's number among the clusters of a sequence's topics") {
  // One set holds all topics, so the clusters have the weights themselves.
  const Dataset data = sample(*problem_of({{"topics_per_sequence", kTopics}, {"weight_power", 1.0}}), 20000);
  constexpr int kClusters = kTopics * kPerTopic;
  Vector counts = Vector::Zero(kClusters), uneven(kClusters);
  for (const int c : data.cluster) ++counts[c];
  for (int c = 0; c < kClusters; ++c) uneven[c] = counts[c] * (c + 1);
  CHECK_FALSE(looks_uniform(counts));
  double total = 0, statistic = 0;
  for (int c = 0; c < kClusters; ++c) total += 1.0 / (c + 1);
  for (int c = 0; c < kClusters; ++c) {
    const double expected = counts.sum() / (c + 1) / total;
    statistic += (counts[c] - expected) * (counts[c] - expected) / expected;
  }
  CHECK(below_quantile(statistic, kClusters - 1));
  // The power 0 is the uniform law.
  const Dataset even = sample(*problem_of({{"weight_power", 0.0}}), 20000);
  Vector even_counts = Vector::Zero(kClusters);
  for (std::size_t i = 0; i < even.cluster.size(); i += 3) ++even_counts[even.cluster[i]];
  CHECK(looks_uniform(even_counts));
}

TEST_CASE("clusters are tight on features of their own, and spurious coordinates are N(0, 1)") {
  const Json tight = {{"kind", "tight_subsets"}, {"tight_features", 1}, {"tight_std", 0.1}};
  const std::unique_ptr<Problem> problem = problem_of({{"spurious_dims", 2}, {"covariance", tight}});
  CHECK(problem->layout().input_dim == kDim + 2);
  const Dataset data = sample(*problem, 20000);
  const Matrix tokens = token_rows(*problem, data.x, kDim + 2);
  CHECK(standard_normal_deviation(tokens.rightCols(2)) < kStandardErrors);
  for (int c = 0; c < problem->clusters(); ++c) {
    const Matrix own = rows_of(tokens, data.cluster, c);
    const Matrix centred = own.rowwise() - own.colwise().mean();
    const Vector deviations =
        (centred.array().square().colwise().sum() / static_cast<double>(own.rows() - 1)).sqrt();
    const double error = kStandardErrors / std::sqrt(2.0 * static_cast<double>(own.rows()));
    int narrow = 0;
    for (int q = 0; q < kDim; ++q) {
      const double expected = deviations[q] < 0.5 ? 0.1 : 1;
      narrow += deviations[q] < 0.5 ? 1 : 0;
      CHECK(std::abs(deviations[q] / expected - 1) < error);
    }
    CHECK(narrow == 1);
  }
  // Means do not depend on it.
  const Matrix means = means_of(Json::object());
  for (int c = 0; c < problem->clusters(); ++c) {
    const Matrix own = rows_of(tokens, data.cluster, c);
    CHECK((own.leftCols(kDim).colwise().mean() - means.row(c)).cwiseAbs().maxCoeff() <
          kStandardErrors / std::sqrt(static_cast<double>(own.rows())));
  }
}

TEST_CASE("the first samples of a set are the smaller set, and pieces equal the whole, to the last bit") {
  for (const Json& target : {kConstant, kLinear, kClass, kLinearClass}) {
    const std::unique_ptr<Problem> problem = problem_of({{"target", target}});
    const Dataset whole = sample(*problem, 501);
    const std::vector<int> counts = {1, 200, 7, 293};
    for (const int count : counts) CHECK((sample(*problem, count).x == whole.x.topRows(count)));
    check_pieces(*problem, kSeeds, Purpose::train_data, counts);
  }
}

TEST_CASE("problems differ by seed, and their parts do not depend on one another") {
  const Matrix plain = means_of(Json::object());
  CHECK(plain != means_of(Json::object(), {1, 1}));
  CHECK(plain == means_of({{"target", kLinear}, {"tokens", 5}, {"topics_per_sequence", 3}}));
  // Clusters keep their places around centres that move.
  const Matrix wider = means_of({{"mean_std", 3.0}});
  for (int c = 0; c < plain.rows(); c += kPerTopic) {
    CHECK(((plain.row(c) - plain.row(c + 1)) - (wider.row(c) - wider.row(c + 1))).norm() < kRounding);
  }
}

TEST_CASE("a bad field is named with what is allowed") {
  const auto message = [](const Json& changes) {
    try {
      problem_of(changes);
    } catch (const InvalidOption& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(message({{"topics_per_sequence", 6}}) ==
        "data.topics_per_sequence: got 6, needs at most data.topics = 5");
  CHECK(message({{"target", {{"kind", "class"}, {"classes", 11}}}}) ==
        "data.target.classes: got 11, needs at most the 10 clusters");
  CHECK(message({{"target", {{"kind", "linear_class"}, {"classes", 11}}}}) == "accepted");
  CHECK(message({{"target", "clas"}}).find("'class'") != std::string::npos);
  CHECK(message({{"clusters", 3}}).starts_with("data.clusters"));
  const auto tight = [](const char* field, const Json& value) {
    Json law = {{"kind", "tight_subsets"}, {"tight_features", 2}};
    law[field] = value;
    return law;
  };
  CHECK(message({{"covariance", tight("tight_features", 5)}}) ==
        "data.covariance.tight_features: got 5, needs at most data.dim = 4");
  CHECK(message({{"covariance", tight("correlation", 0.5)}}) ==
        "data.covariance.correlation: got 0.5, needs 0 with token_topics");
  CHECK(message({{"covariance", tight("means", "tight")}, {"separation", 0.1}})
            .starts_with("data.covariance.means"));
}

}  // namespace
}  // namespace moelab::token_topics_test
