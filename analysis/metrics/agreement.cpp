#include "analysis/metrics/agreement.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "analysis/metrics/meters.h"
#include "analysis/metrics/routing.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Σ binomial(n, 2) over the entries.
template <class Counts>
double pairs(const Counts& counts) {
  double sum = 0;
  for (const std::int64_t count : counts.reshaped())
    sum += static_cast<double>(count) * static_cast<double>(count - 1) / 2;
  return sum;
}

/// H of the counts as shares of `total`, nats.
template <class Counts>
double entropy_of(const Counts& counts, double total) {
  double sum = 0;
  for (const std::int64_t count : counts.reshaped()) {
    const double share = static_cast<double>(count) / total;
    if (count > 0) sum -= share * std::log(share);
  }
  return sum;
}

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

/// Why a metric of serving experts has no value where only sets of earlier experts are given.
constexpr const char* kSetsAlone =
    "needs --previous-probs or --previous-logits: sets do not tell the top-1 expert";

class AgreementMeter final : public RowMeter {
 public:
  AgreementMeter(const NoMetricOptions& /*options*/, const RowSetting& /*setting*/) {}

  void measure(LayerRows& rows, LayerMetrics& metrics) override {
    const auto found = last_.find(rows.layer());
    const Record before = found == last_.end() ? Record() : std::move(found->second);
    remember(rows);
    const Record& now = last_.at(rows.layer());
    MetricValues& values = metrics.values;
    if (!before.serving.empty() && !now.serving.empty()) {
      const ContingencyTable both = routing_table(before.serving, now.serving);
      set(values, "routing_ari", adjusted_rand_index(both));
      set(values, "routing_nmi", normalized_mutual_information(both));
    }
    if (before.mean_routing.size() > 0 && now.mean_routing.size() > 0)
      values["routing_divergence"] = jensen_shannon_divergence(before.mean_routing, now.mean_routing);
  }

  void remember(LayerRows& rows) override {
    const std::span<const int> serving = rows.serving();
    Record& record = last_[rows.layer()];
    record = {{serving.begin(), serving.end()}, {}};
    rows.visit([&](const RowBlock& block) {
      const Vector sum = block.probabilities.colwise().sum().transpose();
      record.mean_routing = block.first == 0 ? sum : Vector(record.mean_routing + sum);
      if (block.is_last) record.mean_routing /= static_cast<double>(rows.rows());
    });
  }

  void forget() override { last_.clear(); }

 private:
  struct Record {
    std::vector<int> serving;  // (n), or empty where sets alone are known
    Vector mean_routing;       // (E), or empty
  };
  std::map<int, Record> last_;  // by layer
};

struct FluctuationMetricOptions {
  int k = 2;

  void bind(Fields& fields) {
    fields.add("k", k, between(1, 65536), "K of routing_fluctuation_topk, at most model.experts");
  }
};

template <class Options>
void check_sets(const AnyOptions& options, const ExperimentOptions& experiment, const std::string& path) {
  check_set_size(options.get<Options>().k, experiment, path);
}

template <class Options>
AnyOptions sets_of_top_k(const GivenArrays& given) {
  return Options{given.top_k};
}

class FluctuationMeter final : public RowMeter {
 public:
  FluctuationMeter(const FluctuationMetricOptions& options, const RowSetting& /*setting*/) : k_(options.k) {}

  void measure(LayerRows& rows, LayerMetrics& metrics) override {
    const auto found = last_.find(rows.layer());
    const Record before = found == last_.end() ? Record() : std::move(found->second);
    remember(rows);
    const Record& now = last_.at(rows.layer());
    if (!before.serving.empty() && !now.serving.empty())
      set(metrics.values, "routing_fluctuation", routing_fluctuation(before.serving, now.serving));
    if (!before.likeliest.empty())
      set(metrics.values, "routing_fluctuation_topk",
          routing_fluctuation(before.likeliest, now.likeliest, k_));
  }

  void remember(LayerRows& rows) override {
    const std::span<const int> serving = rows.serving();
    last_[rows.layer()] = {{serving.begin(), serving.end()},
                           rows.experts() > 1 ? rows.likeliest(k_) : std::vector<int>()};
  }

  void forget() override { last_.clear(); }

 private:
  struct Record {
    std::vector<int> serving;    // (n), or empty where sets alone are known
    std::vector<int> likeliest;  // (n · K), or empty for one expert
  };
  int k_;
  std::map<int, Record> last_;  // by layer
};

struct SaturationMetricOptions {
  int k = 2;

  void bind(Fields& fields) {
    fields.add("k", k, between(1, 65536), "experts of a row's set, at most model.experts");
  }
};

/// Keeps every row's set of each record until the last record is known.
class SaturationMeter final : public RowMeter {
 public:
  SaturationMeter(const SaturationMetricOptions& options, const RowSetting& setting)
      : k_(options.k), applies_(setting.applies("routing_saturation")) {}

