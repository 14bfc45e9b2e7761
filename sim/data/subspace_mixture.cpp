#include "sim/data/subspace_mixture.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

void check_rank(const SubspaceMixtureOptions& options) {
  if (options.rank < options.dim) return;
  throw InvalidOption("data.rank",
                      fmt::format("got {}, needs at most data.dim − 1 = {}", options.rank, options.dim - 1));
}

class SubspaceMixture final : public Problem {
  /// One stream per ingredient, and one per cluster for its basis (kBases + c).
  enum ProblemStream : std::uint64_t { kTargets = 0, kBases = 1 };

 public:
  SubspaceMixture(const SubspaceMixtureOptions& options, const Seeds& seeds)
      : dim_(options.dim),
        rank_(options.rank),
        output_dim_(outputs_of(options.target)),
        signal_std_(options.signal_std),
        noise_std_(options.noise_std),
        label_of_noise_(options.label_of == subspace_mixture::LabelOf::noise) {
    check_rank(options);
    Engine engine = seeds.stream(Purpose::problem, kTargets);
    for (int c = 0; c < options.clusters; ++c) {
      bases_.push_back(draw_basis(seeds, c));
      slopes_.push_back(draw_normals(engine, output_dim_, dim_, 1 / std::sqrt(static_cast<double>(dim_))));
    }
  }

  Layout layout() const override { return {.input_dim = dim_, .output_dim = output_dim_}; }
  int clusters() const override { return static_cast<int>(bases_.size()); }

  Dataset draw(Engine& engine, const SampleRange& range) const override {
    Dataset data;
    data.x.resize(range.count, dim_);
    data.y.resize(range.count, output_dim_);
    data.cluster.resize(size(range.count));
    Vector coordinates(rank_), noise(dim_);
    // Row by row, because a product of the whole array may sum in an order that depends on the number of
    // rows.
    for (int i = 0; i < range.count; ++i) {
      const int c = draw_index(engine, clusters());
      data.cluster[size(i)] = c;
      fill_normal(engine, signal_std_, coordinates.data(), size(rank_));
      fill_normal(engine, noise_std_, noise.data(), size(dim_));
      const Vector signal = basis(c) * coordinates;
      data.y.row(i) = slopes(c) * (label_of_noise_ ? noise : signal);
      data.x.row(i) = signal + noise;
    }
    return data;
  }

  std::optional<Matrix> bayes_prediction(const Matrix& x) const override {
    const Matrix posterior = posterior_of_clusters(x);
    Matrix prediction = Matrix::Zero(x.rows(), output_dim_);
    for (int c = 0; c < clusters(); ++c) {
      Matrix latent = shrinkage() * (x * basis(c)) * basis(c).transpose();
      if (label_of_noise_) latent = x - latent;
      prediction += posterior.col(c).asDiagonal() * (latent * slopes(c).transpose());
    }
    return prediction;
  }

 private:
  const Matrix& basis(int c) const { return bases_[size(c)]; }    // (d, t)
  const Matrix& slopes(int c) const { return slopes_[size(c)]; }  // W_c (o, d)

  /// v, the share of the signal in the variance along the subspace.
  double shrinkage() const {
    const double signal = signal_std_ * signal_std_;
    return signal / (signal + noise_std_ * noise_std_);
  }

  /// Pr[c | x] (n, k).
  Matrix posterior_of_clusters(const Matrix& x) const {
    Matrix posterior(x.rows(), clusters());
    for (int c = 0; c < clusters(); ++c) posterior.col(c) = (x * basis(c)).rowwise().squaredNorm();
    for (Eigen::Index i = 0; i < x.rows(); ++i) {
      Eigen::Index nearest = 0;
      const double longest = posterior.row(i).maxCoeff(&nearest);
      if (noise_std_ == 0) {
        posterior.row(i).setZero();
        posterior(i, nearest) = 1;
      } else {
        const double sharpness = shrinkage() / (2 * noise_std_ * noise_std_);
        posterior.row(i) = (sharpness * (posterior.row(i).array() - longest)).exp();
        posterior.row(i) /= posterior.row(i).sum();
      }
    }
    return posterior;
  }

  /// Q of a Gaussian matrix, drawn direction by direction. Its span is uniform. The signs of its columns do
  /// not matter, because g is symmetric.
  Matrix draw_basis(const Seeds& seeds, int cluster) const {
    Engine engine = seeds.stream(Purpose::problem, kBases + static_cast<std::uint64_t>(cluster));
    return qr_factors(draw_normals(engine, rank_, dim_).transpose()).q;
  }

  int dim_;
  int rank_;
  int output_dim_;
  double signal_std_;
  double noise_std_;
  bool label_of_noise_;
  std::vector<Matrix> bases_;
  std::vector<Matrix> slopes_;
};

}  // namespace

const std::vector<TargetKind>& subspace_mixture::Targets::table() {
  static const std::vector<TargetKind> kinds = {target_kind(
      "linear", "y = W_c z or W_c ε, rows of W_c ~ N(0, I / dim)", &subspace_mixture::LinearTarget::dim)};
  return kinds;
}

void SubspaceMixtureOptions::bind(Fields& fields) {
  fields.required().add("clusters", clusters, between(1, 1e6), "number of subspaces k");
  fields.required().add("dim", dim, between(2, 1e6), "input width d");
  fields.required().add("rank", rank, between(1, 1e6), "dimensions t of every subspace, below dim");
  fields.add("signal_std", signal_std, positive(),
             "standard deviation of z along each direction of its subspace");
  fields.add("noise_std", noise_std, at_least(0),
             "σ, standard deviation of every coordinate of ε; the paper wants ‖ε‖ below ‖z‖: "
             "noise_std √dim < signal_std √rank");
  fields.add("label_of", label_of, {"signal", "noise"},
             "what the label is a linear function of: z, or ε as the paper prints it");
  fields.required().add("target", target, "what the cluster says of y");
}

GeneratorKind subspace_mixture_generator() {
  GeneratorKind kind = {
      {"subspace_mixture",
       "x = z + ε, z ~ N(0, signal_std² B_c B_cᵀ) in a random subspace of cluster c, ε ~ N(0, noise_std² "
       "I) (Dikkala et al. 2023, 3.3 and C.1)",
       SubspaceMixtureOptions{},
       SubspaceMixtureOptions{
           .clusters = 4, .dim = 6, .rank = 2, .target = subspace_mixture::LinearTarget{2}}},
      draw_as<SubspaceMixture, SubspaceMixtureOptions>,
      [](const DataOptions& data) { check_rank(data.options().get<SubspaceMixtureOptions>()); }};
  kind.kept_numbers = [](const AnyOptions& any, const Layout& layout) -> double {
    const SubspaceMixtureOptions& options = any.get<SubspaceMixtureOptions>();
    return static_cast<double>(options.clusters) * layout.input_dim * (options.rank + layout.output_dim);
  };
  return kind;
}

}  // namespace moelab
