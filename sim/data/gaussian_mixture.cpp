#include "sim/data/gaussian_mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/numerics.h"
#include "sim/base/random.h"
#include "sim/data/cluster_means.h"

namespace moelab {
namespace {

/// Clusters must be given, or be the leaves of a tree.
void check_clusters(const GaussianMixtureOptions& options) {
  if (!options.hierarchy) {
    if (!options.clusters)
      throw InvalidOption("data.clusters", "missing; a mixture needs it, or data.hierarchy");
    return;
  }
  check(*options.hierarchy);
  const int leaves = leaves_of(*options.hierarchy);
  if (options.clusters && *options.clusters != leaves) {
    throw InvalidOption("data.clusters", fmt::format("got {}, but the tree of data.hierarchy has {} ^ {} = "
                                                     "{} leaves, which are the clusters; leave it out",
                                                     *options.clusters, options.hierarchy->branching,
                                                     options.hierarchy->depth, leaves));
  }
  if (options.separation && !options.scale_to_separation) {
    throw InvalidOption("data.separation",
                        fmt::format("got {}, but the means of data.hierarchy are drawn once; needs "
                                    "data.scale_to_separation true, which scales them",
                                    *options.separation));
  }
}

class GaussianMixture final : public Problem {
  /// One stream per ingredient: changing one leaves the others unchanged.
  enum ProblemStream : std::uint64_t { kMeans = 0, kTargets = 1, kRotation = 2, kTightFeatures = 3 };

 public:
  GaussianMixture(const GaussianMixtureOptions& options, const Seeds& seeds)
      : dim_(options.dim),
        spurious_dims_(options.spurious_dims),
        spurious_law_(options.spurious_law),
        output_dim_(outputs_of(options.target)),
        noise_std_(options.noise_std),
        linear_(options.target.as<gaussian_mixture::LinearTarget>() != nullptr) {
    const gaussian_mixture::TightSubsets* const tight =
        options.covariance.as<gaussian_mixture::TightSubsets>();
    if (tight) correlation_ = tight->correlation;
    draw_means(options, seeds);
    deviations_ = gaussian_mixture::draw_deviations(tight, noise_std_, seeds, kTightFeatures, means_);
    draw_targets(seeds);
    set_weights(cluster_shares(options));
    if (options.rotate) draw_rotation(seeds);
  }

  Layout layout() const override { return {.input_dim = input_dim(), .output_dim = output_dim_}; }
  int clusters() const override { return static_cast<int>(means_.rows()); }

  Dataset draw(Engine& engine, const SampleRange& range) const override {
    boost::random::normal_distribution<double> normal;
    return samples_from(
        range.count, [&](int) { return draw_uniform(engine); }, [&](int, int) { return normal(engine); });
  }

  int uniforms_per_sample() const override { return 1 + normals(); }
  Dataset map_uniforms(const Matrix& uniforms) const override {
    return samples_from(
        static_cast<int>(uniforms.rows()), [&](int i) { return uniforms(i, 0); },
        [&](int i, int j) { return normal_quantile(uniforms(i, 1 + j)); });
  }

  Matrix signal_basis() const override {
    if (rotation_.size() > 0) return rotation_.leftCols(dim_);
    return Matrix::Identity(input_dim(), dim_);
  }

  std::optional<Matrix> bayes_prediction(const Matrix& x) const override {
    const Matrix signal = x * signal_basis();
    Matrix prediction = Matrix::Zero(x.rows(), output_dim_);
    Vector log_posterior(clusters());
    for (Eigen::Index i = 0; i < x.rows(); ++i) {
      for (int c = 0; c < clusters(); ++c) {
        log_posterior[c] = noise_std_ > 0 ? log_weights_[c] + log_density(signal.row(i), c)
                                          : -(signal.row(i) - means_.row(c)).squaredNorm();
      }
      // Without noise the nearest mean has all the mass.
      if (noise_std_ == 0) {
        Eigen::Index nearest = 0;
        log_posterior.maxCoeff(&nearest);
        log_posterior.setConstant(-std::numeric_limits<double>::infinity());
        log_posterior[nearest] = 0;
      }
      const double peak = log_posterior.maxCoeff();
      const Vector mass = (log_posterior.array() - peak).exp();
      const double total = mass.sum();
      for (int c = 0; c < clusters(); ++c) {
        if (mass[c] == 0) continue;
        if (linear_) {
          prediction.row(i) += mass[c] / total * (signal.row(i) - means_.row(c)) * slopes(c).transpose();
        } else {
          prediction.row(i) += mass[c] / total * values_.row(c);
        }
      }
    }
    return prediction;
  }

