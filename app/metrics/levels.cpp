#include <fmt/format.h>

#include <utility>

#include "analysis/metrics/agreement.h"
#include "app/metrics/metric_groups.h"
#include "sim/data/gaussian_mixture.h"

namespace moelab {
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
