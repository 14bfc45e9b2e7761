#include "analysis/metrics/sparsity.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/metrics/load.h"
#include "analysis/metrics/metric_groups.h"
#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"

namespace moelab {

double entropy(std::span<const double> distribution) {
  double sum = 0;
  for (const double probability : distribution)
    // Not `> 0`, which NaN is not either: the entropy of what is not a number would be 0.
    if (!(probability <= 0)) sum -= probability * std::log(probability);
  return sum;
}

ClusterRouting::ClusterRouting(Eigen::Index experts) : experts_(experts) {}

ClusterRouting::ClusterRouting(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> labels)
    : ClusterRouting(probabilities.cols()) {
  add(probabilities, labels);
}

ClusterRouting::ClusterRouting(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> serving,
                               std::span<const int> labels)
    : ClusterRouting(probabilities.cols()) {
  add(probabilities, serving, labels);
}

ClusterRouting::Cluster& ClusterRouting::cluster_of(int label) {
  const auto [place, is_new] = index_of_label_.try_emplace(label, clusters_.size());
  if (is_new) {
    const std::vector<std::int64_t> no_counts(static_cast<std::size_t>(experts_), 0);
    clusters_.push_back({0, 0, Vector::Zero(experts_), no_counts});
  }
  return clusters_[place->second];
}

void ClusterRouting::add(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> labels) {
  require_columns(probabilities);
  add(probabilities, top1_assignment(probabilities), labels);
}

void ClusterRouting::add(const Eigen::Ref<const Matrix>& probabilities, std::span<const int> serving,
                         std::span<const int> labels) {
  require_columns(probabilities);
  if (static_cast<std::size_t>(probabilities.rows()) != labels.size())
    throw InvalidOption("labels", fmt::format("{} labels for {} rows of routing probabilities", labels.size(),
                                              probabilities.rows()));
  if (serving.size() != labels.size())
    throw InvalidOption("serving", fmt::format("{} experts for {} rows of routing probabilities",
                                               serving.size(), labels.size()));
  for (Eigen::Index row = 0; row < probabilities.rows(); ++row) {
    Cluster& cluster = cluster_of(labels[static_cast<std::size_t>(row)]);
    const double* routing = &probabilities.coeffRef(row, 0);
    cluster.probability_sum += Eigen::Map<const Vector>(routing, experts_);
    ++cluster.rows;
    const int expert = serving[static_cast<std::size_t>(row)];
    if (expert >= experts_)
      throw InvalidOption("serving", fmt::format("expert {}, but there are {} experts", expert, experts_));
    if (expert < 0) continue;
    ++cluster.serving_counts[static_cast<std::size_t>(expert)];
    ++cluster.served_rows;
    ++served_rows_;
  }
  rows_ += probabilities.rows();
}

void ClusterRouting::require_columns(const Eigen::Ref<const Matrix>& probabilities) const {
  if (probabilities.cols() != experts_ || experts_ == 0)
    throw InvalidOption("probs",
                        fmt::format("{} columns, but there are {} experts", probabilities.cols(), experts_));
}

void ClusterRouting::require_rows() const {
  if (rows_ == 0) throw InvalidOption("probs", "empty; metrics of clusters need at least one row");
}

Matrix ClusterRouting::mean_routing() const {
  Matrix mean(clusters(), experts_);
  for (Eigen::Index c = 0; c < clusters(); ++c) {
    const Cluster& cluster = clusters_[static_cast<std::size_t>(c)];
    mean.row(c) = cluster.probability_sum.transpose() / static_cast<double>(cluster.rows);
  }
  return mean;
}

Vector ClusterRouting::cluster_entropies() const {
  require_rows();
  const Matrix mean = mean_routing();
  Vector entropies(clusters());
  for (Eigen::Index c = 0; c < clusters(); ++c)
    entropies(c) = entropy({&mean.coeffRef(c, 0), static_cast<std::size_t>(experts_)});
  return entropies;
}

double ClusterRouting::cluster_entropy() const {
  return cluster_entropies().mean();
}

double ClusterRouting::effective_experts() const {
  return cluster_entropies().array().exp().mean();
}

std::optional<double> ClusterRouting::top1_cluster_purity() const {
  require_rows();
  if (served_rows_ == 0) return std::nullopt;
  std::int64_t majority_rows = 0;
  for (std::size_t expert = 0; expert < static_cast<std::size_t>(experts_); ++expert) {
    std::int64_t largest = 0;
    for (const Cluster& cluster : clusters_) largest = std::max(largest, cluster.serving_counts[expert]);
    majority_rows += largest;
  }
  return static_cast<double>(majority_rows) / static_cast<double>(served_rows_);
}

std::optional<double> ClusterRouting::top1_cluster_concentration() const {
  require_rows();
  double sum = 0;
  std::int64_t clusters = 0;
  for (const Cluster& cluster : clusters_) {
    if (cluster.served_rows == 0) continue;
    const std::int64_t largest =
        *std::max_element(cluster.serving_counts.begin(), cluster.serving_counts.end());
    sum += static_cast<double>(largest) / static_cast<double>(cluster.served_rows);
    ++clusters;
  }
  if (clusters == 0) return std::nullopt;
  return sum / static_cast<double>(clusters);
}

ContingencyTable ClusterRouting::top1_table() const {
  require_rows();
  const auto is_served = [](const Cluster& cluster) { return cluster.served_rows > 0; };
  ContingencyTable table(std::count_if(clusters_.begin(), clusters_.end(), is_served), experts_);
  Eigen::Index row = 0;
  for (const Cluster& cluster : clusters_) {
    if (!is_served(cluster)) continue;
    std::copy(cluster.serving_counts.begin(), cluster.serving_counts.end(), table.row(row++).begin());
  }
  return table;
}

ShuffledRouter::ShuffledRouter(const Eigen::Ref<const Matrix>& weight, const Seeds& seeds, int shuffles)
    : experts_(static_cast<int>(weight.rows())),
      width_(static_cast<int>(weight.cols())),
      stride_(kernels::padded(experts_)) {
  std::vector<int> columns(static_cast<std::size_t>(width_));
  std::iota(columns.begin(), columns.end(), 0);
  for (int s = -1; s < shuffles; ++s) {
    if (s >= 0) {
      Engine engine = seeds.stream(Purpose::shuffles, static_cast<std::uint64_t>(s));
      columns = draw_permutation(engine, width_);
    }
    // W_π x = W x' with x'_j = x_π(j): column j of W meets coordinate π(j).
    AlignedVector<double> transposed(static_cast<std::size_t>(width_) * static_cast<std::size_t>(stride_), 0);
    for (int j = 0; j < width_; ++j) {
      const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(columns[static_cast<std::size_t>(j)]) * stride_;
      for (int e = 0; e < experts_; ++e) transposed[static_cast<std::size_t>(row + e)] = weight(e, j);
    }
    weights_.push_back(std::move(transposed));
  }
}

ShuffledRouter::Probabilities ShuffledRouter::route(const AlignedVector<double>& weight,
                                                    const Matrix& inputs) {
  if (inputs.cols() != width_)
    throw InvalidOption("inputs", fmt::format("{} columns for a router of width {}", inputs.cols(), width_));
  const int rows = static_cast<int>(inputs.rows());
  reserve_entries(probabilities_, static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride_));
  kernels::Product<double> product;
  product.m = rows;
  product.n = experts_;
  product.k = width_;
  product.a = inputs.data();
  product.a_row = width_;
  product.b = weight.data();
  product.b_row = stride_;
  product.c = probabilities_.data();
  product.c_row = stride_;
  kernels::multiply(product);
  kernels::softmax_rows(probabilities_.data(), probabilities_.data(), rows, experts_, stride_);
  return {probabilities_.data(), rows, experts_, Eigen::OuterStride<>(stride_)};
}

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