 private:
  int input_dim() const { return dim_ + spurious_dims_; }

  /// uniform(i) selects the component of sample i. normal(i, j) is its standardised coordinate j, called in
  /// the order of j.
  template <class Uniform, class Normal>
  Dataset samples_from(int samples, const Uniform& uniform, const Normal& normal) const {
    Dataset data;
    data.x.resize(samples, input_dim());
    data.y.resize(samples, output_dim_);
    data.cluster.resize(size(samples));
    for (int i = 0; i < samples; ++i) {
      const int c = component_of(uniform(i));
      data.cluster[size(i)] = c;
      for (int j = 0; j < input_dim(); ++j) {
        const double z = normal(i, j);
        data.x(i, j) = j < dim_ ? deviations_(c, j) * z : spurious_value(spurious_law_, z);
      }
      if (correlation_ > 0) {
        const double own = std::sqrt(1 - correlation_),
                     shared = std::sqrt(correlation_) * normal(i, input_dim());
        data.x.row(i).head(dim_) = own * data.x.row(i).head(dim_) + shared * deviations_.row(c);
      }
      // The first `dim` entries hold x − μ_c here.
      if (linear_) {
        data.y.row(i).noalias() = data.x.row(i).head(dim_) * slopes(c).transpose();
      } else {
        data.y.row(i) = values_.row(c);
      }
      data.x.row(i).head(dim_) += means_.row(c);
    }
    // Row by row, because a product of the whole array may sum in an order that depends on the number of
    // rows.
    for (int i = 0; i < samples && rotation_.size() > 0; ++i)
      data.x.row(i) = data.x.row(i) * rotation_.transpose();
    return data;
  }

  /// Standard normal variables of a sample: its coordinates, and one that correlated coordinates share.
  int normals() const { return input_dim() + (correlation_ > 0 ? 1 : 0); }

  /// log N(x; μ_c, D R D) up to a constant that all components share, D = diag(deviations), R with 1 on the
  /// diagonal and the correlation ρ elsewhere: R^{-1} = (I − ρ 11^T / (1 − ρ + dim ρ)) / (1 − ρ).
  template <class Row>
  double log_density(const Row& x, int c) const {
    double squares = 0, sum = 0, log_volume = 0;
    for (int j = 0; j < dim_; ++j) {
      const double z = (x[j] - means_(c, j)) / deviations_(c, j);
      squares += z * z;
      sum += z;
      log_volume += std::log(deviations_(c, j));
    }
    const double rho = correlation_;
    return -log_volume - (squares - rho * sum * sum / (1 - rho + dim_ * rho)) / (2 * (1 - rho));
  }

  /// W_c (o, dim) of the linear target.
  Eigen::Map<const Matrix> slopes(int c) const {
    return {values_.data() + static_cast<std::ptrdiff_t>(c) * output_dim_ * dim_, output_dim_, dim_};
  }

  int component_of(double u) const {
    const auto place = std::upper_bound(cumulative_.begin(), cumulative_.end(), u);
    return std::min(static_cast<int>(place - cumulative_.begin()), clusters() - 1);
  }

  void draw_means(const GaussianMixtureOptions& options, const Seeds& seeds) {
    Engine engine = seeds.stream(Purpose::problem, kMeans);
    if (options.hierarchy) {
      means_ = draw_tree_means(*options.hierarchy, dim_, engine);
      if (options.scale_to_separation) {
        const double distance = *options.separation * noise_std_ * std::sqrt(static_cast<double>(dim_));
        means_ *= distance / least_distance(means_);
      }
      return;
    }
    means_ = draw_separated_means(
        {dim_, options.mean_std, noise_std_, options.separation, options.scale_to_separation},
        clusters_of(options), engine);
  }

  void draw_targets(const Seeds& seeds) {
    Engine engine = seeds.stream(Purpose::problem, kTargets);
    const double scale = linear_ ? 1.0 / std::sqrt(static_cast<double>(dim_)) : 1.0;
    values_ = draw_normals(engine, clusters(), linear_ ? output_dim_ * dim_ : output_dim_, scale);
  }

  void set_weights(const Vector& shares) {
    double sum = 0;
    log_weights_.resize(shares.size());
    for (int c = 0; c < clusters(); ++c) {
      log_weights_[c] = std::log(shares[c]);
      sum += shares[c];
      cumulative_.push_back(sum);
    }
  }

