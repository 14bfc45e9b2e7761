#include "sim/model/router/adaptive_clustering_router.h"

#include <algorithm>
#include <cmath>

#include "sim/base/aligned.h"
#include "sim/base/feature_weights.h"
#include "sim/base/kernels/kernels.h"
#include "sim/model/router/linear_router.h"

namespace moelab {
namespace {

/// Share of the statistics of the past in those that are frozen for evaluation, per training step.
constexpr double kDecay = 0.99;
/// Entries of a random M before negatives are clipped: N(1, .5²) (Nielsen et al. 2025, Table 11).
constexpr double kRandomDeviation = 0.5;

template <class Real>
class AdaptiveClusteringRouter final : public Router<Real> {
 public:
  AdaptiveClusteringRouter(const Json& spec, const Layout& layout, int experts)
      : linear_(make_linear_router<Real>(spec, layout, experts)),
        input_dim_(layout.router_dim()),
        experts_(experts),
        uses_variance_(spec.at("dispersion") == "variance"),
        weights_kind_(spec.at("weights")),
        lambda_(spec.at("lambda")),
        mixed_(std::min(spec.at("mixed_clusters").get<int>(), experts)),
        of_current_(spec.at("representations") == "current"),
        freezes_(spec.at("statistics") == "frozen") {
    if (mixed_ == 0) mixed_ = experts;
    const std::size_t entries = size(experts_) * size(input_dim_);
    weights_.assign(entries, 1.0);
    sums_.resize(entries);
    means_.resize(entries);
  }

  std::size_t parameter_count() const override { return linear_->parameter_count(); }
  std::size_t block_size() const override { return linear_->block_size(); }

  void initialize(const Seeds& seeds, Real* parameters) const override {
    linear_->initialize(seeds, parameters);
    frozen_dispersion_.clear();
    if (weights_kind_ != "random") return;
    Engine engine = seeds.stream(Purpose::router_noise);
    for (int k = 0; k < experts_; ++k) {
      double* const row = weights_.data() + size(k) * size(input_dim_);
      double sum = 0;
      for (int q = 0; q < input_dim_; ++q) {
        row[q] = std::max(0.0, 1 + kRandomDeviation * draw_normal(engine));
        sum += row[q];
      }
      for (int q = 0; q < input_dim_ && sum > 0; ++q) row[q] *= input_dim_ / sum;
    }
  }

  void start_at(const Matrix& rows, Real* parameters) const override { linear_->start_at(rows, parameters); }

  void forward(const RouterContext<Real>& context, const Real* parameters, Real* scores) override {
    if (!context.previous_x) return linear_->forward(context, parameters, scores);
    if (weights_kind_ != "random") update_weights(context);
    weigh_rows(context);
    linear_->forward(weighted(context), parameters, scores);
  }

  void backward(const RouterContext<Real>& context, const Real* parameters,
                const RouterGradients<Real>& gradients) override {
    if (!context.previous_x) return linear_->backward(context, parameters, gradients);
    linear_->backward(weighted(context), parameters, gradients);
    if (!gradients.inputs) return;
    const int stride = kernels::padded(input_dim_);
    for (int row = 0; row < context.rows; ++row) {
      for (int q = 0; q < input_dim_; ++q) {
        gradients.inputs[size(row) * size(stride) + size(q)] *=
            row_weights_[size(row) * size(input_dim_) + size(q)];
      }
    }
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> all = linear_->arrays(parameters);
    // No parameters, but what the rows of the last batch were weighted by; none in a first layer.
    if (!row_weights_.empty()) {
      all.push_back({"router_feature_weights", {experts_, input_dim_}, {weights_.begin(), weights_.end()}});
    }
    return all;
  }

 private:
  RouterContext<Real> weighted(const RouterContext<Real>& context) const {
    RouterContext<Real> rows = context;
    rows.x = weighted_rows_.data();
    rows.stride = input_dim_;
    return rows;
  }

