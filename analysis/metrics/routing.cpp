#include "analysis/metrics/routing.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "analysis/metrics/meters.h"
#include "sim/base/error.h"

namespace moelab {

std::vector<int> top1_assignment(const Eigen::Ref<const Matrix>& probabilities) {
  if (probabilities.cols() == 0)
    throw InvalidOption("probs", "no columns; there must be at least one expert");
  std::vector<int> assignment(static_cast<std::size_t>(probabilities.rows()));
  for (Eigen::Index row = 0; row < probabilities.rows(); ++row) {
    const double* routing = &probabilities.coeffRef(row, 0);
    assignment[static_cast<std::size_t>(row)] =
        static_cast<int>(std::max_element(routing, routing + probabilities.cols()) - routing);
  }
  return assignment;
}

std::vector<int> topk_assignment(const Eigen::Ref<const Matrix>& probabilities, int k) {
  const int experts = static_cast<int>(probabilities.cols());
  if (k < 1 || k > experts)
    throw InvalidOption("k", fmt::format("got {}, needs 1 to {}, the number of experts", k, experts));
  if (k == 1) return top1_assignment(probabilities);
  std::vector<int> assignment, order(static_cast<std::size_t>(experts));
  assignment.reserve(static_cast<std::size_t>(probabilities.rows() * k));
  for (Eigen::Index row = 0; row < probabilities.rows(); ++row) {
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int left, int right) {
      return std::pair(-probabilities(row, left), left) < std::pair(-probabilities(row, right), right);
    });
    assignment.insert(assignment.end(), order.begin(), order.begin() + k);
  }
  return assignment;
}

std::vector<std::int64_t> expert_loads(std::span<const int> assignment, int experts) {
  std::vector<std::int64_t> loads(static_cast<std::size_t>(experts), 0);
  for (const int expert : assignment) {
    if (expert == -1) continue;
    if (expert < 0 || expert >= experts)
      throw InvalidOption("assignment",
                          fmt::format("expert {} where 0 to {} are allowed", expert, experts - 1));
    ++loads[static_cast<std::size_t>(expert)];
  }
  return loads;
}

std::optional<double> unserved_share(std::span<const int> serving) {
  if (serving.empty()) return std::nullopt;
  const auto unserved = std::count_if(serving.begin(), serving.end(), [](int expert) { return expert < 0; });
  return static_cast<double>(unserved) / static_cast<double>(serving.size());
}

std::optional<double> dead_experts(std::span<const int> serving, int experts) {
  if (serving.empty()) return std::nullopt;
  const std::vector<std::int64_t> loads = expert_loads(serving, experts);
  const std::int64_t rows = static_cast<std::int64_t>(serving.size());
  const auto dead = std::count_if(loads.begin(), loads.end(),
                                  [&](std::int64_t load) { return 10 * experts * load < rows; });
  return static_cast<double>(dead) / experts;
}

std::optional<double> dead_experts_of(std::span<const std::int64_t> loads) {
  const std::int64_t all = std::accumulate(loads.begin(), loads.end(), std::int64_t{0}),
                     experts = std::ssize(loads);
  if (all == 0) return std::nullopt;
  const auto dead =
      std::count_if(loads.begin(), loads.end(), [&](std::int64_t load) { return 10 * experts * load < all; });
  return static_cast<double>(dead) / static_cast<double>(experts);
}

namespace {

double total_load(std::span<const std::int64_t> loads) {
  return static_cast<double>(std::accumulate(loads.begin(), loads.end(), std::int64_t{0}));
}

class LoadMeter final : public RowMeter {
 public:
  LoadMeter(const NoMetricOptions& /*options*/, const RowSetting& setting)
      : selects_sets_(setting.applies("co_activation")),
        leaves_unserved_(setting.applies("unserved_share")),
        counts_sets_(selects_sets_ && !setting.cell) {}

