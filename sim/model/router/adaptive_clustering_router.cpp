#include "sim/model/router/adaptive_clustering_router.h"

#include <algorithm>

#include "sim/base/feature_weights.h"
#include "sim/base/kernels/kernels.h"
#include "sim/model/router/cluster_dispersion.h"

namespace moelab {
namespace {

/// Share of the statistics of the past in those that are frozen for evaluation, per training step.
constexpr double kDecay = 0.99;
/// Entries of a random M before negatives are clipped: N(1, .5²) (Nielsen et al. 2025, Table 11).
constexpr double kRandomDeviation = 0.5;

/// Whether a layer of a stack has M (Nielsen et al. 2025, placement).
bool is_placed(AdaptiveClusteringRouterOptions::Placement placement, int layer, int layers) {
  if (layer == 0) return false;
  switch (placement) {
    case AdaptiveClusteringRouterOptions::Placement::full:
      return true;
    case AdaptiveClusteringRouterOptions::Placement::skip_1:
      return layer >= 2;
    case AdaptiveClusteringRouterOptions::Placement::alternating:
      return layer % 2 == 1;
    case AdaptiveClusteringRouterOptions::Placement::back_half:
      return layer >= (layers + 1) / 2;
  }
  return true;
}

template <class Real>
struct AdaptiveScratch final : Scratch {
  AdaptiveScratch(int experts, int dim)
      : dispersion(experts, dim), weights(entries(experts, dim)), order(size(experts)) {}
  std::unique_ptr<Scratch> linear;
  ClusterDispersion<Real> dispersion;              // of the batch
  std::vector<double> weights;                     // M_k (E, d) from it
  AlignedVector<Real> row_weights, weighted_rows;  // M and M x of every row (n, d)
  std::vector<std::size_t> order;                  // of a row's clusters
};

template <class Real>
class AdaptiveClusteringRouter final : public Router<Real> {
 public:
  AdaptiveClusteringRouter(const AdaptiveClusteringRouterOptions& options, const RouterSetting& setting)
      : options_(options),
        linear_(make_linear_router<Real>(linear_part(options), setting)),
        input_dim_(setting.input_dim),
        experts_(setting.experts),
        is_placed_(is_placed(options.placement, setting.layer, setting.layers)),
        is_random_(options.weights == AdaptiveClusteringRouterOptions::Weights::random),
        mixed_(std::min(options.mixed_clusters, setting.experts)) {
    if (mixed_ == 0) mixed_ = experts_;
  }

  std::size_t parameter_count() const override { return linear_->parameter_count(); }
  std::size_t block_size() const override { return linear_->block_size(); }
  void initialize(const Start& start, Real* parameters) const override {
    linear_->initialize(start, parameters);
  }
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    return linear_->arrays(parameters);
  }
  std::unique_ptr<Scratch> make_scratch() const override {
    auto scratch = std::make_unique<AdaptiveScratch<Real>>(experts_, input_dim_);
    scratch->linear = linear_->make_scratch();
    return scratch;
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override {
    auto& own = static_cast<AdaptiveScratch<Real>&>(scratch);
    if (!is_placed_) return linear_->forward(context, parameters, *own.linear, scores);
    weigh_rows(context, feature_weights(context, own), own);
    return linear_->forward(weighted(context, own), parameters, *own.linear, scores);
  }

  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                const RouterGradients<Real>& gradients) const override {
    auto& own = static_cast<AdaptiveScratch<Real>&>(scratch);
    if (!is_placed_) return linear_->backward(context, parameters, *own.linear, gradients);
    linear_->backward(weighted(context, own), parameters, *own.linear, gradients);
    if (!gradients.inputs) return;
    for (int row = 0; row < context.x.rows; ++row) {
      Real* const gradient = gradients.inputs + entries(row, kernels::padded(input_dim_));
      const Real* const m = own.row_weights.data() + entries(row, input_dim_);
      for (int q = 0; q < input_dim_; ++q) gradient[q] *= m[q];
    }
  }