  void measure(LayerRows& rows, LayerMetrics& /*metrics*/) override { remember(rows); }

  void remember(LayerRows& rows) override {
    if (!applies_) return;
    const std::vector<int> sets = rows.likeliest(k_);
    Sets& kept = sets_[{rows.layer(), rows.step()}];
    if (rows.experts() <= std::numeric_limits<std::uint16_t>::max() + 1)
      kept.narrow.assign(sets.begin(), sets.end());
    else
      kept.wide = sets;
  }

  void complete(std::int64_t step, int layer, MetricValues& values) override {
    const auto now = sets_.find({layer, step});
    if (now == sets_.end()) return;
    const auto last = std::prev(sets_.lower_bound({layer + 1, 0}));
    values["routing_saturation"] = routing_saturation(now->second.all(), last->second.all(), k_);
  }

 private:
  /// K experts for each row. Two bytes hold the number of an expert, except among more than 65536.
  struct Sets {
    std::vector<std::uint16_t> narrow;
    std::vector<int> wide;
    std::vector<int> all() const {
      return narrow.empty() ? wide : std::vector<int>(narrow.begin(), narrow.end());
    }
  };

  int k_;
  bool applies_;
  std::map<std::pair<int, std::int64_t>, Sets> sets_;  // by layer and step
};

class LayersMeter final : public RowMeter {
 public:
  LayersMeter(const NoMetricOptions& /*options*/, const RowSetting& /*setting*/) {}

  void measure(LayerRows& rows, LayerMetrics& metrics) override {
    if (!rows.before() || rows.before()->serving().empty()) return;
    const std::span<const int> before = rows.before()->serving(), here = rows.serving();
    if (here.empty()) return;
    set(metrics.values, "router_instability", router_instability(before, here));
    set(metrics.values, "assignment_change_share", assignment_change_share(before, here));
    set(metrics.values, "layer_ari", layer_ari(before, here));
  }
};

}  // namespace

std::optional<double> adjusted_rand_index(const ContingencyTable& table) {
  const ContingencyTable clusters = table.rowwise().sum(), experts = table.colwise().sum();
  const double total = static_cast<double>(table.sum());
  if (total == 0) return std::nullopt;
  const double together = pairs(table), in_clusters = pairs(clusters), in_experts = pairs(experts);
  const double all = total * (total - 1) / 2;
  // Equal partitions. For trivial ones the quotient would be 0 / 0.
  if (together == in_clusters && together == in_experts) return 1;
  const double chance = in_clusters * in_experts / all;
  return (together - chance) / ((in_clusters + in_experts) / 2 - chance);
}

std::optional<double> mutual_information(const ContingencyTable& table) {
  const ContingencyTable clusters = table.rowwise().sum(), experts = table.colwise().sum();
  const double total = static_cast<double>(table.sum());
  if (total == 0) return std::nullopt;
  const double of_clusters = entropy_of(clusters, total), of_experts = entropy_of(experts, total);
  return std::clamp(of_clusters + of_experts - entropy_of(table, total), 0.0,
                    std::min(of_clusters, of_experts));
}

std::optional<double> resolved_share(const ContingencyTable& table) {
  const ContingencyTable clusters = table.rowwise().sum();
  const double of_clusters = table.sum() > 0 ? entropy_of(clusters, static_cast<double>(table.sum())) : 0;
  if (of_clusters == 0) return std::nullopt;
  return *mutual_information(table) / of_clusters;
}

std::optional<double> normalized_mutual_information(const ContingencyTable& table) {
  const ContingencyTable clusters = table.rowwise().sum(), experts = table.colwise().sum();
  const double total = static_cast<double>(table.sum());
  if (total == 0) return std::nullopt;
  const double of_clusters = entropy_of(clusters, total), of_experts = entropy_of(experts, total);
  if (of_clusters + of_experts == 0) return 1;
  const double information = of_clusters + of_experts - entropy_of(table, total);
  return std::clamp(2 * information / (of_clusters + of_experts), 0.0, 1.0);
}

std::optional<double> dispatch_entropy(const ContingencyTable& table) {
  const double total = static_cast<double>(table.sum());
  if (total == 0) return std::nullopt;
  double sum = 0;
  for (Eigen::Index expert = 0; expert < table.cols(); ++expert) {
    const double rows = static_cast<double>(table.col(expert).sum());
    if (rows > 0) sum += rows / total * entropy_of(table.col(expert), rows);
  }
  return sum;
}

ContingencyTable routing_table(std::span<const int> one, std::span<const int> other) {
  if (one.size() != other.size()) {
    throw InvalidOption("assignment", fmt::format("{} and {} rows; needs as many of both routings",
                                                  one.size(), other.size()));
  }
  std::map<int, Eigen::Index> rows, columns;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (one[i] < 0 || other[i] < 0) continue;
    rows.try_emplace(one[i], static_cast<Eigen::Index>(rows.size()));
    columns.try_emplace(other[i], static_cast<Eigen::Index>(columns.size()));
  }
  ContingencyTable table = ContingencyTable::Zero(static_cast<Eigen::Index>(rows.size()),
                                                  static_cast<Eigen::Index>(columns.size()));
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (one[i] >= 0 && other[i] >= 0) ++table(rows[one[i]], columns[other[i]]);
  }
  return table;
}

