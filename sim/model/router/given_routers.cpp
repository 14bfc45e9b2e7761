#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"
#include "sim/base/kernels/multiply.h"
#include "sim/model/gating/selection.h"
#include "sim/model/router/routers.h"
#include "sim/model/router/row_draws.h"

namespace moelab {
namespace {

template <class Real>
struct HashScratch final : Scratch {
  AlignedVector<Real> products;  // (n, padded(bits))
};

/// The hash router. The projection is stored transposed, (d, padded(bits)).
template <class Real>
class HashRouter final : public Router<Real> {
 public:
  HashRouter(const HashRouterOptions& options, const RouterSetting& setting)
      : bits_(options.of == HashRouterOptions::Of::projection ? options.bits : 0),
        scale_(static_cast<Real>(options.scale)),
        layer_(static_cast<std::uint64_t>(setting.layer)),
        input_dim_(setting.input_dim),
        experts_(setting.experts),
        stride_(kernels::padded(setting.experts)) {}

  std::size_t block_size() const override { return entries(input_dim_, kernels::padded(bits_)); }
  std::size_t frozen_size() const override { return block_size(); }
  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<HashScratch<Real>>(); }

  void initialize(const Start& start, Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    draw_columns(start, 1.0, projection(parameters));
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    if (bits_ == 0) return {};
    return {{"router_projection", {bits_, input_dim_}, values_of(projection(parameters).transposed())}};
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override {
    auto& own = static_cast<HashScratch<Real>&>(scratch);
    const int rows = context.x.rows;
    if (bits_ > 0) {
      reserve_entries(own.products, entries(rows, kernels::padded(bits_)));
      kernels::multiply(context.x, projection(parameters),
                        kernels::padded_rows(own.products.data(), rows, bits_));
    }
    const View<const Real> tokens = identity_rows(context);
    for (int i = 0; i < rows; ++i) {
      const std::uint64_t hash = bits_ > 0 ? mixed_bits(signs_of(own, i)) : row_hash(tokens, i, layer_);
      const int named = static_cast<int>(hash % static_cast<std::uint64_t>(experts_));
      name_expert(named, scale_, hash, experts_, scores + entries(i, stride_));
    }
    return {};
  }

 private:
  template <class Value>
  View<Value> projection(Value* block) const {
    return {block, input_dim_, bits_, kernels::padded(bits_)};
  }
  std::uint64_t signs_of(const HashScratch<Real>& own, int row) const {
    const Real* const products = own.products.data() + entries(row, kernels::padded(bits_));
    std::uint64_t signs = 0;
    for (int b = 0; b < bits_; ++b) signs = 2 * signs + (products[b] > 0 ? 1 : 0);
    return signs;
  }

  int bits_;  // 0: the hash of the token
  Real scale_;
  std::uint64_t layer_;
  int input_dim_;
  int experts_;
  int stride_;
};

/// The stream of a random router's key. Gatings and adaptive clustering use stream 1.
constexpr std::uint64_t kDrawsStream = 2;

template <class Real>
class RandomRouter final : public Router<Real> {
 public:
  RandomRouter(const RandomRouterOptions& options, const RouterSetting& setting)
      : redrawn_(options.draws == RandomRouterOptions::Draws::redrawn),
        scale_(options.scale),
        experts_(setting.experts),
        stride_(kernels::padded(setting.experts)) {}

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* /*parameters*/,
                             Scratch& /*scratch*/, Real* scores) const override {
    MOELAB_EXPECT(context.state);
    const View<const Real> rows = identity_rows(context);
    const auto part = [&](int i) { return static_cast<std::uint64_t>(context.state[i]); };
    const std::uint64_t key = part(0) << 48 ^ part(2) << 24 ^ part(1);
    constexpr double kUnit = 1.0 / 9007199254740992.0;  // 2^-53
    for (int i = 0; i < rows.rows; ++i) {
      const std::uint64_t hash = row_hash(rows, i, key);
      Real* const row = scores + entries(i, stride_);
      for (int e = 0; e < experts_; ++e) {
        const std::uint64_t bits = mixed_bits(hash + static_cast<std::uint64_t>(e));
        row[e] = static_cast<Real>(scale_ * static_cast<double>(bits >> 11) * kUnit);
      }
      std::fill(row + experts_, row + stride_, Real(0));
    }
    return {};
  }

  std::vector<StateArray> state_arrays() const override { return {step_stream::array("router_draws")}; }
  void start_state(const Start& start, double* state) const override {
    step_stream::start(start, state, kDrawsStream);
  }
  void begin_step(double /*progress*/, const Real* /*parameters*/, double* state) const override {
    if (redrawn_) step_stream::advance(state);
  }