  std::vector<StateArray> state_arrays() const override {
    if (!is_placed_) return {};
    std::vector<StateArray> arrays = {{"router_feature_weights", {experts_, input_dim_}}};
    if (!is_random_) {
      arrays.push_back({"router_dispersion", {experts_, input_dim_}});
      arrays.push_back({"router_dispersion_batches", {1}});
    }
    return arrays;
  }

  void start_state(const Start& start, double* state) const override {
    if (!is_placed_) return;
    std::fill_n(state, entries_of_m(), 1.0);
    if (is_random_) return draw_weights(start, state);
    std::fill_n(dispersion_of(state), entries_of_m(), 0.0);
    *batches_of(state) = 0;
  }

  void end_step(const Scratch& scratch, double* state) const override {
    if (!is_placed_ || is_random_) return;
    const std::vector<double>& batch = static_cast<const AdaptiveScratch<Real>&>(scratch).dispersion.values();
    double* const dispersion = dispersion_of(state);
    const bool is_mean = options_.statistics == AdaptiveClusteringRouterOptions::Statistics::frozen;
    if (!is_mean || *batches_of(state) == 0) std::copy(batch.begin(), batch.end(), dispersion);
    for (std::size_t i = 0; i < batch.size() && is_mean; ++i) {
      dispersion[i] = kDecay * dispersion[i] + (1 - kDecay) * batch[i];
    }
    *batches_of(state) += 1;
    weigh_features(dispersion, state);
  }

 private:
  std::size_t entries_of_m() const { return entries(experts_, input_dim_); }
  /// The parts of the state after M.
  template <class Value>
  Value* dispersion_of(Value* state) const {
    return state + entries_of_m();
  }
  template <class Value>
  Value* batches_of(Value* state) const {
    return state + 2 * entries_of_m();
  }

  void draw_weights(const Start& start, double* weights) const {
    Engine engine = start.seeds.stream(Purpose::router_noise);
    for (int k = 0; k < experts_; ++k) {
      double* const row = weights + entries(k, input_dim_);
      double sum = 0;
      for (int q = 0; q < input_dim_; ++q) {
        row[q] = std::max(0.0, 1 + kRandomDeviation * draw_normal(engine));
        sum += row[q];
      }
      for (int q = 0; q < input_dim_ && sum > 0; ++q) row[q] *= input_dim_ / sum;
    }
  }

  /// M (E, d) of every cluster: that of the state, or from the dispersions of this batch.
  const double* feature_weights(const RouterContext<Real>& context, AdaptiveScratch<Real>& own) const {
    const LayerSignals<Real>& signals = context.signals;
    MOELAB_EXPECT(context.state && !signals.previous_inputs.empty());
    const bool of_batch =
        context.training || options_.statistics == AdaptiveClusteringRouterOptions::Statistics::batch;
    if (is_random_ || !(of_batch || *batches_of(context.state) == 0)) return context.state;
    const bool of_current =
        options_.representations == AdaptiveClusteringRouterOptions::Representations::current;
    own.dispersion.measure(of_current ? context.x : signals.previous_inputs, signals.previous_probabilities,
                           options_.dispersion == AdaptiveClusteringRouterOptions::Dispersion::variance);
    weigh_features(own.dispersion.values().data(), own.weights.data());
    return own.weights.data();
  }

  /// weights (E, d) ← M of every cluster, from its dispersions.
  void weigh_features(const double* dispersions, double* weights) const {
    const std::size_t dim = size(input_dim_);
    const bool is_optimal = options_.weights == AdaptiveClusteringRouterOptions::Weights::optimal;
    const double scale = is_optimal ? input_dim_ : 1.0;  // those of Theorem 1 sum to 1
    for (std::size_t k = 0; k < size(experts_); ++k) {
      const std::span<const double> dispersion(dispersions + k * dim, dim);
      const std::span<double> m(weights + k * dim, dim);
      if (is_optimal) {
        optimal_feature_weights(dispersion, options_.lambda, m);
      } else {
        inverse_dispersion_weights(dispersion, m);
      }
      for (double& weight : m) weight *= scale;
    }
  }

