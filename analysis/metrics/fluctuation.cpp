#include "analysis/metrics/fluctuation.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "analysis/metrics/agreement.h"
#include "analysis/metrics/load.h"
#include "analysis/metrics/metric_groups.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

void check_snapshots(std::span<const int> previous, std::span<const int> current, int k) {
  if (previous.size() != current.size() || previous.empty() ||
      previous.size() % static_cast<std::size_t>(k) != 0) {
    throw InvalidOption(
        "assignment",
        fmt::format("{} and {} assignments of {} to a row; needs as many of both, at least one row",
                    previous.size(), current.size(), k));
  }
}

double squared(std::int64_t count) {
  return static_cast<double>(count) * static_cast<double>(count);
}

/// Rows served in both snapshots: by expert before and now, and with each pair of experts.
struct JointCounts {
  std::int64_t rows = 0;
  std::map<int, std::int64_t> before, after;
  std::map<std::pair<int, int>, std::int64_t> both;

  JointCounts(std::span<const int> previous, std::span<const int> current) {
    for (std::size_t i = 0; i < current.size(); ++i) {
      if (previous[i] < 0 || current[i] < 0) continue;
      ++rows;
      ++before[previous[i]];
      ++after[current[i]];
      ++both[{previous[i], current[i]}];
    }
  }
};

}  // namespace

std::optional<double> routing_fluctuation(std::span<const int> previous, std::span<const int> current,
                                          int k) {
  check_snapshots(previous, current, k);
  const std::size_t size = static_cast<std::size_t>(k);
  std::vector<int> before(size), after(size);
  std::size_t changed = 0, rows = 0;
  for (std::size_t at = 0; at < current.size(); at += size) {
    std::copy_n(previous.begin() + static_cast<std::ptrdiff_t>(at), size, before.begin());
    std::copy_n(current.begin() + static_cast<std::ptrdiff_t>(at), size, after.begin());
    std::sort(before.begin(), before.end());
    std::sort(after.begin(), after.end());
    if (before.back() < 0 || after.back() < 0) continue;
    ++rows;
    if (before != after) ++changed;
  }
  if (rows == 0) return std::nullopt;
  return static_cast<double>(changed) / static_cast<double>(rows);
}

double routing_saturation(std::span<const int> now, std::span<const int> final, int k) {
  check_snapshots(now, final, k);
  const std::ptrdiff_t size = k;
  std::size_t kept = 0;
  for (auto own = now.begin(), last = final.begin(); own != now.end(); own += size, last += size) {
    kept += static_cast<std::size_t>(std::count_if(
        own, own + size, [&](int expert) { return std::find(last, last + size, expert) != last + size; }));
  }
  return static_cast<double>(kept) / static_cast<double>(now.size());
}

std::optional<double> router_instability(std::span<const int> previous, std::span<const int> current) {
  check_snapshots(previous, current, 1);
  const JointCounts counts(previous, current);
  if (counts.rows == 0) return std::nullopt;
  // Pairs together before or after, less twice those together in both.
  double pairs = 0;
  for (const auto& [expert, rows] : counts.before) pairs += squared(rows);
  for (const auto& [expert, rows] : counts.after) pairs += squared(rows);
  for (const auto& [experts, rows] : counts.both) pairs -= 2 * squared(rows);
  return pairs / squared(counts.rows);
}

std::optional<double> assignment_change_share(std::span<const int> previous, std::span<const int> current) {
  check_snapshots(previous, current, 1);
  const JointCounts counts(previous, current);
  if (counts.rows == 0) return std::nullopt;
  std::map<int, std::int64_t> majority;
  for (const auto& [experts, rows] : counts.both) {
    majority[experts.first] = std::max(majority[experts.first], rows);
  }
  double stay = 0;
  for (const auto& [expert, rows] : majority) stay += static_cast<double>(rows);
  return 1 - stay / static_cast<double>(counts.rows);
}

std::optional<double> layer_ari(std::span<const int> previous, std::span<const int> current) {
  check_snapshots(previous, current, 1);
  const ContingencyTable both = routing_table(previous, current);
  if (both.rows() == 1 || both.cols() == 1) return 0;
  return adjusted_rand_index(both);
}

namespace {

struct FluctuationMetricOptions {
  int k = 2;

