#include "analysis/metrics/sparsity.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "analysis/metrics/meters.h"
#include "analysis/metrics/routing.h"
#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"
#include "sim/data/gaussian_mixture.h"

namespace moelab {

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
  if (!serving.empty() && serving.size() != labels.size())
    throw InvalidOption("serving", fmt::format("{} experts for {} rows of routing probabilities",
                                               serving.size(), labels.size()));
  for (Eigen::Index row = 0; row < probabilities.rows(); ++row) {
    Cluster& cluster = cluster_of(labels[static_cast<std::size_t>(row)]);
    const double* routing = &probabilities.coeffRef(row, 0);
    cluster.probability_sum += Eigen::Map<const Vector>(routing, experts_);
    ++cluster.rows;
    const int expert = serving.empty() ? -1 : serving[static_cast<std::size_t>(row)];
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

ShuffledRouter::ShuffledRouter(const Eigen::Ref<const Matrix>& weight, const Seeds& seeds)
    : given_(weight),
      seeds_(seeds),
      experts_(static_cast<int>(weight.rows())),
      width_(static_cast<int>(weight.cols())),
      stride_(kernels::padded(experts_)) {
  std::vector<int> columns(static_cast<std::size_t>(width_));
  std::iota(columns.begin(), columns.end(), 0);
  weight_ = with_columns(columns);
}

AlignedVector<double> ShuffledRouter::with_columns(const std::vector<int>& columns) const {
  // W_π x = W x' with x'_j = x_π(j): column j of W meets coordinate π(j).
  AlignedVector<double> transposed(entries(width_, stride_), 0);
  for (int j = 0; j < width_; ++j) {
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(columns[static_cast<std::size_t>(j)]) * stride_;
    for (int e = 0; e < experts_; ++e) transposed[static_cast<std::size_t>(row + e)] = given_(e, j);
  }
  return transposed;
}

ShuffledRouter::Probabilities ShuffledRouter::route_shuffled(int s, const Matrix& inputs) {
  for (std::size_t next = shuffled_.size(); next <= static_cast<std::size_t>(s); ++next) {
    Engine engine = seeds_.stream(Purpose::shuffles, next);
    shuffled_.push_back(with_columns(draw_permutation(engine, width_)));
  }
  return route(shuffled_.at(static_cast<std::size_t>(s)), inputs);
}

ShuffledRouter::Probabilities ShuffledRouter::route(const AlignedVector<double>& transposed,
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
  product.b = transposed.data();
  product.b_row = stride_;
  product.c = probabilities_.data();
  product.c_row = stride_;
  kernels::multiply(product);
  kernels::softmax_rows(probabilities_.data(), probabilities_.data(), rows, experts_, stride_);
  return {probabilities_.data(), rows, experts_, Eigen::OuterStride<>(stride_)};
}

namespace {

/// Replaces `best` by a partner with more rows. Partners come in the order of their numbers.
void raise(std::pair<int, std::int64_t>& best, int partner, std::int64_t rows) {
  if (rows > best.second) best = {partner, rows};
}

struct SparsityMetricOptions {
  int shuffles = 20;

  void bind(Fields& fields) {
    fields.add("shuffles", shuffles, between(1, 10000),
               "column permutations that the shuffled router averages over");
  }
};

class SparsityMeter final : public RowMeter {
 public:
  SparsityMeter(const SparsityMetricOptions& options, const RowSetting& /*setting*/)
      : shuffles_(options.shuffles) {}

  void measure(LayerRows& rows, LayerMetrics& metrics) override {
    const std::vector<ClusterLabels>& clusters = rows.clusters();
    std::vector<ClusterSums> cuts(clusters.size(), {ClusterRouting(rows.experts()), {}});
    const std::span<const int> serving = rows.serving();
    const int shuffles = rows.has_shuffles() ? shuffles_ : 0;
    for (ClusterSums& cut : cuts) cut.shuffled.resize(static_cast<std::size_t>(shuffles));
    MetricValues& values = metrics.values;
    rows.visit([&](const RowBlock& block) {
      // Only the first way to cut the rows needs serving experts.
      for (std::size_t c = 0; c < cuts.size(); ++c)
        add(block, block.probabilities, c == 0 ? serving : std::span<const int>(), clusters[c],
            cuts[c].learned);
      for (std::size_t s = 0; s < static_cast<std::size_t>(shuffles); ++s) {
        const Eigen::Ref<const Matrix> shuffled = rows.shuffled(block, static_cast<int>(s));
        for (std::size_t c = 0; c < cuts.size(); ++c) {
          std::optional<ClusterRouting>& sums = cuts[c].shuffled[s];
          if (!sums) sums.emplace(rows.experts());
          add(block, shuffled, {}, clusters[c], *sums);
          if (!block.is_last) continue;
          add_entropies(*sums, clusters[c].suffix + "_shuffled", values);
          sums.reset();  // a model's rows are one block: one shuffle's sums at a time
        }
      }
    });
    for (std::size_t c = 0; c < cuts.size(); ++c) {
      add_entropies(cuts[c].learned, clusters[c].suffix, values);
      for (const char* name : {"cluster_entropy", "effective_experts"}) {
        if (shuffles > 0) values[name + clusters[c].suffix + "_shuffled"] /= shuffles;
      }
    }
    if (!cuts.empty()) set_served(cuts.front().learned, values);
    if (const std::vector<int> tokens = rows.token_ids(); !tokens.empty()) {
      const ContingencyTable table = routing_table(tokens, serving);
      set(values, "top1_token_ari", adjusted_rand_index(table));
      set(values, "top1_token_nmi", normalized_mutual_information(table));
    }
  }

 private:
  /// Sums over the clusters of one way to cut the rows, learned and of each shuffle.
  struct ClusterSums {
    ClusterRouting learned;
    std::vector<std::optional<ClusterRouting>> shuffled;
  };

  static void add(const RowBlock& block, const Eigen::Ref<const Matrix>& probabilities,
                  std::span<const int> serving, const ClusterLabels& clusters, ClusterRouting& sums) {
    for (const std::vector<int>& labels : clusters.labels) {
      sums.add(probabilities, serving.empty() ? serving : part_of(serving, block),
               part_of<int>(labels, block));
    }
  }

  static void add_entropies(const ClusterRouting& sums, const std::string& ending, MetricValues& values) {
    values["cluster_entropy" + ending] += sums.cluster_entropy();
    values["effective_experts" + ending] += sums.effective_experts();
  }

  static void set_served(const ClusterRouting& served, MetricValues& values) {
    set(values, "top1_cluster_purity", served.top1_cluster_purity());
    set(values, "top1_cluster_concentration", served.top1_cluster_concentration());
    set(values, "top1_cluster_ari", adjusted_rand_index(served.top1_table()));
    set(values, "top1_cluster_nmi", normalized_mutual_information(served.top1_table()));
    set(values, "dispatch_entropy", dispatch_entropy(served.top1_table()));
  }

  int shuffles_;
};

constexpr int kQuarters = 4;
constexpr const char* kQuarterNames[kQuarters] = {"heaviest", "second", "third", "lightest"};

/// The mixture of the test set; null for other data.
const GaussianMixtureOptions* mixture_of(const DataOptions& data) {
  return data.as<GaussianMixtureOptions>();
}

bool has_mixture(const MetricSubject& of, int /*layer*/) {
  return mixture_of(of.data()) != nullptr;
}

bool has_quarters(const MetricSubject& of, int /*layer*/) {
  const auto* const mixture = mixture_of(of.data());
  return mixture && clusters_of(*mixture) >= kQuarters;
}

const Need kMixture = {"data.generator gaussian_mixture", has_mixture};
const Need kFourClusters = {"data.clusters of 4 or more", has_quarters};

/// The clusters by descending weight, the lowest number first among equals.
std::vector<int> clusters_by_weight(const Vector& shares) {
  std::vector<int> order(static_cast<std::size_t>(shares.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return shares[a] > shares[b]; });
  return order;
}

class OwnExpertsMeter final : public RowMeter {
 public:
  OwnExpertsMeter(const NoMetricOptions& /*options*/, const RowSetting& setting) {
    if (const auto* const mixture = setting.cell ? mixture_of(setting.cell->data()) : nullptr)
      shares_ = cluster_shares(*mixture);
    order_ = clusters_by_weight(shares_);
  }

  void measure(LayerRows& rows, LayerMetrics& metrics) override {
    if (order_.empty()) return;
    MetricValues& values = metrics.values;
    values["unsampled_clusters"] = expected_unsampled_clusters(shares_, rows.experts());
    const std::map<int, bool> is_own = own_experts(rows.clusters().front().labels.front(), rows.serving());
    if (is_own.empty()) return;
    set_share(values, "own_expert_share", is_own, 0, order_.size());
    const auto merged =
        std::count_if(is_own.begin(), is_own.end(), [](const auto& entry) { return !entry.second; });
    values["merged_clusters"] = static_cast<double>(merged);
    if (order_.size() < kQuarters) return;
    for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
      set_share(values, fmt::format("own_expert_share_quarter{}", quarter + 1), is_own,
                quarter * order_.size() / kQuarters, (quarter + 1) * order_.size() / kQuarters);
    }
  }

 private:
  /// Sets the share among the clusters at the places [first, last) of the order that have rows.
  void set_share(MetricValues& values, const std::string& name, const std::map<int, bool>& is_own,
                 std::size_t first, std::size_t last) const {
    int there = 0, own = 0;
    for (std::size_t place = first; place < last; ++place) {
      const auto entry = is_own.find(order_[place]);
      if (entry == is_own.end()) continue;
      ++there;
      own += entry->second ? 1 : 0;
    }
    if (there > 0) set(values, name, static_cast<double>(own) / there);
  }

  Vector shares_;
  std::vector<int> order_;
};

template <class Real>
class ClusterLossMeter final : public ModelMeter<Real> {
 public:
  ClusterLossMeter(const NoMetricOptions& /*options*/, const MeterSetting<Real>& setting)
      : data_(setting.data) {
    const auto* const mixture = mixture_of(setting.subject.data());
    if (!mixture) return;
    order_ = clusters_by_weight(cluster_shares(*mixture));
    const std::vector<int>& labels = data_.test().cluster;
    rows_.resize(order_.size());
    for (std::size_t i = 0; i < labels.size(); ++i)
      rows_[size(labels[i])].push_back(static_cast<Eigen::Index>(i));
  }

  void measure(const TestMoment<Real>& moment, MetricValues& values) override {
    if (order_.empty()) return;
    const Matrix outputs = moment.pass.outputs();
    set_mean(values, "test_loss_clusters", outputs, 0, order_.size());
    if (order_.size() < kQuarters) return;
    for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
      set_mean(values, fmt::format("test_loss_quarter{}", quarter + 1), outputs,
               quarter * order_.size() / kQuarters, (quarter + 1) * order_.size() / kQuarters);
    }
  }

 private:
  /// Sets the mean over the clusters at the places [first, last) of the order that have rows.
  void set_mean(MetricValues& values, const std::string& name, const Matrix& outputs, std::size_t first,
                std::size_t last) const {
    double sum = 0;
    int there = 0;
    for (std::size_t place = first; place < last; ++place) {
      const std::vector<Eigen::Index>& rows = rows_[size(order_[place])];
      if (rows.empty()) continue;
      sum += data_.task_loss(outputs(rows, Eigen::all), data_.test().y(rows, Eigen::all));
      ++there;
    }
    if (there > 0) values[name] = sum / there;
  }

  const MeasuredData<Real>& data_;
  std::vector<int> order_;                       ///< clusters by descending weight
  std::vector<std::vector<Eigen::Index>> rows_;  ///< test rows of each cluster
};

/// The tree of the clusters' means; null without a tree.
const MeanHierarchy* tree_of(const DataOptions& data) {
  const auto* const mixture = data.as<GaussianMixtureOptions>();
  return mixture && mixture->hierarchy ? &*mixture->hierarchy : nullptr;
}

template <int level>
bool has_level(const MetricSubject& of, int /*layer*/) {
  const MeanHierarchy* const tree = tree_of(of.data());
  return tree && tree->depth >= level;
}

/// The need of a level, for each level that a tree may have.
template <int... places>
const Need* need_of_level(int level, std::integer_sequence<int, places...> /*all*/) {
  static const std::string texts[] = {fmt::format("data.hierarchy of depth {} or more", places + 1)...};
  static const Need needs[] = {{texts[places].c_str(), has_level<places + 1>}...};
  return &needs[level - 1];
}

class LevelsMeter final : public RowMeter {
 public:
  LevelsMeter(const NoMetricOptions& /*options*/, const RowSetting& setting)
      : tree_(setting.cell ? tree_of(setting.cell->data()) : nullptr) {}

