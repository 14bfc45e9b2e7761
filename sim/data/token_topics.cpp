#include "sim/data/token_topics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/error.h"
#include "sim/data/cluster_means.h"

namespace moelab {
namespace {

/// The largest number of sets of topics over which the conditional mean is summed.
constexpr std::size_t kTopicSets = 200;
/// The least log-likelihood relative to a token's best, so that exponentials stay above zero.
constexpr double kLeastLog = -700;

class TokenTopics final : public Problem {
  /// One stream per ingredient: changing one leaves the others unchanged.
  enum ProblemStream : std::uint64_t {
    kTopics = 0,
    kClusters = 1,
    kTargets = 2,
    kClasses = 3,
    kTightFeatures = 4
  };

 public:
  TokenTopics(const TokenTopicsOptions& options, const Seeds& seeds)
      : dim_(options.dim),
        spurious_dims_(options.spurious_dims),
        tokens_(options.tokens),
        topics_(options.topics),
        topics_per_sequence_(options.topics_per_sequence),
        clusters_per_topic_(options.clusters_per_topic),
        noise_std_(options.noise_std),
        linear_(options.target.as<token_topics::LinearTarget>() ||
                options.target.as<token_topics::LinearClassTarget>()),
        class_targets_(options.target.as<token_topics::ClassTarget>() ||
                       options.target.as<token_topics::LinearClassTarget>()),
        output_dim_(outputs_of(options.target)) {
    Engine topics = seeds.stream(Purpose::problem, kTopics),
           nearby = seeds.stream(Purpose::problem, kClusters);
    const Matrix centres = draw_separated_means({.dim = dim_,
                                                 .mean_std = options.mean_std,
                                                 .noise_std = noise_std_,
                                                 .separation = options.separation},
                                                topics_, topics);
    means_ = draw_normals(nearby, topics_ * clusters_per_topic_, dim_, options.cluster_std);
    for (int c = 0; c < clusters(); ++c) means_.row(c) += centres.row(c / clusters_per_topic_);
    if (const gaussian_mixture::TightSubsets* const tight =
            options.covariance.as<gaussian_mixture::TightSubsets>())
      deviations_ = gaussian_mixture::draw_deviations(tight, noise_std_, seeds, kTightFeatures, means_);
    if (options.weight_power) {
      weights_ = Vector(clusters());
      for (int c = 0; c < clusters(); ++c) weights_[c] = std::pow(c + 1, -*options.weight_power);
    }
    draw_targets(seeds);
    sets_ = subsets_of(topics_, topics_per_sequence_, kTopicSets);
  }

  Layout layout() const override {
    return {.input_dim = width(),
            .output_dim = output_dim_,
            .sequences = true,
            .tokens = tokens_,
            .target_per_token = true,
            .class_targets = class_targets_,
            .labels = tokens_};
  }
  int clusters() const override { return static_cast<int>(means_.rows()); }

  Dataset draw(Engine& engine, const SampleRange& range) const override {
    Dataset data;
    data.x.resize(range.count, tokens_ * width());
    data.y.resize(range.count, tokens_ * output_dim_);
    data.cluster.reserve(size(range.count) * size(tokens_));
    std::vector<int> topics(size(topics_));
    Vector noise(dim_), spurious(spurious_dims_);
    for (int i = 0; i < range.count; ++i) {
      std::iota(topics.begin(), topics.end(), 0);
      draw_to_front(engine, topics_per_sequence_, topics);
      for (int t = 0; t < tokens_; ++t) {
        const int c = draw_cluster(engine, topics);
        if (deviations_.size() == 0) {
          fill_normal(engine, noise_std_, noise.data(), size(dim_));
        } else {
          fill_normal(engine, 1.0, noise.data(), size(dim_));
          noise.array() *= deviations_.row(c).transpose().array();
        }
        fill_normal(engine, 1.0, spurious.data(), size(spurious_dims_));
        data.cluster.push_back(c);
        data.x.row(i).segment(t * width(), dim_) = means_.row(c) + noise.transpose();
        data.x.row(i).segment(t * width() + dim_, spurious_dims_) = spurious.transpose();
        data.y.row(i).segment(t * output_dim_, output_dim_) = target(noise, c);
      }
    }
    return data;
  }

