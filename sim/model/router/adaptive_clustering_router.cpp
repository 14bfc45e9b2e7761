#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/arrays.h"
#include "sim/base/kernels/kernels.h"
#include "sim/base/numerics.h"
#include "sim/model/gating/selection.h"
#include "sim/model/router/cluster_weights.h"
#include "sim/model/router/routers.h"

namespace moelab {

namespace {

/// The decay of the running statistics for evaluation: the weight of the past per training step.
constexpr double kDecay = 0.99;

/// Whether a layer of a stack has M (Nielsen et al. 2025, placement).
bool is_placed(const AdaptiveClusteringRouterOptions& options, int layer, int layers) {
  const bool needs_previous = options.memberships == AdaptiveClusteringRouterOptions::Memberships::previous;
  if (layer == 0 && needs_previous) return false;
  using Placement = AdaptiveClusteringRouterOptions::Placement;
  if (options.placement == Placement::skip_1) return layer >= 2;
  if (options.placement == Placement::alternating) return layer % 2 == 1;
  return options.placement == Placement::full || layer >= (layers + 1) / 2;
}

template <class Real>
struct AdaptiveScratch final : Scratch {
  AdaptiveScratch(int experts, int dim)
      : dispersion(experts, dim), weights(entries(experts, dim)), order(size(experts)) {}
  std::unique_ptr<Scratch> linear;
  ClusterDispersion<Real> dispersion;              // dispersions of the batch
  std::vector<double> weights;                     // M_k (E, d) from these
  AlignedVector<Real> row_weights, weighted_rows;  // M and M x of every row (n, d)
  AlignedVector<Real> memberships;                 // (n, padded(E)), if no earlier layer has them
  std::vector<std::size_t> order;                  // order of a row's clusters
};

template <class Real>
class AdaptiveClusteringRouter final : public Router<Real> {
 public:
  AdaptiveClusteringRouter(const AdaptiveClusteringRouterOptions& options, const RouterSetting& setting)
      : options_(options),
        linear_(make_linear_router<Real>(linear_part(options), setting)),
        input_dim_(setting.input_dim),
        experts_(setting.experts),
        is_placed_(is_placed(options, setting.layer, setting.layers)),
        is_redrawn_(options.weights == AdaptiveClusteringRouterOptions::Weights::redrawn),
        is_random_(is_redrawn_ || options.weights == AdaptiveClusteringRouterOptions::Weights::random),
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
    const View<const Real> memberships = cluster_memberships(context, parameters, own);
    const std::size_t of_rows = entries(context.x.rows, input_dim_);
    reserve_entries(own.row_weights, of_rows);
    reserve_entries(own.weighted_rows, of_rows);
    const int rows = context.x.rows, group = context.group_rows > 0 ? context.group_rows : rows;
    for (int first = 0; first < rows; first += group) {
      const int count = std::min(group, rows - first);
      weigh_rows(context, memberships, first, count, feature_weights(context, memberships, first, count, own),
                 own);
    }
    RouterOutput<Real> output = linear_->forward(weighted(context, own), parameters, *own.linear, scores);
    if (options_.weighted_experts) output.expert_input_weights = own.row_weights.data();
    return output;
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

  bool couples_rows() const override { return is_placed_ && !is_random_; }

  std::vector<StateArray> state_arrays() const override {
    if (!is_placed_) return {};
    std::vector<StateArray> arrays = {{"router_feature_weights", {experts_, input_dim_}}};
    if (!is_random_) {
      arrays.push_back({"router_dispersion", {experts_, input_dim_}});
      arrays.push_back({"router_dispersion_batches", {1}});
    }
    if (is_redrawn_) arrays.push_back({"router_weight_draws", {3}});
    return arrays;
  }

  void start_state(const Start& start, double* state) const override {
    if (!is_placed_) return;
    std::fill_n(state, entries_of_m(), 1.0);
    if (is_redrawn_) step_stream::start(start, state + entries_of_m());
    if (is_random_) {
      Engine engine = start.seeds.stream(Purpose::router_noise);
      return draw_cluster_weights(engine, size(input_dim_), {state, entries_of_m()});
    }
    std::fill_n(dispersion_of(state), entries_of_m(), 0.0);
    *batches_of(state) = 0;
  }