double jensen_shannon_divergence(const Eigen::Ref<const Vector>& p, const Eigen::Ref<const Vector>& q) {
  const Vector middle = (p + q) / 2;
  const auto entropy_of_shares = [](const Vector& shares) {
    return entropy({shares.data(), static_cast<std::size_t>(shares.size())});
  };
  // Rounding must not make the divergence of equal distributions negative.
  return std::max(0.0, entropy_of_shares(middle) - (entropy_of_shares(p) + entropy_of_shares(q)) / 2);
}

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
  // Pairs that are together before or after, minus twice the pairs that are together in both.
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

MetricGroup agreement_metrics() {
  MetricGroup group = row_metrics<NoMetricOptions, AgreementMeter>(
      "agreement",
      "how well two routings of the test rows agree, up to the names of experts. They are the routing of a "
      "recorded step and of the one before, or of two arms with `analyze`. It uses serving, and "
      "probabilities for the divergence",
      {metric("routing_ari", false,
              "adjusted Rand index of the serving experts of both (1 equal, 0 as by chance)",
              "adjusted Rand index of two routings", "ARI of routings",
              {&needs::step_before, &needs::first_choice}, kSetsAlone),
       metric("routing_nmi", false,
              "normalised mutual information of both, I ÷ mean of the two entropies, in [0, 1]",
              "normalised mutual information of two routings", "NMI of routings", {&needs::step_before},
              kSetsAlone),
       metric(
           "routing_divergence", false,
           "Jensen–Shannon divergence of the two mean routings E[r(x)], nats: 0 equal, ln 2 nothing shared",
           "Jensen–Shannon divergence of mean routings (nats)", "divergence",
           {&needs::probabilities_before, &needs::probabilities})});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router};
  set_larger_is_better(group, {"routing_ari", "routing_nmi"});
  return group;
}

MetricGroup fluctuation_metrics() {
  MetricGroup group = row_metrics<FluctuationMetricOptions, FluctuationMeter>(
      "fluctuation",
      "how the routing of the test rows changes from a recorded step to the next. If record_every is an "
      "epoch, it compares epochs (Nguyen et al. 2025). It uses serving, and probabilities for the K "
      "most probable",
      {metric("routing_fluctuation", false,
              "share of rows whose serving expert is another than at the record before",
              "share of rows with another expert than before", "fluctuation", {&needs::first_choice},
              kSetsAlone),
       metric("routing_fluctuation_topk", false,
              "share of rows whose set of K most probable experts is another",
              "share of rows with other likeliest experts than before", "fluctuation of sets",
              {&needs::several_experts, &needs::sets_of_k})});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::step_before};
  group.check = check_sets<FluctuationMetricOptions>;
  group.options_for = sets_of_top_k<FluctuationMetricOptions>;
  return group;
}

MetricGroup saturation_metrics() {
  MetricGroup group = row_metrics<SaturationMetricOptions, SaturationMeter>(
      "saturation",
      "how settled the routing of the test rows is, compared with the last step (Muennighoff et al. "
      "2024); keeps the sets of all records until then; uses probabilities",
      {metric(
          "routing_saturation", false,
          "mean over rows of the share of the K most probable experts that are among the K at the last step",
          "share of likeliest experts kept to the end", "saturation")});
  group.by_default = false;
  group.of_layers = true;
  group.check = check_sets<SaturationMetricOptions>;
  group.options_for = sets_of_top_k<SaturationMetricOptions>;
  group.needs = {&needs::router, &needs::several_experts, &needs::last_step};
  return group;
}

MetricGroup layers_metrics() {
  MetricGroup group = row_metrics<NoMetricOptions, LayersMeter>(
      "layers", "how the routing changes from a layer to the next (Nielsen et al. 2025); uses serving",
      {metric("router_instability", false,
              "mean |S − S'| over pairs of rows, S = 1 where one expert serves both, in the layer before and "
              "here",
              "share of pairs of rows joined or parted from layer to layer", "instability", {}, kSetsAlone),
       metric("assignment_change_share", false,
              "share of rows that do not go where most rows of their expert in the layer before go",
              "share of rows that leave their expert's company", "assignment change", {}, kSetsAlone),
       metric("layer_ari", false,
              "adjusted Rand index of serving experts in the layer before and here: 1 for equal groups of "
              "rows, 0 by chance or with one expert",
              "adjusted Rand index of two layers", "agreement of layers", {}, kSetsAlone)});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::layer_before, &needs::first_choice};
  set_larger_is_better(group, {"layer_ari"});
  return group;
}

}  // namespace moelab
