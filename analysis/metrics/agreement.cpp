#include "analysis/metrics/agreement.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/metrics/metric_groups.h"
#include "analysis/metrics/sparsity.h"
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

}  // namespace

std::optional<double> adjusted_rand_index(const ContingencyTable& table) {
  const ContingencyTable clusters = table.rowwise().sum(), experts = table.colwise().sum();
  const double total = static_cast<double>(table.sum());
  if (total == 0) return std::nullopt;
  const double together = pairs(table), in_clusters = pairs(clusters), in_experts = pairs(experts);
  const double all = total * (total - 1) / 2;
  // Equal partitions, among them the trivial ones for which the quotient is 0 / 0.
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
  // Rounding of equal distributions must not make it negative.
  return std::max(0.0, entropy_of_shares(middle) - (entropy_of_shares(p) + entropy_of_shares(q)) / 2);
}

namespace {

struct AgreementMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class AgreementMeter final : public Meter<Real> {
 public:
  AgreementMeter(const AgreementMetricOptions& /*options*/, const MeterSetting<Real>& /*setting*/) {}

  void measure_layer(const LayerMoment<Real>& at, MetricValues& values) override {
    const MatrixView probabilities = at.here.probabilities();
    LayerRecord& last = last_[at.layer()];
    const LayerRecord before =
        std::exchange(last, {at.here.serving(), probabilities.colwise().mean().transpose()});
    if (before.serving.empty()) return;
    const ContingencyTable both = routing_table(before.serving, last.serving);
    set(values, "routing_ari", adjusted_rand_index(both));
    set(values, "routing_nmi", normalized_mutual_information(both));
    values["routing_divergence"] = jensen_shannon_divergence(before.mean_routing, last.mean_routing);
  }

  void forget() override { last_.clear(); }

 private:
  struct LayerRecord {
    std::vector<int> serving;  ///< (rows)
    Vector mean_routing;       ///< (E)
  };
  std::map<int, LayerRecord> last_;  ///< by layer
};

}  // namespace

MetricGroup agreement_metrics() {
  MetricGroup group = metric_group<AgreementMetricOptions, AgreementMeter>(
      "agreement",
      "how well two routings of the test rows agree, up to the experts' names: of a recorded step and the "
      "one "
      "before; of two arms, with `analyze`; uses serving, and probabilities for the divergence",
      {{"routing_ari",
        false,
        "adjusted Rand index of the serving experts of both (1 equal, 0 as by chance)",
        "adjusted Rand index of two routings",
        "ARI of routings",
        {&needs::step_before}},
       {"routing_nmi",
        false,
        "their normalised mutual information, I ÷ mean of the two entropies, in [0, 1]",
        "normalised mutual information of two routings",
        "NMI of routings",
        {&needs::step_before}},
       {"routing_divergence",
        false,
        "Jensen–Shannon divergence of the two mean routings E[r(x)], nats: 0 equal, ln 2 nothing shared",
        "Jensen–Shannon divergence of mean routings (nats)",
        "divergence",
        {&needs::probabilities_before}}});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router};
  return group;
}

}  // namespace moelab