  std::optional<Matrix> bayes_prediction(const Matrix& x) const override {
    if (sets_.empty()) return std::nullopt;
    Matrix prediction = Matrix::Zero(x.rows(), tokens_ * output_dim_);
    for (Eigen::Index i = 0; i < x.rows(); ++i) {
      const Matrix sequence = MatrixView(x.data() + i * x.cols(), tokens_, width()).leftCols(dim_);
      const Matrix posterior = posterior_of(sequence);
      for (int t = 0; t < tokens_; ++t) {
        for (int c = 0; c < clusters(); ++c) {
          if (posterior(t, c) == 0) continue;
          const Vector noise = (sequence.row(t) - means_.row(c)).transpose();
          prediction.row(i).segment(t * output_dim_, output_dim_) += posterior(t, c) * target(noise, c);
        }
      }
    }
    return prediction;
  }

 private:
  int width() const { return dim_ + spurious_dims_; }

  /// A cluster of the first m of the `topics`.
  int draw_cluster(Engine& engine, const std::vector<int>& topics) const {
    if (weights_.size() == 0) {
      const int topic = topics[size(draw_index(engine, topics_per_sequence_))];
      return topic * clusters_per_topic_ + draw_index(engine, clusters_per_topic_);
    }
    double total = 0;
    for (int m = 0; m < topics_per_sequence_; ++m) total += weight_of_topic(topics[size(m)]);
    double left = draw_uniform(engine) * total;
    int c = 0;
    for (int m = 0; m < topics_per_sequence_; ++m) {
      for (int j = 0; j < clusters_per_topic_; ++j) {
        c = topics[size(m)] * clusters_per_topic_ + j;
        left -= weights_[c];
        if (left < 0) return c;
      }
    }
    return c;  // rounding left a rest
  }
  double weight_of_topic(int topic) const {
    return weights_.segment(static_cast<Eigen::Index>(topic) * clusters_per_topic_, clusters_per_topic_)
        .sum();
  }

  /// −2 ln N(token; μ_c, Σ_c) (k), up to a constant that all clusters share; without tight features times σ².
  Vector distances_of(const Eigen::RowVectorXd& token) const {
    if (deviations_.size() == 0) return (means_.rowwise() - token).rowwise().squaredNorm();
    return (((means_.rowwise() - token).array() / deviations_.array()).square() +
            2 * deviations_.array().log())
        .rowwise()
        .sum();
  }

  void draw_targets(const Seeds& seeds) {
    Engine engine = seeds.stream(Purpose::problem, kTargets);
    if (linear_) {
      values_ =
          draw_normals(engine, means_.rows() * output_dim_, dim_, 1 / std::sqrt(static_cast<double>(dim_)));
    } else if (class_targets_) {
      Engine classes = seeds.stream(Purpose::problem, kClasses);
      const std::vector<int> order = draw_permutation(classes, clusters());
      values_ = Matrix::Zero(means_.rows(), output_dim_);
      for (int c = 0; c < clusters(); ++c) values_(c, order[size(c)] % output_dim_) = 1;
    } else {
      values_ = draw_normals(engine, means_.rows(), output_dim_);
    }
  }

  /// y (o) of a token μ_c + noise.
  Eigen::RowVectorXd target(const Vector& noise, int c) const {
    if (!linear_) return values_.row(c);
    const Eigen::RowVectorXd response =
        (values_.middleRows(static_cast<Eigen::Index>(c) * output_dim_, output_dim_) * noise).transpose();
    if (!class_targets_) return response;
    Eigen::Index best = 0;
    response.maxCoeff(&best);
    return Eigen::RowVectorXd::Unit(output_dim_, best);
  }

