#include "sim/data/gaussian_mixture.h"

#include <fmt/format.h>

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/error.h"
#include "sim/base/quasi_random.h"
#include "sim/data/separated_means.h"

namespace moelab {
namespace {

/// Streams of the problem: one per ingredient, so that changing one leaves the others as they were.
enum ProblemStream : std::uint64_t { kMeans = 0, kTargets = 1, kRotation = 2, kTightFeatures = 3 };

class GaussianMixture final : public Problem {
 public:
  GaussianMixture(const Json& data, const Seeds& seeds)
      : dim_(data.at("dim")),
        spurious_dims_(data.at("spurious_dims")),
        output_dim_(data.at("target").at("dim")),
        noise_std_(data.at("noise_std")),
        correlation_(data.at("covariance").value("correlation", 0.0)),
        linear_(data.at("target").at("kind") == "linear") {
    draw_means(data, seeds);
    draw_deviations(data.at("covariance"), seeds);
    draw_targets(seeds);
    set_weights(data);
    if (data.at("rotate").get<bool>()) draw_rotation(seeds);
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

  /// `uniform(i)` picks the component of sample i, `normal(i, j)` is its standardised coordinate j, asked for
  /// in the order of j.
  template <class Uniform, class Normal>
  Dataset samples_from(int samples, const Uniform& uniform, const Normal& normal) const {
    Dataset data;
    data.x.resize(samples, input_dim());
    data.y.resize(samples, output_dim_);
    data.cluster.resize(static_cast<std::size_t>(samples));
    for (int i = 0; i < samples; ++i) {
      const int c = component_of(uniform(i));
      data.cluster[static_cast<std::size_t>(i)] = c;
      for (int j = 0; j < input_dim(); ++j) {
        data.x(i, j) = (j < dim_ ? deviations_(c, j) : 1.0) * normal(i, j);
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
    // Row by row: a product of the whole array may sum in an order that depends on the number of rows.
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

  void draw_means(const Json& data, const Seeds& seeds) {
    Engine engine = seeds.stream(Purpose::problem, kMeans);
    means_ = draw_separated_means(data, data.at("clusters"), engine);
  }

  void draw_deviations(const Json& covariance, const Seeds& seeds) {
    deviations_ = Matrix::Constant(clusters(), dim_, noise_std_);
    if (covariance.at("kind") != "tight_subsets") return;
    const int tight = covariance.at("tight_features");
    for (int c = 0; c < clusters(); ++c) {
      // A stream for each component, so that adding one changes no other.
      Engine engine =
          seeds.stream(Purpose::problem, kTightFeatures + 1000 * static_cast<std::uint64_t>(c + 1));
      const std::vector<int> order = draw_permutation(engine, dim_);
      for (int j = 0; j < tight; ++j) {
        deviations_(c, order[static_cast<std::size_t>(j)]) = covariance.at("tight_std");
      }
    }
  }

  void draw_targets(const Seeds& seeds) {
    Engine engine = seeds.stream(Purpose::problem, kTargets);
    const double scale = linear_ ? 1.0 / std::sqrt(static_cast<double>(dim_)) : 1.0;
    values_ = draw_normals(engine, clusters(), linear_ ? output_dim_ * dim_ : output_dim_, scale);
  }

  void set_weights(const Json& data) {
    std::vector<double> weights(static_cast<std::size_t>(clusters()), 1.0);
    if (data.contains("weights")) weights = data.at("weights").get<std::vector<double>>();
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    double sum = 0;
    log_weights_.resize(clusters());
    for (int c = 0; c < clusters(); ++c) {
      const double share = weights[static_cast<std::size_t>(c)] / total;
      log_weights_[c] = std::log(share);
      sum += share;
      cumulative_.push_back(sum);
    }
  }

  /// A uniformly random orthogonal matrix: Q of a Gaussian matrix, columns signed by the diagonal of R.
  void draw_rotation(const Seeds& seeds) {
    Engine engine = seeds.stream(Purpose::problem, kRotation);
    const int d = input_dim();
    const Eigen::HouseholderQR<Matrix> qr(draw_normals(engine, d, d));
    rotation_ = qr.householderQ();
    for (int j = 0; j < d; ++j) {
      if (qr.matrixQR()(j, j) < 0) rotation_.col(j) *= -1;
    }
  }

  int dim_;
  int spurious_dims_;
  int output_dim_;
  double noise_std_;
  double correlation_;
  bool linear_;
  Matrix means_;       // (k, dim)
  Matrix deviations_;  // (k, dim), standard deviation of each feature
  Matrix values_;      // (k, o), or (k, o · dim) for the linear target
  Vector log_weights_;
  std::vector<double> cumulative_;
  Matrix rotation_;  // (d, d), empty for the identity
};

}  // namespace

const Kind& gaussian_mixture_kind() {
  static const Kind kind = {
      "gaussian_mixture",
      "x ~ Σ_c w_c N(μ_c, σ² I) in R^dim, plus spurious N(0, 1) coordinates (Dikkala et al. 2023, 3.1)",
      {
          {"clusters", Shape::count(1, 1e6), "number of components k"},
          {"dim", Shape::count(1, 1e6), "dimensions of the mixture (the signal), spurious ones not counted"},
          {"spurious_dims", Shape::count(0, 1e6), "further coordinates, N(0, 1) for every component", 0},
          {"rotate", Shape::boolean(), "rotate the inputs at random, so that the signal is not axis-aligned",
           false},
          {"mean_std", Shape::positive_real(), "means are N(0, mean_std² I)", 1.5},
          {"separation", Shape::positive_real(),
           "required c: all means at least c · noise_std · √dim apart (drawn until it holds)", kOptional},
          {"scale_to_separation", Shape::boolean(),
           "instead of drawing again, scale all means so that the two nearest are exactly that far apart",
           false},
          {"noise_std", Shape::real_at_least(0), "σ of every component", 1.0},
          {"covariance",
           Shape::variant(
               {{"isotropic", "σ² I", {}},
                {"tight_subsets",
                 "each component is tight on random features of its own and has σ on the others (Nielsen et "
                 "al. 2025)",
                 {{"tight_features", Shape::count(1, 1e6), "features on which a component is tight"},
                  {"tight_std", Shape::positive_real(), "standard deviation on these", 0.2},
                  {"correlation", Shape::fraction(), "correlation ρ of every two features, below 1", 0.0}}}}),
           "covariance of the components", "isotropic"},
          {"weights", Shape::list(Shape::positive_real(), 1),
           "mixture weights, scaled to sum 1 (default uniform)", kOptional},
          {"target",
           Shape::variant(
               {{"constant", "y = v_c with v_c ~ N(0, I)", {{"dim", Shape::count(1, 1e4), "outputs o", 10}}},
                {"linear",
                 "y = W_c (x − μ_c), rows of W_c ~ N(0, I / dim)",
                 {{"dim", Shape::count(1, 1e4), "outputs o", 1}}}}),
           "what the component says of y"},
      }};
  return kind;
}

void check_gaussian_mixture(const Json& data) {
  const std::size_t weights = data.contains("weights") ? data.at("weights").size() : 0;
  if (weights > 0 && weights != data.at("clusters").get<std::size_t>()) {
    throw UserError("data.weights", fmt::format("got {} weights, needs one for each of data.clusters = {}",
                                                weights, data.at("clusters").dump()));
  }
  const Json& covariance = data.at("covariance");
  if (covariance.at("kind") == "tight_subsets") {
    const std::string at = "data.covariance.";
    if (covariance.at("tight_features") > data.at("dim")) {
      throw UserError(at + "tight_features",
                      fmt::format("got {}, needs at most data.dim = {}",
                                  covariance.at("tight_features").dump(), data.at("dim").dump()));
    }
    if (covariance.at("correlation") == 1.0) throw UserError(at + "correlation", "got 1, needs less");
    if (data.at("noise_std") == 0) throw UserError("data.noise_std", "got 0, needs more with tight_subsets");
  }
  if (!data.value("scale_to_separation", false)) return;
  const std::string path = "data.scale_to_separation";
  if (!data.contains("separation")) throw UserError(path, "got true, needs data.separation");
  if (data.at("clusters") < 2) throw UserError(path, "got true, needs data.clusters of at least 2");
  if (data.at("noise_std") == 0) throw UserError(path, "got true, needs data.noise_std above 0");
}

std::unique_ptr<Problem> draw_gaussian_mixture(const Json& data, const Seeds& seeds) {
  return std::make_unique<GaussianMixture>(data, seeds);
}

}  // namespace moelab