 private:
  bool redrawn_;
  double scale_;
  int experts_;
  int stride_;
};

template <class Real>
class OracleRouter final : public Router<Real> {
 public:
  OracleRouter(const OracleRouterOptions& options, const RouterSetting& setting)
      : scale_(static_cast<Real>(options.scale)), experts_(setting.experts) {}

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* /*parameters*/,
                             Scratch& /*scratch*/, Real* scores) const override {
    const int* const labels = context.signals.labels;
    if (!labels) throw no_labels_error("model.router.kind", "oracle");
    for (int i = 0; i < context.x.rows; ++i) {
      name_expert(expert_of_cluster(labels[i], experts_), scale_,
                  mixed_bits(static_cast<std::uint64_t>(labels[i])), experts_,
                  scores + entries(i, kernels::padded(experts_)));
    }
    return {};
  }

 private:
  Real scale_;
  int experts_;
};

template <class Real>
struct CentroidScratch final : Scratch {
  CentroidScratch(int experts, int dim, std::size_t block)
      : sums(entries(experts, dim)), counts(size(experts)), centroids(block), unused(block) {}
  std::unique_ptr<Scratch> distances;
  std::vector<double> sums, counts;  // sum and number of the rows nearest to each centroid, (E, d) and (E)
  AlignedVector<Real> centroids;     // centroids as a parameter block of the distance router
  AlignedVector<Real> unused;        // gradient of this block; unused
};

/// The nearest-centroid router. Its scores come from squared_distance, with centers from the state.
template <class Real>
class NearestCentroidRouter final : public Router<Real> {
 public:
  NearestCentroidRouter(const NearestCentroidRouterOptions& options, const RouterSetting& setting)
      : law_(start_law(options.init)),
        init_scale_(options.init_scale),
        moves_(options.trainable),
        memory_(static_cast<double>(options.memory.value_or(0))),
        input_dim_(setting.input_dim),
        experts_(setting.experts),
        distances_(make_router<Real>(SquaredDistanceRouterOptions{}, setting)) {
    // Reading arrays of a block that holds its own places gives the places of their entries.
    const std::unique_ptr<Router<double>> numbered =
        make_router<double>(SquaredDistanceRouterOptions{}, setting);
    std::vector<double> places(numbered->block_size());
    std::iota(places.begin(), places.end(), 0.0);
    const std::vector<NamedArray<double>> arrays = numbered->arrays(places.data());
    places_.assign(arrays[0].values.begin(), arrays[0].values.end());
  }

  std::unique_ptr<Scratch> make_scratch() const override {
    auto scratch = std::make_unique<CentroidScratch<Real>>(experts_, input_dim_, distances_->block_size());
    scratch->distances = distances_->make_scratch();
    return scratch;
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* /*parameters*/, Scratch& scratch,
                             Real* scores) const override {
    MOELAB_EXPECT(context.state);
    auto& own = static_cast<CentroidScratch<Real>&>(scratch);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      own.centroids[places_[i]] = static_cast<Real>(context.state[i]);
    }
    distances_->forward(context, own.centroids.data(), *own.distances, scores);
    if (context.training && moves_) assign(context.x, scores, own);
    return {};
  }

  void backward(const RouterContext<Real>& context, const Real* /*parameters*/, Scratch& scratch,
                const RouterGradients<Real>& gradients) const override {
    if (!gradients.inputs) return;
    auto& own = static_cast<CentroidScratch<Real>&>(scratch);
    RouterGradients<Real> of_distances = gradients;
    of_distances.parameters = own.unused.data();
    distances_->backward(context, own.centroids.data(), *own.distances, of_distances);
  }

  std::vector<StateArray> state_arrays() const override {
    return {{"router_centroids", {experts_, input_dim_}}, {"router_centroid_rows", {experts_}}};
  }
  void start_state(const Start& start, double* state) const override {
    for (int e = 0; e < experts_; ++e) {
      double* const row = state + entries(e, input_dim_);
      law_.fill(start, e, init_scale_, {row, size(input_dim_)});
      for (int j = 0; j < input_dim_; ++j) row[j] = static_cast<double>(static_cast<Real>(row[j]));
    }
    std::fill_n(state + places_.size(), experts_, 0.0);
  }
  void end_step(const Scratch& scratch, double* state) const override {
    if (!moves_) return;
    const auto& own = static_cast<const CentroidScratch<Real>&>(scratch);
    double* const rows_of = state + places_.size();
    for (int e = 0; e < experts_; ++e) {
      const double count = own.counts[size(e)];
      if (count == 0) continue;
      const double past = memory_ > 0 ? std::min(rows_of[e], memory_) : rows_of[e];
      rows_of[e] = static_cast<double>(static_cast<Real>(past + count));
      for (int j = 0; j < input_dim_; ++j) {
        double& entry = state[entries(e, input_dim_) + size(j)];
        const double sum = own.sums[entries(e, input_dim_) + size(j)];
        entry = static_cast<double>(static_cast<Real>(entry + (sum - count * entry) / (past + count)));
      }
    }
  }

 private:
  void assign(const View<const Real>& x, const Real* scores, CentroidScratch<Real>& own) const {
    std::fill(own.sums.begin(), own.sums.end(), 0.0);
    std::fill(own.counts.begin(), own.counts.end(), 0.0);
    for (int i = 0; i < x.rows; ++i) {
      const Real* const row = scores + entries(i, kernels::padded(experts_));
      const std::size_t nearest = size(std::max_element(row, row + experts_) - row);
      ++own.counts[nearest];
      double* const sum = own.sums.data() + nearest * size(input_dim_);
      for (int j = 0; j < input_dim_; ++j) sum[j] += static_cast<double>(x.row(i)[j]);
    }
  }

  StartLaw law_;
  double init_scale_;
  bool moves_;
  double memory_;  // 0: all past rows count
  int input_dim_;
  int experts_;
  std::unique_ptr<Router<Real>> distances_;
  std::vector<std::size_t> places_;  // places of the centroids' entries in the block
};

}  // namespace

