#include "sim/model/router/nearest_centroid_router.h"

#include <algorithm>
#include <numeric>

#include "sim/base/kernels/kernels.h"
#include "sim/model/router/squared_distance_router.h"

namespace moelab {
namespace {

template <class Real>
struct CentroidScratch final : Scratch {
  CentroidScratch(int experts, int dim, std::size_t block)
      : sums(entries(experts, dim)), counts(size(experts)), centroids(block), unused(block) {}
  std::unique_ptr<Scratch> distances;
  std::vector<double> sums, counts;  // of the rows nearest to each centroid, (E, d) and (E)
  AlignedVector<Real> centroids;     // as a block of the distances
  AlignedVector<Real> unused;        // its gradient, which nobody asked for
};

/// The scores are those of squared_distance with centers from the state.
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
    // Arrays of the places themselves tell where the entries of an array lie.
    const std::unique_ptr<Router<double>> numbered =
        make_router<double>(SquaredDistanceRouterOptions{}, setting);
    std::vector<double> places(numbered->block_size());
    std::iota(places.begin(), places.end(), 0.0);
    const std::vector<NamedArray<double>> arrays = numbered->arrays(places.data());
    places_.assign(arrays[0].values.begin(), arrays[0].values.end());
  }

  std::size_t parameter_count() const override { return 0; }
  std::size_t block_size() const override { return 0; }
  void initialize(const Start& /*start*/, Real* /*parameters*/) const override {}
  std::vector<NamedArray<Real>> arrays(const Real* /*parameters*/) const override { return {}; }
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
  double memory_;  // 0: all of the past
  int input_dim_;
  int experts_;
  std::unique_ptr<Router<Real>> distances_;
  std::vector<std::size_t> places_;  // of the centroids' entries in its block
};

}  // namespace

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
      "γ_e(x) = −‖x − c_e‖² / 2, c_e the centroids of k-means online over the training batches; no gradient "
      "moves them");
  kind.learns_in_state = true;
  kind.needs_train_rows = [](const AnyOptions& options) {
    return start_law(options.get<NearestCentroidRouterOptions>().init).needs_train_rows;
  };
  return kind;
}

}  // namespace moelab
