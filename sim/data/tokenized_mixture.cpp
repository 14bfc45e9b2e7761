#include "sim/data/tokenized_mixture.h"

#include <cmath>

#include "sim/data/cluster_means.h"

namespace moelab {
namespace {

double divisor_of(const TokenizedMixtureOptions& options) {
  using tokenized_mixture::Normalize;
  const auto* const quadratic = options.target.as<tokenized_mixture::QuadraticTarget>();
  const auto* const linear = options.target.as<tokenized_mixture::LinearTarget>();
  const Normalize normalize = quadratic ? quadratic->normalize : linear->normalize;
  return normalize == Normalize::tokens ? options.tokens : 1;
}

class TokenizedMixture final : public Problem {
  /// One stream per ingredient: changing one leaves the others unchanged.
  enum ProblemStream : std::uint64_t { kMeans = 0, kTargets = 1 };

 public:
  TokenizedMixture(const TokenizedMixtureOptions& options, const Seeds& seeds)
      : dim_(options.dim),
        tokens_(options.tokens),
        output_dim_(outputs_of(options.target)),
        noise_std_(options.noise_std),
        label_noise_(options.label_noise),
        quadratic_(options.target.as<tokenized_mixture::QuadraticTarget>() != nullptr),
        divisor_(divisor_of(options)),
        means_(options.clusters, dim_),
        slopes_(means_.rows() * output_dim_, dim_) {
    const double mean_std = options.mean_std;
    const double token_std = std::hypot(mean_std, noise_std_);
    Engine means = seeds.stream(Purpose::problem, kMeans), targets = seeds.stream(Purpose::problem, kTargets);
    fill_normal(means, mean_std, means_);
    fill_normal(targets, 1 / (token_std * std::sqrt(static_cast<double>(dim_))), slopes_);
  }

  Layout layout() const override {
    return {.input_dim = dim_,
            .output_dim = output_dim_,
            .sequences = true,
            .tokens = tokens_,
            .labels = tokens_};
  }
  int clusters() const override { return static_cast<int>(means_.rows()); }

  Dataset draw(Engine& engine, const SampleRange& range) const override {
    Dataset data;
    data.x.resize(range.count, tokens_ * dim_);
    data.y.setZero(range.count, output_dim_);
    data.cluster.reserve(size(range.count) * size(tokens_));
    Eigen::RowVectorXd token(dim_);
    for (int i = 0; i < range.count; ++i) {
      for (int t = 0; t < tokens_; ++t) {
        const int c = draw_index(engine, clusters());
        for (int j = 0; j < dim_; ++j) token[j] = means_(c, j) + noise_std_ * draw_normal(engine);
        data.cluster.push_back(c);
        data.x.row(i).segment(t * dim_, dim_) = token;
        data.y.row(i) += target(token, c);
      }
      data.y.row(i) /= divisor_;
      for (int o = 0; o < output_dim_ && label_noise_ > 0; ++o)
        data.y(i, o) += label_noise_ * draw_normal(engine);
    }
    return data;
  }

  std::optional<Matrix> bayes_prediction(const Matrix& x) const override {
    Matrix prediction = Matrix::Zero(x.rows(), output_dim_);
    for (Eigen::Index i = 0; i < x.rows(); ++i) {
      for (int t = 0; t < tokens_; ++t) {
        const Eigen::RowVectorXd token = x.row(i).segment(t * dim_, dim_);
        Vector values = slopes_ * token.transpose();
        if (quadratic_) values = values.cwiseAbs2();
        prediction.row(i) += posterior_of_distances((means_.rowwise() - token).rowwise().squaredNorm(),
                                                    noise_std_ * noise_std_)
                                 .transpose() *
                             MatrixView(values.data(), clusters(), output_dim_);
      }
      prediction.row(i) /= divisor_;
    }
    return prediction;
  }

 private:
  /// The contribution of a token of component c to y, (o).
  Eigen::RowVectorXd target(const Eigen::RowVectorXd& token, int c) const {
    const Eigen::Index first = static_cast<Eigen::Index>(c) * output_dim_;
    Eigen::RowVectorXd value = token * slopes_.middleRows(first, output_dim_).transpose();
    if (quadratic_) value = value.cwiseAbs2();
    return value;
  }

  int dim_;
  int tokens_;
  int output_dim_;
  double noise_std_;
  double label_noise_;
  bool quadratic_;
  double divisor_;  // of the sum over tokens
  Matrix means_;    // (k, d)
  Matrix slopes_;   // (k · o, d)
};

}  // namespace

namespace tokenized_mixture {

static void bind_sum(Fields& fields, int& dim, Normalize& normalize) {
  bind_outputs(fields, dim);
  fields.add("normalize", normalize, {"none", "tokens"}, "divide y by nothing, or by the tokens s");
}
void LinearTarget::bind(Fields& fields) {
  bind_sum(fields, dim, normalize);
}
void QuadraticTarget::bind(Fields& fields) {
  bind_sum(fields, dim, normalize);
}

}  // namespace tokenized_mixture

const std::vector<TargetKind>& tokenized_mixture::Targets::table() {
  static const std::vector<TargetKind> kinds = {
      target_kind("linear", "y = Σ_t W_{c_t} x_t", &tokenized_mixture::LinearTarget::dim),
      target_kind("quadratic", "y = Σ_t (W_{c_t} x_t)²", &tokenized_mixture::QuadraticTarget::dim)};
  return kinds;
}

void TokenizedMixtureOptions::bind(Fields& fields) {
  fields.required().add("clusters", clusters, between(1, 1e6), "number of components k");
  fields.required().add("dim", dim, between(1, 1e5), "width of a token d");
  fields.required().add("tokens", tokens, between(1, 1e4), "tokens of a sequence s");
  fields.add("mean_std", mean_std, positive(), "means are N(0, mean_std² I)");
  fields.add("noise_std", noise_std, at_least(0), "σ of every component");
  fields.add("label_noise", label_noise, at_least(0), "standard deviation of normal noise added to y");
  fields.required().add("target", target,
                        "what the tokens add up to; rows of W_c ~ N(0, I / (dim (mean_std² + noise_std²)))");
}

GeneratorKind tokenized_mixture_generator() {
  GeneratorKind kind = {
      {"tokenized_mixture",
       "sequences of s tokens, each from Σ_c N(μ_c, σ² I) / k in R^dim, one target a sequence (Dikkala et "
       "al. 2023, C.2)",
       TokenizedMixtureOptions{},
       TokenizedMixtureOptions{
           .clusters = 4, .dim = 5, .tokens = 3, .target = tokenized_mixture::LinearTarget{2}}},
      draw_as<TokenizedMixture, TokenizedMixtureOptions>};
  kind.tokens = [](const AnyOptions& options) { return options.get<TokenizedMixtureOptions>().tokens; };
  kind.kept_numbers = [](const AnyOptions& options, const Layout& layout) -> double {
    return options.get<TokenizedMixtureOptions>().clusters * static_cast<double>(layout.input_dim) *
           (1 + layout.output_dim);
  };
  return kind;
}

}  // namespace moelab