  const Real* probabilities(const RouterContext<Real>& context, int row) const {
    return context.previous_probabilities + size(row) * size(context.previous_stride);
  }

  /// weights_ ← M of every cluster, from the dispersions of this batch or the frozen ones.
  void update_weights(const RouterContext<Real>& context) {
    if (context.training || !freezes_ || frozen_dispersion_.empty()) {
      measure_dispersion(context);
      if (context.training && freezes_) {
        if (frozen_dispersion_.empty()) frozen_dispersion_ = sums_;
        for (std::size_t i = 0; i < sums_.size(); ++i) {
          frozen_dispersion_[i] = kDecay * frozen_dispersion_[i] + (1 - kDecay) * sums_[i];
        }
      }
    } else {
      sums_ = frozen_dispersion_;
    }
    const std::size_t dim = size(input_dim_);
    for (int k = 0; k < experts_; ++k) {
      const std::span<const double> dispersion(sums_.data() + size(k) * dim, dim);
      const bool is_optimal = weights_kind_ == "optimal";
      const std::vector<double> own =
          is_optimal ? optimal_feature_weights(dispersion, lambda_) : inverse_dispersion_weights(dispersion);
      const double scale = is_optimal ? input_dim_ : 1.0;  // those of Theorem 1 sum to 1
      for (std::size_t q = 0; q < dim; ++q) weights_[size(k) * dim + q] = scale * own[q];
    }
  }

  /// sums_ ← s_qk (E, d): mean absolute deviation or variance of feature q over the rows of cluster k; 0 for
  /// clusters of at most one row.
  void measure_dispersion(const RouterContext<Real>& context) {
    const Real* const x = of_current_ ? context.x : context.previous_x;
    const std::size_t dim = size(input_dim_);
    clusters_.resize(size(context.rows));
    counts_.assign(size(experts_), 0);
    first_rows_.resize(size(experts_));
    std::fill(means_.begin(), means_.end(), 0.0);
    std::fill(sums_.begin(), sums_.end(), 0.0);
    for (int row = 0; row < context.rows; ++row) {
      const Real* const r = probabilities(context, row);
      const std::size_t k = size(std::max_element(r, r + experts_) - r);
      clusters_[size(row)] = k;
      // Sums of differences from the cluster's first row: a constant feature has dispersion exactly 0.
      if (counts_[k]++ == 0) first_rows_[k] = x + row * context.stride;
      const Real* const values = x + row * context.stride;
      for (std::size_t q = 0; q < dim; ++q) {
        means_[k * dim + q] += static_cast<double>(values[q]) - static_cast<double>(first_rows_[k][q]);
      }
    }
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      for (std::size_t q = 0; q < dim && counts_[k] > 0; ++q) {
        means_[k * dim + q] = static_cast<double>(first_rows_[k][q]) + means_[k * dim + q] / counts_[k];
      }
    }
    for (int row = 0; row < context.rows; ++row) {
      const std::size_t start = clusters_[size(row)] * dim;
      const Real* const values = x + row * context.stride;
      for (std::size_t q = 0; q < dim; ++q) {
        const double deviation = static_cast<double>(values[q]) - means_[start + q];
        sums_[start + q] += uses_variance_ ? deviation * deviation : std::abs(deviation);
      }
    }
    for (std::size_t k = 0; k < counts_.size(); ++k) {
      for (std::size_t q = 0; q < dim && counts_[k] > 0; ++q) sums_[k * dim + q] /= counts_[k];
    }
  }

  /// row_weights_ ← Σ_k a_k M_k over the row's likeliest clusters, a_k their probabilities renormalised;
  /// weighted_rows_ ← M x.
  void weigh_rows(const RouterContext<Real>& context) {
    const std::size_t dim = size(input_dim_);
    reserve_entries(row_weights_, size(context.rows) * dim);
    reserve_entries(weighted_rows_, size(context.rows) * dim);
    for (int row = 0; row < context.rows; ++row) {
      Real* const m = row_weights_.data() + size(row) * dim;
      add_mixed(probabilities(context, row), m);
      const Real* const x = context.x + row * context.stride;
      for (std::size_t q = 0; q < dim; ++q) weighted_rows_[size(row) * dim + q] = m[q] * x[q];
    }
  }