  void measure(LayerRows& rows, LayerMetrics& metrics) override {
    MetricValues& values = metrics.values;
    const std::vector<std::int64_t> loads = rows.loads();
    set(values, "expert_load_max_violation", expert_load_max_violation(loads));
    set(values, "expert_load_max_deviation", expert_load_max_deviation(loads));
    set(values, "expert_load_std_percent", expert_load_std_percent(loads));
    set(values, "dead_experts",
        counts_sets_ ? dead_experts_of(loads) : dead_experts(rows.serving(), rows.experts()));
    if (leaves_unserved_) set(values, "unserved_share", unserved_share(rows.serving()));
    if (selects_sets_) set(values, "co_activation", rows.co_activation());
  }

 private:
  bool selects_sets_, leaves_unserved_;
  bool counts_sets_;  // rows of `analyze` go to K experts: a second choice is a choice
};

class LayerLoadsMeter final : public RowMeter {
 public:
  LayerLoadsMeter(const NoMetricOptions& /*options*/, const RowSetting& /*setting*/) {}

  void measure(LayerRows& rows, LayerMetrics& /*metrics*/) override {
    if (rows.layer() == 0) deviations_.clear();
    const std::optional<double> of_layer = expert_load_std_percent(rows.loads());
    if (of_layer) deviations_.push_back(*of_layer);
  }

  void measure_stack(int layers, MetricValues& values) override {
    if (layers == 0 || deviations_.size() != static_cast<std::size_t>(layers)) return;
    const Eigen::Map<const Vector> deviations(deviations_.data(), layers);
    const double mean = deviations.mean();
    values["expert_load_std_percent_mean"] = mean;
    values["expert_load_std_percent_spread"] = std::sqrt((deviations.array() - mean).square().mean());
  }

 private:
  std::vector<double> deviations_;  // of the layers so far
};

class RoutingMeter final : public RowMeter {
 public:
  RoutingMeter(const NoMetricOptions& /*options*/, const RowSetting& /*setting*/) {}

  void measure(LayerRows& rows, LayerMetrics& metrics) override {
    double entropies = 0, margins = 0;
    ScoreVariance variance;
    rows.visit([&](const RowBlock& block) {
      entropies += block.entropies.empty()
                       ? routing_entropies(block.probabilities).sum()
                       : Eigen::Map<const Vector>(block.entropies.data(), std::ssize(block.entropies)).sum();
      if (rows.experts() > 1) margins += router_margins(block.probabilities).sum();
      variance.add(block.probabilities);
    });
    const double count = static_cast<double>(rows.rows());
    MetricValues& values = metrics.values;
    values["routing_entropy"] = entropies / count;
    if (rows.experts() > 1) values["router_margin"] = margins / count;
    if (const MatrixView base = rows.base_probabilities(); base.size() > 0)
      values["routing_entropy_base"] = routing_entropy(base);
    values["routing_variance_eq42"] = variance.routing_variance_eq42();
    values["score_variance"] = variance.score_variance();
    values["score_row_variance"] = variance.score_row_variance();
  }
};

struct BoundaryMetricOptions {
  double width = 0.1;

  void bind(Fields& fields) {
    fields.add("width", width, positive(), "w, the largest difference of scores that counts as the boundary");
  }
};

class BoundaryMeter final : public RowMeter {
 public:
  BoundaryMeter(const BoundaryMetricOptions& options, const RowSetting& /*setting*/)
      : width_(options.width) {}

  void measure(LayerRows& rows, LayerMetrics& metrics) override {
    if (rows.experts() < 2) return;
    std::int64_t within = 0, within_half = 0;
    rows.visit([&](const RowBlock& block) {
      const Vector gaps = score_gaps(block.probabilities);
      within += (gaps.array() <= width_).count();
      within_half += (gaps.array() <= width_ / 2).count();
    });
    const double count = static_cast<double>(rows.rows());
    metrics.values["boundary_mass"] = static_cast<double>(within) / count;
    metrics.values["boundary_mass_half"] = static_cast<double>(within_half) / count;
  }