  /// A uniformly random orthogonal matrix: Q of a Gaussian matrix, columns signed by the diagonal of R.
  void draw_rotation(const Seeds& seeds) {
    Engine engine = seeds.stream(Purpose::problem, kRotation);
    QrFactors factors = qr_factors(draw_normals(engine, input_dim(), input_dim()));
    rotation_ = std::move(factors.q);
    for (int j = 0; j < input_dim(); ++j) {
      if (factors.diagonal[j] < 0) rotation_.col(j) *= -1;
    }
  }

  int dim_;
  int spurious_dims_;
  SpuriousLaw spurious_law_;
  int output_dim_;
  double noise_std_;
  double correlation_ = 0;
  bool linear_;
  Matrix means_;       // (k, dim)
  Matrix deviations_;  // (k, dim), standard deviation of each feature
  Matrix values_;      // (k, o), or (k, o · dim) for the linear target
  Vector log_weights_;
  std::vector<double> cumulative_;
  Matrix rotation_;  // (d, d), empty for the identity
};

/// Means, deviations, targets, weights and their sums, and a rotation with its factors.
double gaussian_mixture_numbers(const AnyOptions& any, const Layout& layout) {
  const GaussianMixtureOptions& options = any.get<GaussianMixtureOptions>();
  const double dim = options.dim, outputs = layout.output_dim, width = layout.input_dim;
  const bool is_linear = options.target.as<gaussian_mixture::LinearTarget>() != nullptr;
  return clusters_of(options) * (2 * dim + outputs * (is_linear ? dim : 1) + 2) +
         (options.rotate ? 3 * width * width : 0);
}

}  // namespace

int clusters_of(const GaussianMixtureOptions& options) {
  return options.hierarchy ? leaves_of(*options.hierarchy) : options.clusters.value_or(0);
}

/// Throws InvalidOption if the sum of the weights is not finite.
Vector cluster_shares(const GaussianMixtureOptions& options) {
  const int clusters = clusters_of(options);
  std::vector<double> weights(size(clusters), 1.0);
  if (options.weights) weights = *options.weights;
  for (int c = 0; options.weight_power && c < clusters; ++c)
    weights[size(c)] = std::pow(c + 1, -*options.weight_power);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!std::isfinite(total))
    throw InvalidOption("data.weights", "the sum of the weights is not finite, needs at most 1.8e308");
  Vector shares(clusters);
  for (int c = 0; c < clusters; ++c) shares[c] = weights[size(c)] / total;
  return shares;
}

namespace gaussian_mixture {

void check_tight_subsets(const TightSubsets& tight, int dim, double noise_std) {
  if (tight.tight_features > dim)
    throw InvalidOption("data.covariance.tight_features",
                        fmt::format("got {}, needs at most data.dim = {}", tight.tight_features, dim));
  if (tight.correlation == 1.0) throw InvalidOption("data.covariance.correlation", "got 1, needs less");
  if (noise_std == 0) throw InvalidOption("data.noise_std", "got 0, needs more with tight_subsets");
}

Matrix draw_deviations(const TightSubsets* tight, double noise_std, const Seeds& seeds,
                       std::uint64_t first_stream, Matrix& centres) {
  const int dim = static_cast<int>(centres.cols());
  Matrix deviations = Matrix::Constant(centres.rows(), dim, noise_std);
  if (!tight) return deviations;
  for (Eigen::Index c = 0; c < centres.rows(); ++c) {
    Engine engine = seeds.stream(Purpose::problem, first_stream + 1000 * static_cast<std::uint64_t>(c + 1));
    const std::vector<int> order = draw_permutation(engine, dim);
    for (int j = 0; j < tight->tight_features; ++j) deviations(c, order[size(j)]) = tight->tight_std;
    if (tight->means == TightSubsets::Means::all) continue;
    for (int j = tight->tight_features; j < dim; ++j) centres(c, order[size(j)]) = 0;
  }
  return deviations;
}

void check(const DataOptions& data) {
  const GaussianMixtureOptions& options = data.options().get<GaussianMixtureOptions>();
  check_clusters(options);
  const int clusters = clusters_of(options);
  const std::size_t weights = options.weights ? options.weights->size() : 0;
  if (weights > 0 && weights != size(clusters)) {
    throw InvalidOption(
        "data.weights",
        fmt::format("got {} weights, needs one for each of data.clusters = {}", weights, clusters));
  }
  if (options.weights && options.weight_power)
    throw InvalidOption(
        "data.weight_power",
        fmt::format("got {} together with data.weights; needs one of them", *options.weight_power));
  cluster_shares(options);
  if (const gaussian_mixture::TightSubsets* const tight =
          options.covariance.as<gaussian_mixture::TightSubsets>()) {
    check_tight_subsets(*tight, options.dim, options.noise_std);
    if (tight->means == TightSubsets::Means::tight && (options.separation || options.hierarchy))
      throw InvalidOption(
          "data.covariance.means",
          fmt::format("got \"tight\" together with data.{}, which holds for means on all features; "
                      "leave one of them out",
                      options.separation ? "separation" : "hierarchy"));
  }
  if (!options.scale_to_separation) return;
  const std::string path = "data.scale_to_separation";
  if (!options.separation) throw InvalidOption(path, "got true, needs data.separation");
  if (clusters < 2) throw InvalidOption(path, "got true, needs data.clusters of at least 2");
  if (options.noise_std == 0) throw InvalidOption(path, "got true, needs data.noise_std above 0");
}

void gaussian_mixture::TightSubsets::bind(Fields& fields) {
  fields.required().add("tight_features", tight_features, between(1, 1e6),
                        "features on which a component is tight");
  fields.add("tight_std", tight_std, positive(), "standard deviation on these");
  fields.add("correlation", correlation, fraction(), "correlation ρ of every two features, below 1");
  fields.add("means", means, {"all", "tight"},
             "features on which a component's mean differs from 0: all, or its tight ones alone");
}

const std::vector<KindEntry>& gaussian_mixture::CovarianceAxis::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<gaussian_mixture::IsotropicCovariance>("isotropic", "σ² I"),
      plain_kind<gaussian_mixture::TightSubsets>(
          "tight_subsets",
          "each component is tight on its random features and has σ on the others (Nielsen et al. 2025)")};
  return kinds;
}

