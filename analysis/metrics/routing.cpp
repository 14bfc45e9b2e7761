#include "analysis/metrics/routing.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "analysis/metrics/metric_groups.h"
#include "analysis/metrics/sparsity.h"
#include "sim/base/error.h"

namespace moelab {

Vector routing_entropies(const Eigen::Ref<const Matrix>& probabilities) {
  Vector entropies(probabilities.rows());
  const std::size_t experts = static_cast<std::size_t>(probabilities.cols());
  for (Eigen::Index i = 0; i < probabilities.rows(); ++i)
    entropies[i] = entropy({probabilities.data() + i * probabilities.outerStride(), experts});
  return entropies;
}

double routing_entropy(const Eigen::Ref<const Matrix>& probabilities) {
  if (probabilities.rows() == 0)
    throw InvalidOption("probs", "empty; routing entropy needs at least one row");
  return routing_entropies(probabilities).mean();
}

Vector router_margins(const Eigen::Ref<const Matrix>& probabilities) {
  if (probabilities.cols() < 2)
    throw InvalidOption("probs", "less than two columns; a margin is between two experts");
  Vector margins(probabilities.rows());
  for (Eigen::Index i = 0; i < probabilities.rows(); ++i) {
    double first = probabilities(i, 0), second = probabilities(i, 1);
    if (second > first) std::swap(first, second);
    for (Eigen::Index e = 2; e < probabilities.cols(); ++e) {
      second = std::max(second, std::min(first, probabilities(i, e)));
      first = std::max(first, probabilities(i, e));
    }
    margins[i] = first - second;
  }
  return margins;
}

std::optional<double> router_margin(const Eigen::Ref<const Matrix>& probabilities) {
  if (probabilities.rows() == 0) throw InvalidOption("probs", "empty; a mean margin needs at least one row");
  if (probabilities.cols() < 2) return std::nullopt;
  return router_margins(probabilities).mean();
}

void ScoreVariance::add(const Eigen::Ref<const Matrix>& scores) {
  if (scores.rows() == 0) return;
  if (rows_ == 0) {
    origin_ = scores.row(0).transpose();
    sums_ = Vector::Zero(scores.cols());
    squares_ = Vector::Zero(scores.cols());
  }
  if (scores.cols() != origin_.size())
    throw InvalidOption("probs",
                        fmt::format("{} columns, but there are {} experts", scores.cols(), origin_.size()));
  Vector shifted(scores.cols());
  const double experts = static_cast<double>(scores.cols());
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    shifted = scores.row(i).transpose() - origin_;
    sums_ += shifted;
    squares_.array() += shifted.array().square();
    const double mean = scores.row(i).sum() / experts;
    row_variances_ += (scores.row(i).array() - mean).square().sum() / experts;
  }
  rows_ += scores.rows();
}

Vector ScoreVariance::mean_shift() const {
  if (rows_ == 0) throw InvalidOption("probs", "empty; variances of scores need at least one row");
  return sums_ / static_cast<double>(rows_);
}

double ScoreVariance::routing_variance_eq42() const {
  const Vector mean = mean_shift() + origin_;
  return (mean.array() - 1.0 / static_cast<double>(mean.size())).square().mean();
}

double ScoreVariance::score_variance() const {
  const Vector mean = mean_shift();
  return (squares_.array() / static_cast<double>(rows_) - mean.array().square()).mean();
}

double ScoreVariance::score_row_variance() const {
  mean_shift();
  return row_variances_ / static_cast<double>(rows_);
}

void CoActivation::add(std::span<const int> experts) {
  of_rows_.insert(of_rows_.end(), experts.begin(), experts.end());
  row_ends_.push_back(of_rows_.size());
}

std::optional<double> CoActivation::value() const {
  std::vector<std::vector<std::size_t>> rows(static_cast<std::size_t>(experts_));  // of each expert
  for (std::size_t row = 0, at = 0; row < row_ends_.size(); ++row) {
    for (; at < row_ends_[row]; ++at) rows[static_cast<std::size_t>(of_rows_[at])].push_back(row);
  }
  double sum = 0;
  int used = 0;
  std::vector<std::int64_t> shared(rows.size(), 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty()) continue;
    std::int64_t most = 0;
    std::vector<std::size_t> partners;
    for (const std::size_t row : rows[i]) {
      for (std::size_t at = row > 0 ? row_ends_[row - 1] : 0; at < row_ends_[row]; ++at) {
        const std::size_t j = static_cast<std::size_t>(of_rows_[at]);
        if (j == i) continue;
        if (++shared[j] == 1) partners.push_back(j);
        most = std::max(most, shared[j]);
      }
    }
    for (const std::size_t j : partners) shared[j] = 0;
    sum += static_cast<double>(most) / static_cast<double>(rows[i].size());
    ++used;
  }
  if (used == 0 || experts_ < 2) return std::nullopt;
  return sum / used;
}

namespace {

struct RoutingMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class RoutingMeter final : public Meter<Real> {
 public:
  RoutingMeter(const RoutingMetricOptions& /*options*/, const MeterSetting<Real>& /*setting*/) {}

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& values) override {
    const MatrixView probabilities = moment.here.probabilities();
    ScoreVariance variance;
    variance.add(probabilities);
    values["routing_entropy"] = routing_entropy(probabilities);
    set(values, "router_margin", router_margin(probabilities));
    if (const MatrixView base = moment.here.base_probabilities(); base.size() > 0)
      values["routing_entropy_base"] = routing_entropy(base);
    values["routing_variance_eq42"] = variance.routing_variance_eq42();
    values["score_variance"] = variance.score_variance();
    values["score_row_variance"] = variance.score_row_variance();
  }
};

}  // namespace

MetricGroup routing_metrics() {
  MetricGroup group = metric_group<RoutingMetricOptions, RoutingMeter>(
      "routing",
      "the router's probabilities on the test rows (Guo et al. 2025; Nguyen et al. 2025); uses probabilities",
      {{"routing_entropy", false, "mean over rows of H(r(x)), nats", "routing entropy of a row (nats)",
        "routing entropy"},
       {"routing_entropy_base",
        false,
        "the same before tokens mix their routing, of the same model",
        "routing entropy of a row before mixing (nats)",
        "before mixing",
        {&needs::mixed_tokens}},
       {"router_margin",
        false,
        "mean over rows of the largest probability less the second largest",
        "margin of the likeliest expert",
        "margin",
        {&needs::several_experts}},
       {"routing_variance_eq42", false, "mean over experts of (mean r_e − 1/E)²: imbalance of the mean gate",
        "imbalance of the mean gate", "gate imbalance"},
       {"score_variance", false, "mean over experts of the variance of r_e over rows (ddof 0)",
        "variance of probabilities over rows", "over rows"},
       {"score_row_variance", false, "mean over rows of the variance of r_e over experts (ddof 0)",
        "variance of probabilities over experts", "over experts"}});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router};
  return group;
}

}  // namespace moelab