 private:
  double width_;
};

class RouterNormsMeter final : public RowMeter {
 public:
  RouterNormsMeter(const NoMetricOptions& /*options*/, const RowSetting& setting) {
    if (setting.cell && !has_projection(setting.cell->experiment().model))
      signal_basis_ = setting.cell->problem().signal_basis();
  }

  void measure(LayerRows& rows, LayerMetrics& metrics) override {
    const Matrix weight = rows.router_weight();
    set(metrics.values, "router_norm_ratio", router_norm_ratio(weight));
    if (weight.size() > 0 && signal_basis_.size() > 0)
      set(metrics.values, "router_signal_fraction", router_signal_fraction(weight, signal_basis_));
  }

 private:
  Matrix signal_basis_;  // (d, s), or empty
};

const Need weighed_features{
    "a router that weighs features in that layer", [](const MetricSubject& of, int layer) {
      const std::string name = "router_feature_weights" + of.network().layer_ending(layer);
      const std::vector<StateArray> arrays = of.network().state_arrays();
      return std::any_of(arrays.begin(), arrays.end(),
                         [&](const StateArray& array) { return array.name == name; });
    }};

class FeatureWeightsMeter final : public RowMeter {
 public:
  FeatureWeightsMeter(const NoMetricOptions& /*options*/, const RowSetting& /*setting*/) {}

  void measure(LayerRows& rows, LayerMetrics& metrics) override {
    const MatrixView weights = rows.feature_weights();
    if (weights.size() == 0) return;
    // Clusters are the experts of the layer before; in the first layer its own experts.
    const std::span<const int> clusters = rows.before() ? rows.before()->serving() : rows.serving();
    set(metrics.values, "weight_variation", weight_variation(weights, clusters));
  }
};

}  // namespace

std::optional<double> expert_load_max_violation(std::span<const std::int64_t> loads) {
  const double total = total_load(loads);
  if (total == 0) return std::nullopt;
  const double mean = total / static_cast<double>(loads.size());
  return (static_cast<double>(*std::max_element(loads.begin(), loads.end())) - mean) / mean;
}

std::optional<double> expert_load_max_deviation(std::span<const std::int64_t> loads) {
  const double total = total_load(loads);
  if (total == 0) return std::nullopt;
  const double mean = total / static_cast<double>(loads.size());
  double largest = 0;
  for (const std::int64_t load : loads)
    largest = std::max(largest, std::abs(static_cast<double>(load) - mean));
  return largest / mean;
}

std::optional<double> expert_load_std_percent(std::span<const std::int64_t> loads) {
  const double total = total_load(loads);
  if (total == 0) return std::nullopt;
  const double mean = 100.0 / static_cast<double>(loads.size());
  double squares = 0;
  for (const std::int64_t load : loads) {
    const double deviation = 100.0 * static_cast<double>(load) / total - mean;
    squares += deviation * deviation;
  }
  return std::sqrt(squares / static_cast<double>(loads.size()));
}

std::optional<double> co_activation(std::span<const unsigned char> selected, int experts) {
  if (experts < 2) return std::nullopt;
  // Pairs of many experts are counted block by block of their first expert.
  constexpr int kMostCounts = 1 << 22;
  const int block = std::clamp(kMostCounts / experts, 1, experts);
  double sum = 0;
  int used = 0;
  std::vector<int> of_row;
  for (int first = 0; first < experts; first += block) {
    const int end = std::min(first + block, experts);
    Eigen::ArrayXXi counts = Eigen::ArrayXXi::Zero(experts, end - first);  // n_ij of i = first … end − 1
    for (std::size_t row = 0; row < selected.size(); row += static_cast<std::size_t>(experts)) {
      of_row.clear();
      for (int e = 0; e < experts; ++e)
        if (selected[row + static_cast<std::size_t>(e)]) of_row.push_back(e);
      for (const int i : of_row) {
        if (i < first || i >= end) continue;
        for (const int j : of_row) ++counts(j, i - first);
      }
    }
    for (int i = first; i < end; ++i) {
      auto of_expert = counts.col(i - first);
      const double own = std::exchange(of_expert(i), 0);
      if (own == 0) continue;
      sum += of_expert.maxCoeff() / own;
      ++used;
    }
  }
  if (used == 0) return std::nullopt;
  return sum / used;
}

