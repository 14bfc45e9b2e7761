#include "analysis/metrics/sparsity.h"

#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

struct SparsityMetricOptions {
  int shuffles = 20;

  void bind(Fields& fields) {
    fields.add("shuffles", shuffles, between(1, 10000),
               "column permutations that the shuffled router averages over");
  }
};

template <class Real>
class SparsityMeter final : public Meter<Real> {
 public:
  SparsityMeter(const SparsityMetricOptions& options, const MeterSetting<Real>& setting)
      : data_(setting.data), unserved_(static_cast<std::size_t>(setting.data.rows()), -1) {
    const int columns = router_dim(setting.experiment.model, data_.layout());
    for (int s = 0; s < options.shuffles; ++s) {
      Engine engine = setting.seeds.stream(Purpose::shuffles, static_cast<std::uint64_t>(s));
      shuffles_.push_back(draw_permutation(engine, columns));
    }
  }

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& values) override {
    const MatrixView learned = moment.here.probabilities();
    add(learned, "", values);
    ClusterRouting served(learned.cols());
    for (const std::vector<int>& labels : data_.clusters().front().labels) {
      served.add(learned, moment.here.serving(), labels);
    }
    set(values, "top1_cluster_purity", served.top1_cluster_purity());
    set(values, "top1_cluster_concentration", served.top1_cluster_concentration());
    set(values, "top1_cluster_ari", adjusted_rand_index(served.top1_table()));
    set(values, "top1_cluster_nmi", normalized_mutual_information(served.top1_table()));
    set(values, "dispatch_entropy", dispatch_entropy(served.top1_table()));
    if (data_.has_ids()) measure_tokens(moment.here.serving(), values);
    for (const std::vector<int>& permutation : shuffles_) {
      add(data_.test_probabilities(moment.moment, moment.layer(), permutation), "_shuffled", values);
    }
    for (const ClusterLabels& clusters : data_.clusters()) {
      for (const char* name : {"cluster_entropy", "effective_experts"}) {
        values[name + clusters.suffix + "_shuffled"] /= static_cast<double>(shuffles_.size());
      }
    }
  }

 private:
  /// How experts agree with the tokens themselves, in place of the clusters.
  void measure_tokens(const std::vector<int>& serving, MetricValues& values) const {
    const Matrix& ids = data_.test().x;
    const std::vector<int> tokens(ids.data(), ids.data() + ids.size());
    const ContingencyTable table = routing_table(tokens, serving);
    set(values, "top1_token_ari", adjusted_rand_index(table));
    set(values, "top1_token_nmi", normalized_mutual_information(table));
  }

  /// Adds to the sums over shuffles, or to nothing.
  void add(const Eigen::Ref<const Matrix>& probabilities, const std::string& ending,
           MetricValues& values) const {
    for (const ClusterLabels& clusters : data_.clusters()) {
      ClusterRouting routing(probabilities.cols());
      for (const std::vector<int>& labels : clusters.labels) routing.add(probabilities, unserved_, labels);
      values["cluster_entropy" + clusters.suffix + ending] += routing.cluster_entropy();
      values["effective_experts" + clusters.suffix + ending] += routing.effective_experts();
    }
  }

  const MeasuredData<Real>& data_;
  /// No serving expert for any row: entropies of mean probabilities need none, and to find them took a sixth
  /// of the time.
  std::vector<int> unserved_;
  std::vector<std::vector<int>> shuffles_;  ///< permutations of the columns that routers read
};

}  // namespace