  /// P(c_t = c | x_1, …, x_s), (s, k). With A_tτ = Σ_{c in τ} w_c N(x_t; μ_c, Σ_c), a set S of topics has
  /// P(S | x) ∝ Π_t Σ_{τ in S} A_tτ / W_S, W_S = Σ_{c in S} w_c, and given S the tokens are independent.
  Matrix posterior_of(const Matrix& sequence) const {
    const double scale = deviations_.size() == 0 ? noise_std_ * noise_std_ : 1;
    Matrix likelihood(tokens_, clusters()), of_topic = Matrix::Zero(tokens_, topics_);
    for (int t = 0; t < tokens_; ++t) {
      const Vector squared = distances_of(sequence.row(t));
      const double least = squared.minCoeff();
      for (int c = 0; c < clusters(); ++c) {
        // Without noise the nearest mean has all the mass.
        const double log_ratio = squared[c] == least ? 0
                                 : noise_std_ == 0   ? kLeastLog
                                                   : std::max(kLeastLog, (least - squared[c]) / (2 * scale));
        likelihood(t, c) = std::exp(log_ratio);
        if (weights_.size() > 0) likelihood(t, c) *= weights_[c];
        of_topic(t, c / clusters_per_topic_) += likelihood(t, c);
      }
    }
    // Σ_{τ in S} A_tτ, (sets, s).
    Matrix of_set = Matrix::Zero(static_cast<Eigen::Index>(sets_.size()), tokens_);
    for (std::size_t set = 0; set < sets_.size(); ++set) {
      for (const int topic : sets_[set]) of_set.row(static_cast<Eigen::Index>(set)) += of_topic.col(topic);
    }
    Vector mass = of_set.array().log().rowwise().sum();
    for (std::size_t set = 0; set < sets_.size() && weights_.size() > 0; ++set) {
      double total = 0;
      for (const int topic : sets_[set]) total += weight_of_topic(topic);
      mass[static_cast<Eigen::Index>(set)] -= tokens_ * std::log(total);
    }
    mass = (mass.array() - mass.maxCoeff()).exp();
    mass /= mass.sum();
    // Σ_{S with τ} P(S | x) / Σ_{τ' in S} A_tτ', which times the likelihood of a cluster is its posterior.
    Matrix factor = Matrix::Zero(tokens_, topics_);
    for (std::size_t set = 0; set < sets_.size(); ++set) {
      const Eigen::Index row = static_cast<Eigen::Index>(set);
      for (const int topic : sets_[set])
        factor.col(topic).array() += mass[row] / of_set.row(row).transpose().array();
    }
    for (int c = 0; c < clusters(); ++c) {
      likelihood.col(c).array() *= factor.col(c / clusters_per_topic_).array();
    }
    return likelihood;
  }