  void measure(LayerRows& rows, LayerMetrics& metrics) override {
    for (int level = 1; tree_ && level <= tree_->depth; ++level) {
      std::vector<int> ancestors = rows.clusters().front().labels.front();
      for (int& cluster : ancestors) cluster = ancestor_of(*tree_, cluster, level);
      const ContingencyTable table = routing_table(ancestors, rows.serving());
      set(metrics.values, fmt::format("mutual_information_level{}", level), mutual_information(table));
      set(metrics.values, fmt::format("resolved_share_level{}", level), resolved_share(table));
    }
  }

 private:
  const MeanHierarchy* tree_;
};

}  // namespace

std::map<int, bool> own_experts(std::span<const int> clusters, std::span<const int> serving) {
  if (clusters.size() != serving.size()) {
    throw InvalidOption(
        "serving", fmt::format("{} rows; needs one for each of {} labels", serving.size(), clusters.size()));
  }
  std::map<std::pair<int, int>, std::int64_t> rows;
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    if (clusters[i] >= 0 && serving[i] >= 0) ++rows[{clusters[i], serving[i]}];
  }
  std::map<int, std::pair<int, std::int64_t>> expert_of, cluster_of;
  for (const auto& [pair, count] : rows) {
    raise(expert_of[pair.first], pair.second, count);
    raise(cluster_of[pair.second], pair.first, count);
  }
  std::map<int, bool> is_own;
  for (const auto& [cluster, best] : expert_of) is_own[cluster] = cluster_of[best.first].first == cluster;
  return is_own;
}