MetricGroup sparsity_metrics() {
  MetricGroup group = metric_group<SparsityMetricOptions, SparsityMeter>(
      "sparsity",
      "how few experts serve a cluster, learned and with the router's columns shuffled (Dikkala et al. 2023, "
      "3.1); entropies use probabilities, top1_ metrics serving",
      {{"cluster_entropy", false, "mean over clusters c of H(E[r(x) | c]), nats",
        "routing entropy per cluster (nats)", "router"},
       {"cluster_entropy_shuffled",
        false,
        "the same with shuffled router columns, mean over shuffles, nats",
        "routing entropy per cluster, shuffled (nats)",
        "shuffled",
        {&needs::inputs, &needs::router_columns}},
       {"effective_experts", true, "mean over clusters c of exp H(E[r(x) | c])",
        "effective experts per cluster", "router"},
       {"effective_experts_shuffled",
        true,
        "the same with shuffled router columns, mean over shuffles",
        "effective experts per cluster, shuffled",
        "shuffled",
        {&needs::inputs, &needs::router_columns}},
       {"cluster_entropy_per_atom",
        false,
        "data of several parts: the same over clusters that share one part, nats",
        "routing entropy with one atom fixed (nats)",
        "one atom fixed",
        {&needs::parts}},
       {"cluster_entropy_per_atom_shuffled",
        false,
        "the same with shuffled router columns, nats",
        "routing entropy with one atom fixed, shuffled (nats)",
        "one atom fixed, shuffled",
        {&needs::parts, &needs::inputs, &needs::router_columns}},
       {"effective_experts_per_atom",
        true,
        "mean of exp H over clusters that share one part",
        "effective experts with one atom fixed",
        "one atom fixed",
        {&needs::parts}},
       {"effective_experts_per_atom_shuffled",
        true,
        "the same with shuffled router columns",
        "effective experts with one atom fixed, shuffled",
        "one atom fixed, shuffled",
        {&needs::parts, &needs::inputs, &needs::router_columns}},
       {"cluster_entropy_overall",
        false,
        "data of several parts: H of the mean routing of all rows, nats",
        "routing entropy of all inputs (nats)",
        "all inputs",
        {&needs::parts}},
       {"cluster_entropy_overall_shuffled",
        false,
        "the same with shuffled router columns, nats",
        "routing entropy of all inputs, shuffled (nats)",
        "all inputs, shuffled",
        {&needs::parts, &needs::inputs, &needs::router_columns}},
       {"effective_experts_overall",
        true,
        "exp H of the mean routing of all rows",
        "effective experts of all inputs",
        "all inputs",
        {&needs::parts}},
       {"effective_experts_overall_shuffled",
        true,
        "the same with shuffled router columns",
        "effective experts of all inputs, shuffled",
        "all inputs, shuffled",
        {&needs::parts, &needs::inputs, &needs::router_columns}},
       {"top1_cluster_purity", false, "Σ_e max_c n_ec ÷ n, n_ec rows of cluster c that expert e serves",
        "cluster purity of experts (top-1)", "purity"},
       {"top1_cluster_concentration", false,
        "mean over clusters c of max_e n_ec ÷ n_c (1 under collapse, too)",
        "share of a cluster in one expert (top-1)", "concentration"},
       {"top1_cluster_ari", false,
        "adjusted Rand index of serving experts and clusters (1 equal, 0 as by chance)",
        "adjusted Rand index of experts and clusters", "ARI"},
       {"top1_cluster_nmi", false,
        "their normalised mutual information, I ÷ mean of the two entropies, in [0, 1]",
        "normalised mutual information of experts and clusters", "NMI"},
       {"top1_token_ari",
        false,
        "adjusted Rand index of serving experts and the tokens that they read (1 equal, 0 as by chance)",
        "adjusted Rand index of experts and tokens",
        "ARI with tokens",
        {&needs::token_ids}},
       {"top1_token_nmi",
        false,
        "their normalised mutual information, in [0, 1]",
        "normalised mutual information of experts and tokens",
        "NMI with tokens",
        {&needs::token_ids}},
       {"dispatch_entropy", false,
        "Σ_e n_e/n H(cluster | e) over serving experts e, nats: how mixed the clusters of an expert are",
        "entropy of an expert's clusters (nats)", "dispatch entropy"}});
  group.of_layers = true;
  group.needs = {&needs::router, &needs::labels};
  return group;
}

}  // namespace moelab