  void bind(Fields& fields) {
    fields.add("k", k, between(1, 65536), "K of routing_fluctuation_topk, at most model.experts");
  }
};

void check_size(const AnyOptions& options, const ExperimentOptions& experiment, const std::string& path) {
  check_set_size(options.get<FluctuationMetricOptions>().k, experiment, path);
}

/// Experts of the rows of a layer at its last measurement.
struct Snapshot {
  std::vector<int> serving;    ///< (rows)
  std::vector<int> likeliest;  ///< K for each row
};

template <class Real>
class FluctuationMeter final : public Meter<Real> {
 public:
  FluctuationMeter(const FluctuationMetricOptions& options, const MeterSetting<Real>& /*setting*/)
      : k_(options.k) {}

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& values) override {
    Snapshot& last = last_[moment.layer()];
    const MatrixView probabilities = moment.here.probabilities();
    const bool has_sets = probabilities.cols() > 1;
    const Snapshot before = std::exchange(
        last, {moment.here.serving(), has_sets ? topk_assignment(probabilities, k_) : std::vector<int>()});
    if (before.serving.empty()) return;
    set(values, "routing_fluctuation", routing_fluctuation(before.serving, last.serving));
    if (has_sets)
      set(values, "routing_fluctuation_topk", routing_fluctuation(before.likeliest, last.likeliest, k_));
  }

  void forget() override { last_.clear(); }

 private:
  int k_;
  std::map<int, Snapshot> last_;  ///< by layer
};

}  // namespace

MetricGroup fluctuation_metrics() {
  MetricGroup group = metric_group<FluctuationMetricOptions, FluctuationMeter>(
      "fluctuation",
      "how the routing of the test rows changes from a recorded step to the next; with record_every an "
      "epoch, "
      "between epochs (Nguyen et al. 2025); uses serving, and probabilities for the K likeliest",
      {{"routing_fluctuation", false,
        "share of rows whose serving expert is another than at the record before",
        "share of rows with another expert than before", "fluctuation"},
       {"routing_fluctuation_topk",
        false,
        "share of rows whose set of K likeliest experts is another",
        "share of rows with other likeliest experts than before",
        "fluctuation of sets",
        {&needs::several_experts, &needs::sets_of_k}}});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::step_before};
  group.check = check_size;
  return group;
}

namespace {

struct SaturationMetricOptions {
  int k = 2;

  void bind(Fields& fields) {
    fields.add("k", k, between(1, 65536), "experts of a row's set, at most model.experts");
  }
};

void check_saturation(const AnyOptions& options, const ExperimentOptions& experiment,
                      const std::string& path) {
  check_set_size(options.get<SaturationMetricOptions>().k, experiment, path);
}

/// Keeps every row's set of each record until the last is known.
template <class Real>
class SaturationMeter final : public Meter<Real> {
 public:
  SaturationMeter(const SaturationMetricOptions& options, const MeterSetting<Real>& setting)
      : k_(options.k), applies_(!unmet_need("routing_saturation", setting.subject)) {}

  void measure_layer(const LayerMoment<Real>& at, MetricValues& /*values*/) override {
    if (!applies_) return;
    const std::vector<int> sets = topk_assignment(at.here.probabilities(), k_);
    sets_[{at.layer(), at.moment.step}].assign(sets.begin(), sets.end());
  }

  void complete_layer(std::int64_t step, int layer, MetricValues& values) override {
    const auto now = sets_.find({layer, step});
    if (now == sets_.end()) return;
    const auto last = std::prev(sets_.lower_bound({layer + 1, 0}));
    values["routing_saturation"] = routing_saturation(widened(now->second), widened(last->second), k_);
  }

 private:
  using Sets = std::vector<std::uint16_t>;  ///< K experts for each row, of at most 65536
  static std::vector<int> widened(const Sets& sets) { return {sets.begin(), sets.end()}; }

  int k_;
  bool applies_;
  std::map<std::pair<int, std::int64_t>, Sets> sets_;  ///< by layer and step
};

}  // namespace

MetricGroup saturation_metrics() {
  MetricGroup group = metric_group<SaturationMetricOptions, SaturationMeter>(
      "saturation",
      "how settled the routing of the test rows is, held against that at the last step (Muennighoff et al. "
      "2024); keeps the sets of all records until then; uses probabilities",
      {{"routing_saturation", false,
        "mean over rows of the share of the K likeliest experts that are among the K at the last step",
        "share of likeliest experts kept to the end", "saturation"}});
  group.by_default = false;
  group.of_layers = true;
  group.check = check_saturation;
  group.needs = {&needs::router, &needs::several_experts, &needs::last_step};
  group.kept_bytes = [](const AnyOptions& options) {
    return sizeof(std::uint16_t) * static_cast<double>(options.get<SaturationMetricOptions>().k);
  };
  return group;
}

}  // namespace moelab