  int dim_;
  int spurious_dims_;
  int tokens_;
  int topics_;
  int topics_per_sequence_;
  int clusters_per_topic_;
  double noise_std_;
  bool linear_;
  bool class_targets_;
  int output_dim_;
  Matrix means_;                        // (k, dim)
  Matrix deviations_;                   // (k, dim) of tight_subsets, else empty
  Vector weights_;                      // (k) with weight_power, else empty
  Matrix values_;                       // (k, o), or (k · o, d) where the target is linear
  std::vector<std::vector<int>> sets_;  // of m topics; empty if there are too many
};

/// A sequence needs at most T topics, and a class at least one cluster.
void check_topics(const DataOptions& data) {
  const TokenTopicsOptions& options = data.options().get<TokenTopicsOptions>();
  if (options.topics_per_sequence > options.topics) {
    throw InvalidOption("data.topics_per_sequence", fmt::format("got {}, needs at most data.topics = {}",
                                                                options.topics_per_sequence, options.topics));
  }
  if (const gaussian_mixture::TightSubsets* const tight =
          options.covariance.as<gaussian_mixture::TightSubsets>()) {
    gaussian_mixture::check_tight_subsets(*tight, options.dim, options.noise_std);
    if (tight->correlation > 0)
      throw InvalidOption("data.covariance.correlation",
                          fmt::format("got {}, needs 0 with token_topics", tight->correlation));
    if (tight->means == gaussian_mixture::TightSubsets::Means::tight && options.separation)
      throw InvalidOption(
          "data.covariance.means",
          "got \"tight\" together with data.separation, which holds for means on all features; "
          "leave one of them out");
  }
  const std::int64_t clusters = std::int64_t{options.topics} * options.clusters_per_topic;
  const token_topics::ClassTarget* const target = options.target.as<token_topics::ClassTarget>();
  if (target && target->classes > clusters) {
    throw InvalidOption("data.target.classes",
                        fmt::format("got {}, needs at most the {} clusters", target->classes, clusters));
  }
}

void bind_classes(Fields& fields, int& classes) {
  fields.add("classes", classes, between(2, 1e4), "classes, outputs o");
}

}  // namespace

namespace token_topics {

void token_topics::ClassTarget::bind(Fields& fields) {
  bind_classes(fields, classes);
}

void token_topics::LinearClassTarget::bind(Fields& fields) {
  bind_classes(fields, classes);
}

const std::vector<TargetKind>& token_topics::Targets::table() {
  static const std::vector<TargetKind> kinds = {
      target_kind("constant", "y_t = v_c with v_c ~ N(0, I)", &token_topics::ConstantTarget::dim),
      target_kind("linear", "y_t = W_c (x_t − μ_c), rows of W_c ~ N(0, I / dim)",
                  &token_topics::LinearTarget::dim),
      target_kind("class", "indicator of the class of the cluster", &token_topics::ClassTarget::classes),
      target_kind("linear_class", "indicator of the largest entry of W_c (x_t − μ_c)",
                  &token_topics::LinearClassTarget::classes)};
  return kinds;
}

}  // namespace token_topics

void TokenTopicsOptions::bind(Fields& fields) {
  fields.required().add("topics", topics, between(1, 1e5), "number of topics T");
  fields.add("topics_per_sequence", topics_per_sequence, between(1, 1e5),
             "topics of a sequence m, all different");
  fields.add("clusters_per_topic", clusters_per_topic, between(1, 1e4), "clusters of a topic q; k = T q");
  fields.required().add("dim", dim, between(1, 1e5), "width of a token d");
  fields.required().add("tokens", tokens, between(1, 1e4), "tokens of a sequence s");
  fields.add("mean_std", mean_std, positive(), "centres of topics are N(0, mean_std² I)");
  fields.add("separation", separation, positive(),
             "required c: all centres at least c · noise_std · √dim apart (drawn until it holds)");
  fields.add("cluster_std", cluster_std, at_least(0), "means of clusters are N(centre, cluster_std² I)");
  fields.add("noise_std", noise_std, at_least(0), "σ of every cluster");
  fields.add("spurious_dims", spurious_dims, between(0, 1e5),
             "further coordinates of every token, N(0, 1) for every cluster");
  fields.add("covariance", covariance, "covariance of the clusters");
  fields.add(
      "weight_power", weight_power, between(0, 10),
      "among the clusters of its topics a token's weights fall as a power of the cluster's number, (c + "
      "1)^−weight_power; 0 is uniform");
  fields.required().add("target", target, "what the token's cluster says of y_t");
}

GeneratorKind token_topics_generator() {
  GeneratorKind kind = {{"token_topics",
                         "sequences of s tokens from clusters of a few topics that the sequence draws, one "
                         "target a token (for Nguyen et al. 2025)",
                         TokenTopicsOptions{},
                         TokenTopicsOptions{.topics = 4,
                                            .clusters_per_topic = 2,
                                            .dim = 5,
                                            .tokens = 3,
                                            .target = token_topics::ClassTarget{3}}},
                        draw_as<TokenTopics, TokenTopicsOptions>,
                        check_topics};
  kind.tokens = [](const AnyOptions& options) { return options.get<TokenTopicsOptions>().tokens; };
  kind.kept_numbers = [](const AnyOptions& any, const Layout& layout) -> double {
    const TokenTopicsOptions& options = any.get<TokenTopicsOptions>();
    const bool is_tight = options.covariance.as<gaussian_mixture::TightSubsets>() != nullptr;
    return static_cast<double>(options.topics) * options.clusters_per_topic * layout.input_dim *
           (1 + layout.output_dim + (is_tight ? 1 : 0));
  };
  kind.class_targets = {"class", "linear_class"};
  kind.target_kind = [](const AnyOptions& options) {
    return options.get<TokenTopicsOptions>().target.chosen();
  };
  return kind;
}

}  // namespace moelab