double expected_unsampled_clusters(const Eigen::Ref<const Vector>& shares, double experts) {
  return (1 - shares.array()).pow(experts).sum();
}

MetricGroup sparsity_metrics() {
  MetricGroup group = row_metrics<SparsityMetricOptions, SparsityMeter>(
      "sparsity",
      "how few experts serve a cluster, learned and with the router's columns shuffled (Dikkala et al. 2023, "
      "3.1); entropies use probabilities, top1_ metrics serving",
      {metric("cluster_entropy", false, "mean over clusters c of H(E[r(x) | c]), nats",
              "routing entropy per cluster (nats)", "router"),
       metric("cluster_entropy_shuffled", false,
              "cluster_entropy with shuffled router columns, mean over shuffles, nats",
              "routing entropy per cluster, shuffled (nats)", "shuffled",
              {&needs::inputs, &needs::router_columns}),
       metric("effective_experts", true, "mean over clusters c of exp H(E[r(x) | c])",
              "effective experts per cluster", "router"),
       metric("effective_experts_shuffled", true,
              "effective_experts with shuffled router columns, mean over shuffles",
              "effective experts per cluster, shuffled", "shuffled",
              {&needs::inputs, &needs::router_columns}),
       metric("cluster_entropy_per_atom", false,
              "data of several parts: mean of H over clusters that share one part, nats",
              "routing entropy with one atom fixed (nats)", "one atom fixed", {&needs::parts}),
       metric("cluster_entropy_per_atom_shuffled", false,
              "cluster_entropy_per_atom with shuffled router columns, nats",
              "routing entropy with one atom fixed, shuffled (nats)", "one atom fixed, shuffled",
              {&needs::parts, &needs::inputs, &needs::router_columns}),
       metric("effective_experts_per_atom", true, "mean of exp H over clusters that share one part",
              "effective experts with one atom fixed", "one atom fixed", {&needs::parts}),
       metric("effective_experts_per_atom_shuffled", true,
              "effective_experts_per_atom with shuffled router columns",
              "effective experts with one atom fixed, shuffled", "one atom fixed, shuffled",
              {&needs::parts, &needs::inputs, &needs::router_columns}),
       metric("cluster_entropy_overall", false,
              "data of several parts: H of the mean routing of all rows, nats",
              "routing entropy of all inputs (nats)", "all inputs", {&needs::parts}),
       metric("cluster_entropy_overall_shuffled", false,
              "cluster_entropy_overall with shuffled router columns, nats",
              "routing entropy of all inputs, shuffled (nats)", "all inputs, shuffled",
              {&needs::parts, &needs::inputs, &needs::router_columns}),
       metric("effective_experts_overall", true, "exp H of the mean routing of all rows",
              "effective experts of all inputs", "all inputs", {&needs::parts}),
       metric("effective_experts_overall_shuffled", true,
              "effective_experts_overall with shuffled router columns",
              "effective experts of all inputs, shuffled", "all inputs, shuffled",
              {&needs::parts, &needs::inputs, &needs::router_columns}),
       metric("top1_cluster_purity", false, "Σ_e max_c n_ec ÷ n, n_ec rows of cluster c that expert e serves",
              "cluster purity of experts (top-1)", "purity"),
       metric("top1_cluster_concentration", false,
              "mean over clusters c of max_e n_ec ÷ n_c (1 under collapse, too)",
              "share of a cluster in one expert (top-1)", "concentration"),
       metric("top1_cluster_ari", false,
              "adjusted Rand index of serving experts and clusters (1 equal, 0 as by chance)",
              "adjusted Rand index of experts and clusters", "ARI"),
       metric("top1_cluster_nmi", false,
              "normalised mutual information of serving experts and clusters, I ÷ mean of the two entropies, "
              "in [0, 1]",
              "normalised mutual information of experts and clusters", "NMI"),
       metric(
           "top1_token_ari", false,
           "adjusted Rand index of serving experts and the tokens that they read (1 equal, 0 as by chance)",
           "adjusted Rand index of experts and tokens", "ARI with tokens", {&needs::token_ids}),
       metric("top1_token_nmi", false,
              "normalised mutual information of serving experts and the tokens that they read, in [0, 1]",
              "normalised mutual information of experts and tokens", "NMI with tokens", {&needs::token_ids}),
       metric(
           "dispatch_entropy", false,
           "Σ_e n_e/n H(cluster | e) over serving experts e, nats: how mixed the clusters of an expert are",
           "entropy of an expert's clusters (nats)", "dispatch entropy")});
  for (MetricGroup::Metric& metric : group.metrics) {
    if (metric.name.starts_with("top1_") || metric.name == "dispatch_entropy")
      metric.needs.push_back(&needs::first_choice);
  }
  group.of_layers = true;
  group.needs = {&needs::router, &needs::labels, &needs::probabilities};
  set_larger_is_better(group, {"top1_cluster_purity", "top1_cluster_concentration", "top1_cluster_ari",
                               "top1_cluster_nmi", "top1_token_ari", "top1_token_nmi"});
  return group;
}