const std::vector<TargetKind>& gaussian_mixture::Targets::table() {
  static const std::vector<TargetKind> kinds = {
      target_kind("constant", "y = v_c with v_c ~ N(0, I)", &gaussian_mixture::ConstantTarget::dim),
      target_kind("linear", "y = W_c (x − μ_c), rows of W_c ~ N(0, I / dim)",
                  &gaussian_mixture::LinearTarget::dim)};
  return kinds;
}

}  // namespace gaussian_mixture

void GaussianMixtureOptions::bind(Fields& fields) {
  fields.add("clusters", clusters, between(1, kMostClusters),
             "number of components k; required unless hierarchy sets it");
  fields.required().add("dim", dim, between(1, 1e6),
                        "dimensions of the mixture (the signal), spurious ones not counted");
  fields.add("spurious_dims", spurious_dims, between(0, 1e6),
             "further coordinates of every component, of spurious_law");
  fields.add("spurious_law", spurious_law, {"normal", "laplace", "two_point"},
             "law of a spurious coordinate, of mean 0 and variance 1: N(0, 1), Laplace's, or ±1");
  fields.add("rotate", rotate, "rotate the inputs at random, so that the signal is not axis-aligned");
  fields.add("mean_std", mean_std, positive(),
             "means are N(0, mean_std² I); no effect with hierarchy or scale_to_separation");
  fields.add("separation", separation, positive(),
             "required c: all means at least c · noise_std · √dim apart (drawn until it holds)");
  fields.add("scale_to_separation", scale_to_separation,
             "instead of drawing again, scale all means so that the two nearest are exactly that far apart");
  fields.add("hierarchy", hierarchy,
             "means are the leaves of a tree, a sum of steps along the way from its root");
  fields.add("noise_std", noise_std, at_least(0), "σ of every component");
  fields.add("covariance", covariance, "covariance of the components");
  fields.add("weights", weights, positive(), 1, "mixture weights, scaled to sum 1 (default uniform)");
  fields.add("weight_power", weight_power, between(0, 10),
             "weights fall as a power of the cluster's number, (c + 1)^−weight_power; 0 is uniform");
  fields.required().add("target", target, "what the component says of y");
}

GeneratorKind gaussian_mixture_generator() {
  GeneratorKind kind = {
      {"gaussian_mixture",
       "x ~ Σ_c w_c N(μ_c, σ² I) in R^dim, plus coordinates of spurious_law (Dikkala et al. 2023, 3.1)",
       GaussianMixtureOptions{},
       GaussianMixtureOptions{
           .clusters = 4, .dim = 5, .spurious_dims = 2, .target = gaussian_mixture::ConstantTarget{3}}},
      draw_as<GaussianMixture, GaussianMixtureOptions>,
      gaussian_mixture::check};
  kind.kept_numbers = gaussian_mixture_numbers;
  return kind;
}

}  // namespace moelab
