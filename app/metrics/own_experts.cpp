#include "analysis/metrics/own_experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "app/metrics/metric_groups.h"
#include "sim/data/gaussian_mixture.h"

namespace moelab {
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

}  // namespace moelab