double entropy(std::span<const double> distribution) {
  double sum = 0;
  for (const double probability : distribution)
    // `> 0` would skip NaN and give the entropy 0.
    if (!(probability <= 0)) sum -= probability * std::log(probability);
  return sum;
}

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

Vector score_gaps(const Eigen::Ref<const Matrix>& probabilities) {
  const Vector margins = router_margins(probabilities);
  const Vector largest = probabilities.rowwise().maxCoeff();
  return (largest.array() / (largest - margins).array()).log();
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

std::optional<double> router_norm_ratio(const Eigen::Ref<const Matrix>& weight) {
  if (weight.size() == 0) return std::nullopt;
  const Vector norms = weight.rowwise().norm();
  const double mean = norms.mean();
  if (mean == 0) return std::nullopt;
  return norms.array().square().mean() / (mean * mean);
}

std::optional<double> router_signal_fraction(const Eigen::Ref<const Matrix>& weight,
                                             const Eigen::Ref<const Matrix>& basis) {
  if (basis.rows() != weight.cols())
    throw InvalidOption("basis",
                        fmt::format("{} rows for router weights of width {}", basis.rows(), weight.cols()));
  const double total = weight.squaredNorm();
  if (total == 0) return std::nullopt;
  const Matrix projected = weight * basis;
  return projected.squaredNorm() / total;
}

std::optional<double> weight_variation(const Eigen::Ref<const Matrix>& weights,
                                       std::span<const int> clusters) {
  const std::vector<std::int64_t> rows = expert_loads(clusters, static_cast<int>(weights.rows()));
  double sum = 0, counted = 0;
  for (Eigen::Index k = 0; k < weights.rows(); ++k) {
    const double share = static_cast<double>(rows[static_cast<std::size_t>(k)]);
    if (share == 0) continue;
    const Vector relative = weights.row(k).transpose() / weights.row(k).mean();
    sum += share * std::sqrt((relative.array() - 1).square().mean());
    counted += share;
  }
  if (counted == 0) return std::nullopt;
  return sum / counted;
}

MetricGroup load_metrics() {
  MetricGroup group = row_metrics<NoMetricOptions, LoadMeter>(
      "load",
      "how evenly the test rows spread over the experts; uses selected (the first choices where gating.eval "
      "activates every expert), and serving for dead_experts and unserved_share",
      {metric("expert_load_max_violation", false, "(max_e load_e − mean load) ÷ mean load",
              "largest excess load ÷ mean load", "largest violation"),
       metric("expert_load_max_deviation", false,
              "max_e |load_e − mean load| ÷ mean load: too little counts as well",
              "largest deviation of the load ÷ mean load", "largest deviation"),
       metric("expert_load_std_percent", false,
              "standard deviation over experts of the percentage of assignments (ddof 0)",
              "load standard deviation (% of rows)", "load deviation"),
       metric("dead_experts", false,
              "share of experts that serve less than a tenth of an even share (n ÷ E; with `analyze --top-k "
              "K`, K n ÷ E)",
              "share of dead experts", "dead experts"),
       metric("unserved_share", false, "share of rows that no expert serves",
              "share of rows without an expert", "unserved", {&needs::unserved_rows}),
       metric("co_activation", false,
              "mean over experts i of max_{j ≠ i} n_ij ÷ n_i; n_ij rows go to both; 1: each has a constant "
              "partner",
              "share of an expert's rows with its nearest partner", "co-activation",
              {&needs::several_experts, &needs::sets})});
  group.of_layers = true;
  group.needs = {&needs::router};
  return group;
}

MetricGroup layer_loads_metrics() {
  MetricGroup group = row_metrics<NoMetricOptions, LayerLoadsMeter>(
      "layer_loads", "balance of a whole stack (Nielsen et al. 2025, Table 6); uses selected, as load does",
      {metric("expert_load_std_percent_mean", false, "mean over layers of expert_load_std_percent",
              "load standard deviation (% of rows), mean over layers", "load deviation, mean"),
       metric("expert_load_std_percent_spread", false,
              "standard deviation over layers of expert_load_std_percent (ddof 0)",
              "load standard deviation (% of rows), spread over layers", "load deviation, spread")});
  group.by_default = false;
  group.needs = {&needs::router, &needs::model};
  return group;
}

MetricGroup routing_metrics() {
  MetricGroup group = row_metrics<NoMetricOptions, RoutingMeter>(
      "routing",
      "the router's probabilities on the test rows (Guo et al. 2025; Nguyen et al. 2025); uses probabilities",
      {metric("routing_entropy", false, "mean over rows of H(r(x)), nats", "routing entropy of a row (nats)",
              "routing entropy"),
       metric("routing_entropy_base", false,
              "mean over rows of H(r(x)) before tokens mix their routing, of the same model, nats",
              "routing entropy of a row before mixing (nats)", "before mixing", {&needs::mixed_tokens}),
       metric("router_margin", false, "mean over rows of the largest probability less the second largest",
              "margin of the likeliest expert", "margin", {&needs::several_experts}),
       metric("routing_variance_eq42", false,
              "mean over experts of (mean r_e − 1/E)²: imbalance of the mean gate",
              "imbalance of the mean gate", "gate imbalance"),
       metric("score_variance", false, "mean over experts of the variance of r_e over rows (ddof 0)",
              "variance of probabilities over rows", "over rows"),
       metric("score_row_variance", false, "mean over rows of the variance of r_e over experts (ddof 0)",
              "variance of probabilities over experts", "over experts")});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::probabilities};
  set_larger_is_better(group, {"router_margin"});
  return group;
}