MetricGroup cluster_losses_metrics() {
  std::vector<MetricGroup::Metric> metrics = {
      metric("test_loss_clusters", true,
             "mean over clusters of test_loss_eval of the cluster's rows: rare clusters count as heavy ones",
             "test loss, mean over clusters", "mean over clusters")};
  for (int quarter = 0; quarter < kQuarters; ++quarter) {
    metrics.push_back(
        metric(fmt::format("test_loss_quarter{}", quarter + 1), true,
               fmt::format("test_loss_clusters over the {} quarter of the clusters by data.weights",
                           kQuarterNames[quarter]),
               fmt::format("test loss, {} quarter of clusters", kQuarterNames[quarter]),
               fmt::format("{} quarter", kQuarterNames[quarter]), {&kFourClusters}));
  }
  MetricGroup group = model_metrics<NoMetricOptions, ClusterLossMeter>(
      "cluster_losses", "who bears the loss, frequent clusters or rare ones; uses what gating.eval selects",
      std::move(metrics));
  group.by_default = false;
  group.needs = {&needs::model, &kMixture};
  return group;
}

MetricGroup own_experts_metrics() {
  std::vector<MetricGroup::Metric> metrics = {
      metric("own_expert_share", false,
             "share of clusters c that are the largest of the expert that serves most of c (Dikkala et al. "
             "2023, Theorem 2)",
             "clusters with an expert of their own (share)", "own expert"),
      metric("merged_clusters", false, "number of clusters without an expert of their own", "merged clusters",
             "merged"),
      metric("unsampled_clusters", false,
             "Σ_c (1 − p_c)^E, clusters without a row among E drawn at random: the coupon collector's "
             "expectation",
             "clusters without a row among E (expected)", "coupon collector")};
  for (int quarter = 0; quarter < kQuarters; ++quarter) {
    metrics.push_back(metric(
        fmt::format("own_expert_share_quarter{}", quarter + 1), false,
        fmt::format("own_expert_share of the {} quarter of the clusters by data.weights, the lowest "
                    "number first among equals",
                    kQuarterNames[quarter]),
        fmt::format("{} quarter of clusters with an expert of their own (share)", kQuarterNames[quarter]),
        fmt::format("{} quarter", kQuarterNames[quarter]), {&kFourClusters}));
  }
  MetricGroup group = row_metrics<NoMetricOptions, OwnExpertsMeter>(
      "own_experts", "which clusters have an expert of their own and which share one; uses serving",
      std::move(metrics));
  for (MetricGroup::Metric& metric : group.metrics)
    metric.larger_is_better = metric.name.starts_with("own_expert_share");
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &kMixture};
  return group;
}