void HashRouterOptions::bind(Fields& fields) {
  fields.add("of", of, {"token", "projection"},
             "of the token's row of the model's inputs, or of the signs of fixed random projections");
  fields.add("bits", bits, between(1, 62), "projections");
  fields.add("scale", scale, at_least(0),
             "score of the row's expert; the others are just below 0, in an order that is hashed");
}

static void check_hash(const AnyOptions& options, int /*experts*/) {
  const HashRouterOptions& own = options.get<HashRouterOptions>();
  if (own.of == HashRouterOptions::Of::projection || own.bits == HashRouterOptions{}.bits) return;
  throw InvalidOption("model.router.bits",
                      "given, but model.router.of is \"token\"; only \"projection\" has bits");
}

RouterKind hash_router() {
  RouterKind kind = router_kind<HashRouterOptions, HashRouter>(
      "hash",
      "γ_e(x) = scale for the expert that a hash of x names, else 0. Nothing is learned (Roller et al. 2021)",
      {.scale = 2.0});
  kind.check = check_hash;
  return kind;
}

void RandomRouterOptions::bind(Fields& fields) {
  fields.add("draws", draws, {"fixed", "redrawn"}, "a token keeps its draws, or has new ones at every step");
  fields.add("scale", scale, at_least(0), "of the scores");
}

RouterKind random_router() {
  return router_kind<RandomRouterOptions, RandomRouter>(
      "random",
      "γ_e(x) = scale · u_e. u_e ~ U[0, 1) is drawn for each token and expert, once or at every step. "
      "Nothing is learned. A linear router with trainable false is a random function that is smooth in x");
}

void OracleRouterOptions::bind(Fields& fields) {
  fields.add("scale", scale, at_least(0),
             "score of the cluster's expert; the others are just below 0, in an order of the cluster's own");
}

InvalidOption no_labels_error(const std::string& path, const std::string& given) {
  return {path, fmt::format("got \"{}\", which needs the true cluster of every row: data with one label each",
                            given)};
}

RouterKind oracle_router() {
  RouterKind kind = router_kind<OracleRouterOptions, OracleRouter>(
      "oracle",
      "γ_e(x) = scale for the expert c mod E of the row's true cluster c, else 0. Nothing is learned. It "
      "bounds what a router can gain from knowing the clusters",
      {.scale = 2.0});
  kind.needs_labels = [](const AnyOptions&) { return "kind"; };
  kind.needed = "data with one label a row";
  return kind;
}

void NearestCentroidRouterOptions::bind(Fields& fields) {
  fields.add("trainable", trainable, "false keeps the centroids at their start");
  fields.add_name(
      "init", init, start_law_names(),
      "centroids start N(0, init_scale² I / d), or at init_scale times the first E training samples");
  fields.add("init_scale", init_scale, at_least(0), "scale of the start");
  fields.add("memory", memory, count(), "rows of the past that count at most in a centroid (default: all)");
}

RouterKind nearest_centroid_router() {
  RouterKind kind = router_kind<NearestCentroidRouterOptions, NearestCentroidRouter>(
      "nearest_centroid",
      "γ_e(x) = −‖x − c_e‖² / 2. Online k-means over the training batches moves the centroids c_e. No "
      "gradient does");
  kind.learns_in_state = true;
  kind.needs_train_rows = starts_at_train_rows<NearestCentroidRouterOptions>;
  return kind;
}

}  // namespace moelab