  void begin_step(double /*progress*/, const Real* /*parameters*/, double* state) const override {
    if (!is_placed_ || !is_redrawn_) return;
    step_stream::advance(state + entries_of_m());
    Engine engine = step_stream::engine(state + entries_of_m(), kStepWeights);
    draw_cluster_weights(engine, size(input_dim_), {state, entries_of_m()});
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

  /// Memberships r (n, E), whose argmax is a row's cluster. They come from the layer before, from the
  /// router's own softmax(w_e^T x), or they are 1 at the true cluster (mod E).
  View<const Real> cluster_memberships(const RouterContext<Real>& context, const Real* parameters,
                                       AdaptiveScratch<Real>& own) const {
    using Memberships = AdaptiveClusteringRouterOptions::Memberships;
    if (options_.memberships == Memberships::previous) return context.signals.previous_probabilities;
    const int rows = context.x.rows, stride = kernels::padded(experts_);
    reserve_entries(own.memberships, entries(rows, stride));
    Real* const shares = own.memberships.data();
    if (options_.memberships == Memberships::own) {
      linear_->forward(context, parameters, *own.linear, shares);
      kernels::softmax_rows(shares, shares, rows, experts_, stride);
    } else {
      const int* const labels = context.signals.labels;
      if (!labels) {
        throw no_labels_error("model.router.memberships",
                              options_.memberships == Memberships::oracle ? "oracle" : "permuted_oracle");
      }
      std::fill_n(shares, entries(rows, stride), Real(0));
      for (int row = 0; row < rows; ++row)
        shares[entries(row, stride) + size(expert_of_cluster(labels[row], experts_))] = 1;
    }
    return {shares, rows, experts_, stride};
  }

  /// M (E, d) of every cluster, from the state or from the dispersions of a group of rows.
  const double* feature_weights(const RouterContext<Real>& context, const View<const Real>& memberships,
                                int first, int count, AdaptiveScratch<Real>& own) const {
    const LayerSignals<Real>& signals = context.signals;
    MOELAB_EXPECT(context.state && !memberships.empty());
    const bool of_batch =
        context.training || options_.statistics == AdaptiveClusteringRouterOptions::Statistics::batch;
    if (is_random_ || !(of_batch || *batches_of(context.state) == 0)) return context.state;
    const bool of_current =
        options_.representations == AdaptiveClusteringRouterOptions::Representations::current ||
        signals.previous_inputs.empty();
    const View<const Real>& measured = of_current ? context.x : signals.previous_inputs;
    own.dispersion.measure(measured.middle_rows(first, count), memberships.middle_rows(first, count),
                           options_.dispersion);
    weigh_features(own.dispersion.values().data(), own.weights.data());
    return own.weights.data();
  }

  /// weights (E, d) ← M of every cluster, from its dispersions.
  void weigh_features(const double* dispersions, double* weights) const {
    const std::size_t dim = size(input_dim_), all = entries_of_m();
    if (options_.weights != AdaptiveClusteringRouterOptions::Weights::optimal) {
      return weigh_clusters(options_.weighting, {dispersions, all}, dim, {weights, all});
    }
    for (std::size_t first = 0; first < all; first += dim) {
      optimal_feature_weights({dispersions + first, dim}, options_.lambda, {weights + first, dim});
    }
    for (std::size_t i = 0; i < all; ++i)
      weights[i] *= input_dim_;  // the weights of Theorem 1 sum to 1, not to d
  }

  RouterContext<Real> weighted(const RouterContext<Real>& context, const AdaptiveScratch<Real>& own) const {
    RouterContext<Real> rows = context;
    rows.x = rows_of(own.weighted_rows.data(), context.x.rows, input_dim_);
    return rows;
  }

  /// For a group of rows: row_weights ← Σ_k a_k M_k over the row's most probable clusters, with a_k their
  /// renormalised probabilities. weighted_rows ← M x.
  void weigh_rows(const RouterContext<Real>& context, const View<const Real>& memberships, int first,
                  int count, const double* weights, AdaptiveScratch<Real>& own) const {
    using Memberships = AdaptiveClusteringRouterOptions::Memberships;
    const int shift = options_.memberships == Memberships::permuted_oracle ? count / 2 : 0;
    const std::size_t dim = size(input_dim_);
    for (int row = first; row < first + count; ++row) {
      Real* const m = own.row_weights.data() + size(row) * dim;
      const int shifted = row + shift;
      mix(memberships.row(shifted < first + count ? shifted : shifted - count), weights, own.order, m);
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
  bool is_redrawn_;
  bool is_random_;
  int mixed_;
};

}  // namespace

void AdaptiveClusteringRouterOptions::bind(Fields& fields) {
  bind_linear_fields(fields, trainable, init, init_scale, bias);
  fields.add("weights", weights, {"inverse", "optimal", "random", "redrawn"},
             "M ∝ 1/s; weights of Theorem 1 with lambda; or clipped draws of N(1, 0.5²) for each cluster, "
             "kept or new at every step");
  fields.add("dispersion", dispersion, {"mad", "variance", "iqr"},
             "s: mean absolute deviation, variance or interquartile range");
  fields.add("lambda", lambda, positive(), "regularisation λ of optimal weights");
  fields.add("mixed_clusters", mixed_clusters, between(0, 65536),
             "M of the row's 1, 2, … most probable clusters, mixed by affinity; 0 for all");
  fields.add("representations", representations, {"previous", "current"},
             "dispersion of the inputs of the layer before, or of this one");
  fields.add("memberships", memberships, {"previous", "own", "oracle", "permuted_oracle"},
             "a row's cluster: its argmax expert in the layer before, or of this router without M; the true "
             "one; or a shifted row's");
  fields.add("statistics", statistics, {"batch", "frozen"},
             "dispersions of each batch (1024 rows with population gradients), or outside training a running "
             "mean of training's (decay 0.99)");
  fields.add("placement", placement, {"full", "skip_1", "alternating", "back_half"},
             "layers with M: all but the first, from the third, every other, the last half");
  fields.add("normalize", weighting.normalize, {"features", "clusters", "global"},
             "inverse weights have mean 1 over the features of each cluster, over the clusters for each "
             "feature, or over both");
  fields.add("guard", weighting.guard, at_least(0), "the weights are the inverse of s + guard");
  fields.add("clip", weighting.clip, positive(), "largest inverse weight (default: none)");
  fields.add("weighted_experts", weighted_experts, "experts read M x, as the router does");
}

RouterKind adaptive_clustering_router() {
  RouterKind kind = router_kind<AdaptiveClusteringRouterOptions, AdaptiveClusteringRouter>(
      "adaptive_clustering",
      "γ_e(x) = w_e^T M x, M the feature weights of the row's cluster in the layer before (Nielsen et al. "
      "2025); linear in a first layer");
  kind.needs_labels = [](const AnyOptions& options) -> const char* {
    const auto& own = options.get<AdaptiveClusteringRouterOptions>();
    using Memberships = AdaptiveClusteringRouterOptions::Memberships;
    const bool needs =
        own.memberships == Memberships::oracle || own.memberships == Memberships::permuted_oracle;
    return needs ? "memberships" : nullptr;
  };
  kind.looks_ahead = [](const AnyOptions& options) -> std::string {
    const auto& own = options.get<AdaptiveClusteringRouterOptions>();
    using Weights = AdaptiveClusteringRouterOptions::Weights;
    if (own.weights == Weights::random || own.weights == Weights::redrawn) return "";
    const bool is_batch = own.statistics == AdaptiveClusteringRouterOptions::Statistics::batch;
    return std::string("feature weights are statistics of the whole batch") +
           (is_batch ? "" : " in training");
  };
  kind.starts_at_rows = true;
  kind.needs_train_rows = starts_at_train_rows<AdaptiveClusteringRouterOptions>;
  return kind;
}

}  // namespace moelab