MetricGroup levels_metrics() {
  std::vector<MetricGroup::Metric> metrics;
  for (int level = 1; level <= kMostLevels; ++level) {
    const std::vector<const Need*> needs = {
        need_of_level(level, std::make_integer_sequence<int, kMostLevels>())};
    metrics.push_back(
        metric(fmt::format("mutual_information_level{}", level), false,
               fmt::format("I of serving experts and the clusters' ancestors at level {}, nats", level),
               fmt::format("information of experts on level {} (nats)", level),
               fmt::format("level {}", level), needs));
    metrics.push_back(metric(
        fmt::format("resolved_share_level{}", level), false,
        fmt::format("mutual_information_level{0} ÷ entropy of the ancestors, in [0, 1]: 1 "
                    "where an expert's rows have one ancestor at level {0}",
                    level),
        fmt::format("share of level {} that experts resolve", level), fmt::format("level {}", level), needs));
  }
  MetricGroup group =
      row_metrics<NoMetricOptions, LevelsMeter>("levels",
                                                "which levels of data.hierarchy experts resolve, level 1 "
                                                "below the root, the last one the clusters; uses serving",
                                                std::move(metrics));
  for (MetricGroup::Metric& metric : group.metrics) metric.larger_is_better = true;
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router};
  return group;
}

}  // namespace moelab