  RouterContext<Real> weighted(const RouterContext<Real>& context, const AdaptiveScratch<Real>& own) const {
    RouterContext<Real> rows = context;
    rows.x = rows_of(own.weighted_rows.data(), context.x.rows, input_dim_);
    return rows;
  }

  /// row_weights ← Σ_k a_k M_k over the row's likeliest clusters, a_k their probabilities renormalised;
  /// weighted_rows ← M x.
  void weigh_rows(const RouterContext<Real>& context, const double* weights,
                  AdaptiveScratch<Real>& own) const {
    const std::size_t dim = size(input_dim_);
    reserve_entries(own.row_weights, size(context.x.rows) * dim);
    reserve_entries(own.weighted_rows, size(context.x.rows) * dim);
    for (int row = 0; row < context.x.rows; ++row) {
      Real* const m = own.row_weights.data() + size(row) * dim;
      mix(context.signals.previous_probabilities.row(row), weights, own.order, m);
      const Real* const x = context.x.row(row);
      for (std::size_t q = 0; q < dim; ++q) own.weighted_rows[size(row) * dim + q] = m[q] * x[q];
    }
  }

  void mix(const Real* r, const double* weights, std::vector<std::size_t>& order, Real* m) const {
    const std::size_t dim = size(input_dim_);
    std::fill_n(m, dim, Real(0));
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::partial_sort(order.begin(), order.begin() + mixed_, order.end(),
                      [&](std::size_t a, std::size_t b) { return r[a] > r[b] || (r[a] == r[b] && a < b); });
    double total = 0;
    for (int c = 0; c < mixed_; ++c) total += static_cast<double>(r[order[size(c)]]);
    for (int c = 0; c < mixed_; ++c) {
      const std::size_t k = order[size(c)];
      const double share = static_cast<double>(r[k]) / total;
      for (std::size_t q = 0; q < dim; ++q) m[q] += static_cast<Real>(share * weights[k * dim + q]);
    }
  }

  AdaptiveClusteringRouterOptions options_;
  std::unique_ptr<Router<Real>> linear_;
  int input_dim_;
  int experts_;
  bool is_placed_;
  bool is_random_;
  int mixed_;
};

}  // namespace

void AdaptiveClusteringRouterOptions::bind(Fields& fields) {
  bind_linear_fields(fields, trainable, init, init_scale, bias);
  fields.add("weights", weights, {"inverse", "optimal", "random"},
             "M ∝ 1/s; those of Theorem 1 with lambda; or fixed draws of N(1, .5²), negatives clipped");
  fields.add("dispersion", dispersion, {"mad", "variance"}, "s: mean absolute deviation or variance");
  fields.add("lambda", lambda, positive(), "regularisation λ of optimal weights");
  fields.add("mixed_clusters", mixed_clusters, between(0, 65536),
             "M of the row's likeliest 1, 2, … clusters, mixed by affinity; 0 for all");
  fields.add("representations", representations, {"previous", "current"},
             "dispersion of the inputs of the layer before, or of this one");
  fields.add("statistics", statistics, {"batch", "frozen"},
             "dispersions of every batch, or outside training a running mean of those of training");
  fields.add("placement", placement, {"full", "skip_1", "alternating", "back_half"},
             "layers with M: all but the first, from the third, every other, the last half");
}

RouterKind adaptive_clustering_router() {
  RouterKind kind = router_kind<AdaptiveClusteringRouterOptions, AdaptiveClusteringRouter>(
      "adaptive_clustering",
      "γ_e(x) = w_e^T M x, M the feature weights of the row's cluster in the layer before (Nielsen et al. "
      "2025); linear in a first layer");
  kind.reads_previous_layer = true;
  kind.starts_at_rows = true;
  kind.needs_train_rows = starts_at_train_rows<AdaptiveClusteringRouterOptions>;
  return kind;
}

}  // namespace moelab