  void add_mixed(const Real* r, Real* m) {
    const std::size_t dim = size(input_dim_);
    std::fill_n(m, dim, Real(0));
    order_.resize(size(experts_));
    for (std::size_t k = 0; k < order_.size(); ++k) order_[k] = k;
    std::partial_sort(order_.begin(), order_.begin() + mixed_, order_.end(),
                      [&](std::size_t a, std::size_t b) { return r[a] > r[b] || (r[a] == r[b] && a < b); });
    double total = 0;
    for (int c = 0; c < mixed_; ++c) total += static_cast<double>(r[order_[size(c)]]);
    for (int c = 0; c < mixed_; ++c) {
      const std::size_t k = order_[size(c)];
      const double share = static_cast<double>(r[k]) / total;
      for (std::size_t q = 0; q < dim; ++q) m[q] += static_cast<Real>(share * weights_[k * dim + q]);
    }
  }

  std::unique_ptr<Router<Real>> linear_;
  int input_dim_;
  int experts_;
  bool uses_variance_;
  std::string weights_kind_;
  double lambda_;
  int mixed_;
  bool of_current_;
  bool freezes_;
  // Set by initialize() for random weights, by forward() for others.
  mutable std::vector<double> weights_;            // M_k (E, d)
  mutable std::vector<double> frozen_dispersion_;  // (E, d), empty before the first step
  std::vector<double> sums_, means_;               // (E, d)
  std::vector<int> counts_;                        // (E)
  std::vector<const Real*> first_rows_;            // (E), of each cluster
  std::vector<std::size_t> clusters_;              // (n)
  std::vector<std::size_t> order_;
  AlignedVector<Real> row_weights_, weighted_rows_;  // (n, d)
};

}  // namespace

Kind adaptive_clustering_router_kind() {
  Kind kind = linear_router_kind();
  kind.name = "adaptive_clustering";
  kind.help =
      "γ_e(x) = w_e^T M x, M the feature weights of the row's cluster in the layer before (Nielsen et al. "
      "2025); linear in a first layer";
  const std::vector<Field> own = {
      {"weights", Shape::choice({"inverse", "optimal", "random"}),
       "M ∝ 1/s; those of Theorem 1 with lambda; or fixed draws of N(1, .5²), negatives clipped", "inverse"},
      {"dispersion", Shape::choice({"mad", "variance"}), "s: mean absolute deviation or variance", "mad"},
      {"lambda", Shape::positive_real(), "regularisation λ of optimal weights", 1.0},
      {"mixed_clusters", Shape::count(0, 65536),
       "M of the row's likeliest 1, 2, … clusters, mixed by affinity; 0 for all", 1},
      {"representations", Shape::choice({"previous", "current"}),
       "dispersion of the inputs of the layer before, or of this one", "previous"},
      {"statistics", Shape::choice({"batch", "frozen"}),
       "dispersions of every batch, or outside training a running mean of those of training", "batch"},
      {"placement", Shape::choice({"full", "skip_1", "alternating", "back_half"}),
       "layers with M: all but the first, from the third, every other, the last half", "full"},
  };
  kind.fields.insert(kind.fields.end(), own.begin(), own.end());
  return kind;
}

template <class Real>
std::unique_ptr<Router<Real>> make_adaptive_clustering_router(const Json& spec, const Layout& layout,
                                                              int experts) {
  return std::make_unique<AdaptiveClusteringRouter<Real>>(spec, layout, experts);
}

template std::unique_ptr<Router<float>> make_adaptive_clustering_router(const Json&, const Layout&, int);
template std::unique_ptr<Router<double>> make_adaptive_clustering_router(const Json&, const Layout&, int);

}  // namespace moelab
