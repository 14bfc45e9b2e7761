#include "sim/data/single_index.h"

#include <fmt/format.h>

#include <Eigen/QR>
#include <cmath>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// Σ_i coefficient_i he_{k+i}(z).
double hermite_sum(const std::vector<double>& coefficients, int exponent, double z) {
  double sum = 0;
  for (std::size_t i = 0; i < coefficients.size(); ++i)
    sum += coefficients[i] * hermite(exponent + static_cast<int>(i), z);
  return sum;
}

class SingleIndexProblem final : public Problem {
 public:
  SingleIndexProblem(const SingleIndexOptions& options, const Seeds& seeds) : options_(options) {
    Engine engine = seeds.stream(Purpose::problem);
    const int clusters = options.clusters, count = 2 * clusters + 1;
    const Matrix draws = draw_normals(engine, options.dim, count);
    const Matrix basis =
        (draws.householderQr().householderQ() * Matrix::Identity(options.dim, count)).transpose();
    directions_ = {basis.topRows(clusters), basis.middleRows(clusters, clusters), basis.bottomRows(1)};
  }

  Layout layout() const override { return {.input_dim = options_.dim, .output_dim = 1}; }
  int clusters() const override { return options_.clusters; }
  const SingleIndexDirections* single_index() const override { return &directions_; }

  Dataset draw(Engine& engine, const SampleRange& range) const override {
    Dataset data{Matrix(range.count, options_.dim), Matrix(range.count, 1), {}};
    for (int i = 0; i < range.count; ++i) {
      const int cluster = draw_index(engine, options_.clusters);
      data.x.row(i) = draw_normals(engine, 1, options_.dim);
      const double noise = options_.noise_std * draw_normal(engine);
      data.x.row(i) += options_.mean_norm * directions_.means.row(cluster);
      const double own = directions_.local.row(cluster).dot(data.x.row(i));
      const double shared = directions_.global.row(0).dot(data.x.row(i));
      data.y(i, 0) = hermite_sum(options_.local, options_.exponent, own) +
                     options_.signs[size(cluster)] * hermite_sum(options_.global, options_.exponent, shared) +
                     noise;
      data.cluster.push_back(cluster);
    }
    return data;
  }

 private:
  SingleIndexOptions options_;
  SingleIndexDirections directions_;
};

}  // namespace

double hermite(int degree, double z) {
  double before = 0, here = 1;  // he_{−1} and he_0
  for (int i = 0; i < degree; ++i) {
    const double next = (z * here - std::sqrt(static_cast<double>(i)) * before) / std::sqrt(i + 1.0);
    before = here;
    here = next;
  }
  return here;
}

void SingleIndexOptions::bind(Fields& fields) {
  fields.add("clusters", clusters, between(1, 1e4), "C");
  fields.add("dim", dim, between(3, 1e6), "d, at least 2 C + 1");
  fields.add("mean_norm", mean_norm, at_least(0), "ρ, the norm of the clusters' means");
  fields.add("exponent", exponent, between(1, 20), "information exponent k of f and g");
  fields.add("local", local, any_number(), 1, "coefficients of he_k, he_{k+1}, … in f");
  fields.add("global", global, any_number(), 1, "coefficients of he_k, he_{k+1}, … in g");
  fields.add("signs", signs, any_number(), 1, "s_c of each cluster; with sum 0 the global task averages out");
  fields.add("noise_std", noise_std, at_least(0), "standard deviation of the noise of y");
}

GeneratorKind single_index_generator() {
  GeneratorKind kind{
      {"single_index",
       "x ~ N(ρ v_c, I), y = f(w_c·x) + s_c g(w_g·x) + noise, f and g of Hermite polynomials from "
       "degree k on (Kawata et al. 2025)",
       SingleIndexOptions{}, SingleIndexOptions{}}};
  kind.draw = draw_as<SingleIndexProblem, SingleIndexOptions>;
  kind.check = [](const DataOptions& data) {
    const SingleIndexOptions& own = data.options().get<SingleIndexOptions>();
    if (own.dim < 2 * own.clusters + 1)
      throw InvalidOption("data.dim", fmt::format("got {}, needs at least 2 data.clusters + 1 = {}", own.dim,
                                                  2 * own.clusters + 1));
    if (own.signs.size() != size(own.clusters))
      throw InvalidOption("data.signs",
                          fmt::format("got {} numbers, needs one for each of data.clusters = {}",
                                      own.signs.size(), own.clusters));
  };
  kind.kept_numbers = [](const AnyOptions& options, const Layout& layout) {
    return (2.0 * options.get<SingleIndexOptions>().clusters + 1) * layout.input_dim;
  };
  return kind;
}

}  // namespace moelab