MetricGroup boundary_metrics() {
  MetricGroup group = row_metrics<BoundaryMetricOptions, BoundaryMeter>(
      "boundary",
      "how many test rows lie at the boundary between their two most probable experts (2605.02124); uses "
      "probabilities",
      {metric("boundary_mass", false, "share of rows with ln r_(1) − ln r_(2) ≤ w, of scores under softmax",
              "share of rows at the boundary", "boundary"),
       metric("boundary_mass_half", false,
              "boundary_mass for w / 2: half as large where the density is smooth",
              "share of rows at half the boundary", "half the boundary")});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::model, &needs::several_experts};
  return group;
}

MetricGroup router_norms_metrics() {
  MetricGroup group = row_metrics<NoMetricOptions, RouterNormsMeter>(
      "router_norms", "the weights M_i into expert i of a router that is linear in x; uses no routing",
      {metric("router_norm_ratio", true, "E‖M_i‖² ÷ (E‖M_i‖)²: 1 when all are equal",
              "norm ratio E‖M‖² ÷ (E‖M‖)²", "norm ratio", {}, "the router is zero"),
       metric("router_signal_fraction", false,
              "share of Σ_i ‖M_i‖² inside the subspace on which the target depends",
              "router weight in signal subspace", "signal fraction", {&needs::signal_subspace})});
  group.of_layers = true;
  group.needs = {&needs::router_weight};
  set_larger_is_better(group, {"router_signal_fraction"});
  return group;
}

MetricGroup feature_weights_metrics() {
  MetricGroup group = row_metrics<NoMetricOptions, FeatureWeightsMeter>(
      "feature_weights",
      "the weights M of an adaptive clustering router after the last step (Nielsen et al. 2025); uses "
      "serving",
      {metric("weight_variation", false,
              "mean over rows of the coefficient of variation over features of M of the row's cluster: 0 for "
              "M = I",
              "variation of feature weights", "weight variation")});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&weighed_features};
  return group;
}

}  // namespace moelab
