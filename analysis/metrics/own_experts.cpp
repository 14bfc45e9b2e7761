#include "analysis/metrics/own_experts.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "analysis/metrics/agreement.h"
#include "analysis/metrics/metric_groups.h"
#include "sim/base/error.h"
#include "sim/data/gaussian_mixture.h"

namespace moelab {
namespace {

/// Raises `best` to a partner with more rows. Partners come in the order of their numbers.
void raise(std::pair<int, std::int64_t>& best, int partner, std::int64_t rows) {
  if (rows > best.second) best = {partner, rows};
}

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

namespace {

constexpr int kQuarters = 4;

struct OwnExpertsMetricOptions {
  void bind(Fields& /*fields*/) {}
};

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

/// The clusters, heaviest first, the lowest number among equals.
std::vector<int> clusters_by_weight(const Vector& shares) {
  std::vector<int> order(static_cast<std::size_t>(shares.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return shares[a] > shares[b]; });
  return order;
}

template <class Real>
class OwnExpertsMeter final : public Meter<Real> {
 public:
  OwnExpertsMeter(const OwnExpertsMetricOptions& /*options*/, const MeterSetting<Real>& setting)
      : data_(setting.data), experts_(routed_experts(setting.experiment.model)) {
    if (const auto* const mixture = mixture_of(setting.subject.data())) shares_ = cluster_shares(*mixture);
    order_ = clusters_by_weight(shares_);
  }

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& values) override {
    if (order_.empty()) return;
    set(values, "unsampled_clusters", expected_unsampled_clusters(shares_, experts_));
    const std::map<int, bool> is_own = own_experts(data_.test().cluster, moment.here.serving());
    if (is_own.empty()) return;
    set_share(values, "own_expert_share", is_own, 0, order_.size());
    const auto merged =
        std::count_if(is_own.begin(), is_own.end(), [](const auto& entry) { return !entry.second; });
    set(values, "merged_clusters", static_cast<double>(merged));
    if (order_.size() < kQuarters) return;
    for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
      set_share(values, fmt::format("own_expert_share_quarter{}", quarter + 1), is_own,
                quarter * order_.size() / kQuarters, (quarter + 1) * order_.size() / kQuarters);
    }
  }

 private:
  /// Of the clusters at the places [first, last) of the order that have rows.
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

  const MeasuredData<Real>& data_;
  int experts_;
  Vector shares_;
  std::vector<int> order_;
};

}  // namespace

MetricGroup own_experts_metrics() {
  std::vector<MetricGroup::Metric> metrics = {
      {"own_expert_share", false,
       "share of clusters c that are the largest of the expert that serves most of c (Dikkala et al. 2023, "
       "Theorem 2)",
       "clusters with an expert of their own (share)", "own expert"},
      {"merged_clusters", false, "number of the other clusters", "merged clusters", "merged"},
      {"unsampled_clusters", false,
       "Σ_c (1 − p_c)^E, clusters without a row among E drawn at random: the coupon collector's expectation",
       "clusters without a row among E (expected)", "coupon collector"}};
  const char* const quarters[kQuarters] = {"heaviest", "second", "third", "lightest"};
  for (int quarter = 0; quarter < kQuarters; ++quarter) {
    metrics.push_back(
        {fmt::format("own_expert_share_quarter{}", quarter + 1),
         false,
         fmt::format("own_expert_share of the {} quarter of the clusters by data.weights, the "
                     "lowest number first among equals",
                     quarters[quarter]),
         fmt::format("{} quarter of clusters with an expert of their own (share)", quarters[quarter]),
         fmt::format("{} quarter", quarters[quarter]),
         {&kFourClusters}});
  }
  MetricGroup group = metric_group<OwnExpertsMetricOptions, OwnExpertsMeter>(
      "own_experts", "which clusters have an expert of their own and which share one; uses serving",
      std::move(metrics));
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &kMixture};
  return group;
}

namespace {

struct LevelsMetricOptions {
  void bind(Fields& /*fields*/) {}
};

/// The tree of the clusters' means; null where they are on none.
const MeanHierarchy* tree_of(const DataOptions& data) {
  const auto* const mixture = data.as<GaussianMixtureOptions>();
  return mixture && mixture->hierarchy ? &*mixture->hierarchy : nullptr;
}

template <int level>
bool has_level(const MetricSubject& of, int /*layer*/) {
  const MeanHierarchy* const tree = tree_of(of.data());
  return tree && tree->depth >= level;
}

/// Of level 1 + the place, for each level that a tree may have.
template <int... places>
const Need* need_of_level(int level, std::integer_sequence<int, places...> /*all*/) {
  static const std::string texts[] = {fmt::format("data.hierarchy of depth {} or more", places + 1)...};
  static const Need needs[] = {{texts[places].c_str(), has_level<places + 1>}...};
  return &needs[level - 1];
}

template <class Real>
class LevelsMeter final : public Meter<Real> {
 public:
  LevelsMeter(const LevelsMetricOptions& /*options*/, const MeterSetting<Real>& setting)
      : data_(setting.data), tree_(tree_of(setting.subject.data())) {}

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& values) override {
    for (int level = 1; tree_ && level <= tree_->depth; ++level) {
      std::vector<int> ancestors = data_.test().cluster;
      for (int& cluster : ancestors) cluster = ancestor_of(*tree_, cluster, level);
      const ContingencyTable table = routing_table(ancestors, moment.here.serving());
      set(values, fmt::format("mutual_information_level{}", level), mutual_information(table));
      set(values, fmt::format("resolved_share_level{}", level), resolved_share(table));
    }
  }

 private:
  const MeasuredData<Real>& data_;
  const MeanHierarchy* tree_;
};

}  // namespace

MetricGroup levels_metrics() {
  std::vector<MetricGroup::Metric> metrics;
  for (int level = 1; level <= kMostLevels; ++level) {
    const std::vector<const Need*> needs = {
        need_of_level(level, std::make_integer_sequence<int, kMostLevels>())};
    metrics.push_back(
        {fmt::format("mutual_information_level{}", level), false,
         fmt::format("I of serving experts and the clusters' ancestors at level {}, nats", level),
         fmt::format("information of experts on level {} (nats)", level), fmt::format("level {}", level),
         needs});
    metrics.push_back(
        {fmt::format("resolved_share_level{}", level), false,
         fmt::format("the same ÷ entropy of these ancestors, in [0, 1]: 1 where an expert's rows "
                     "have one ancestor at level {}",
                     level),
         fmt::format("share of level {} that experts resolve", level), fmt::format("level {}", level),
         needs});
  }
  MetricGroup group =
      metric_group<LevelsMetricOptions, LevelsMeter>("levels",
                                                     "which levels of data.hierarchy experts resolve, level "
                                                     "1 below the root, the last one the clusters; uses "
                                                     "serving",
                                                     std::move(metrics));
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router};
  return group;
}

}  // namespace moelab
