#include "analysis/metrics/overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "analysis/metrics/meters.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Points compared at a time, so that they stay in the cache for all queries.
constexpr Eigen::Index kBlock = 256;

double plain_mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The columns of an expert's output.
Eigen::Index output_width(const Eigen::Ref<const Matrix>& outputs, int experts) {
  if (experts < 2 || outputs.cols() % experts != 0)
    throw InvalidOption(
        "expert outputs",
        fmt::format("{} columns of {} experts; needs at least two experts and as many outputs of each",
                    outputs.cols(), experts));
  return outputs.cols() / experts;
}

void check_signals(const Eigen::Ref<const Matrix>& outputs, int experts,
                   const Eigen::Ref<const Matrix>& gradients) {
  const Eigen::Index width = output_width(outputs, experts);
  if (gradients.rows() == outputs.rows() && gradients.cols() <= width) return;
  throw InvalidOption("gradients", fmt::format("({}, {}) for outputs ({}, {} · {})", gradients.rows(),
                                               gradients.cols(), outputs.rows(), experts, width));
}

/// g^T x̃ of a row and an expert.
double signal_of(const Eigen::Ref<const Matrix>& outputs, int experts,
                 const Eigen::Ref<const Matrix>& gradients, Eigen::Index row, int expert) {
  const Eigen::Index width = outputs.cols() / experts;
  return outputs.row(row).segment(expert * width, gradients.cols()).dot(gradients.row(row));
}

struct OverlapMetricOptions {
  int neighbours = 10;
  int rows = 1000;
  LayerRows::Space space = LayerRows::Space::inputs;

  void bind(Fields& fields) {
    fields.add("neighbours", neighbours, between(1, 1e6), "nearest neighbours of expert_overlap");
    fields.add("rows", rows, between(2, 1e6), "first test rows that are compared with all; bounds the cost");
    fields.add(
        "space", space, {"inputs", "experts"},
        "where distances are taken: between rows of the data, or between what the layer reads of them");
  }
};

/// Throws InvalidOption for more neighbours than there are other test rows. The default fits any number.
void check_neighbours(const AnyOptions& given, const ExperimentOptions& experiment, const std::string& path) {
  const int neighbours = given.get<OverlapMetricOptions>().neighbours;
  const auto tokens = experiment.data.entry().tokens;
  const std::int64_t rows =
      std::int64_t{experiment.data.test_samples} * (tokens ? tokens(experiment.data.options()) : 1);
  if (neighbours == OverlapMetricOptions().neighbours || neighbours < rows) return;
  throw InvalidOption(path + ".neighbours",
                      fmt::format("got {}, needs at most {}, the other test rows", neighbours, rows - 1));
}

class OverlapMeter final : public RowMeter {
 public:
  OverlapMeter(const OverlapMetricOptions& options, const RowSetting& /*setting*/) : options_(options) {}

  void measure(LayerRows& rows, LayerMetrics& metrics) override {
    if (!rows.has_points(options_.space)) return;
    const std::span<const int> serving = rows.serving();
    const QueryPoints queries = compared_points(rows);
    NearestNeighbours neighbours(queries, options_.neighbours);
    Silhouette silhouettes(queries, rows.experts());
    rows.visit_points(options_.space, [&](Eigen::Index first, const Eigen::Ref<const Matrix>& points) {
      visit_distances(queries, points, serving.subspan(size(first), size(points.rows())),
                      [&](const Matrix& block, std::span<const int> experts) {
                        neighbours.add(block, experts);
                        silhouettes.add(block, experts);
                      });
    });
    metrics.of_rows["expert_overlap"] = neighbours.other_expert_shares();
    metrics.of_rows["silhouette"] = silhouettes.coefficients();
  }

 private:
  QueryPoints compared_points(LayerRows& rows) const {
    QueryPoints queries;
    queries.rows = rows.compared_rows(options_.rows);
    std::size_t next = 0;
    rows.visit_points(options_.space, [&](Eigen::Index first, const Eigen::Ref<const Matrix>& points) {
      if (first == 0) queries.points.resize(std::ssize(queries.rows), points.cols());
      for (; next < queries.size() && queries.rows[next] < first + points.rows(); ++next) {
        queries.points.row(static_cast<Eigen::Index>(next)) = points.row(queries.rows[next] - first);
        queries.experts.push_back(rows.serving()[size(queries.rows[next])]);
      }
    });
    return queries;
  }

  OverlapMetricOptions options_;
};

AnyOptions overlap_options(const GivenArrays& given) {
  return OverlapMetricOptions{.neighbours = given.neighbours};
}

class ExpertOutputsMeter final : public RowMeter {
 public:
  ExpertOutputsMeter(const NoMetricOptions& /*options*/, const RowSetting& setting)
      : has_similarity_(setting.applies("expert_output_similarity")),
        has_signal_(setting.applies("task_signal_variance")),
        has_spread_(setting.applies("task_signal_variation")) {}

  void measure(LayerRows& rows, LayerMetrics& metrics) override {
    if (!has_similarity_) return;
    const int experts = rows.experts();
    const Matrix errors = has_signal_ ? rows.error_gradients() : Matrix();
    const std::span<const unsigned char> selected =
        has_spread_ ? rows.selected() : std::span<const unsigned char>();
    double similarity = 0, signal = 0;
    SignalSpread spread;
    rows.visit_expert_outputs([&](Eigen::Index first, const Eigen::Ref<const Matrix>& outputs) {
      similarity += expert_output_similarities(outputs, experts).sum();
      if (!has_signal_) return;
      const Matrix own_errors = errors.middleRows(first, outputs.rows());
      signal += task_signal_variances(outputs, experts, own_errors).sum();
      if (!has_spread_) return;
      const SignalSpread of_block =
          selected_signal_spread(outputs, experts, own_errors,
                                 selected.subspan(entries(first, experts), entries(outputs.rows(), experts)));
      spread.variance += of_block.variance;
      spread.square += of_block.square;
    });
    const double count = static_cast<double>(rows.rows());
    metrics.values["expert_output_similarity"] = similarity / count;
    if (has_signal_) metrics.values["task_signal_variance"] = signal / count;
    if (spread.square > 0) metrics.values["task_signal_variation"] = spread.variance / spread.square;
  }

 private:
  bool has_similarity_, has_signal_, has_spread_;
};

}  // namespace

QueryPoints first_points(const Eigen::Ref<const Matrix>& points, std::span<const int> experts,
                         std::int64_t count) {
  if (size(points.rows()) != experts.size())
    throw InvalidOption("experts", fmt::format("{} experts for {} points", experts.size(), points.rows()));
  QueryPoints queries;
  for (std::size_t row = 0; row < experts.size() && std::ssize(queries.rows) < count; ++row) {
    if (experts[row] < 0) continue;
    queries.rows.push_back(static_cast<std::int64_t>(row));
    queries.experts.push_back(experts[row]);
  }
  queries.points = points(queries.rows, Eigen::all);
  return queries;
}

Matrix distances(const Eigen::Ref<const Matrix>& queries, const Eigen::Ref<const Matrix>& points) {
  Matrix result(queries.rows(), points.rows());
  for (Eigen::Index i = 0; i < queries.rows(); ++i) {
    for (Eigen::Index j = 0; j < points.rows(); ++j)
      result(i, j) = std::sqrt((queries.row(i) - points.row(j)).squaredNorm());
  }
  return result;
}

void visit_distances(const QueryPoints& queries, const Eigen::Ref<const Matrix>& points,
                     std::span<const int> experts, const DistanceBlock& consume) {
  for (Eigen::Index first = 0; first < points.rows(); first += kBlock) {
    const Eigen::Index count = std::min(kBlock, points.rows() - first);
    consume(distances(queries.points, points.middleRows(first, count)),
            experts.subspan(size(first), size(count)));
  }
}

NearestNeighbours::NearestNeighbours(const QueryPoints& queries, int k)
    : queries_(queries), k_(size(k)), nearest_(queries.rows.size()) {}

void NearestNeighbours::add(const Eigen::Ref<const Matrix>& distances_to_queries,
                            std::span<const int> experts) {
  if (!distances_to_queries.allFinite()) finite_ = false;
  for (std::size_t query = 0; query < nearest_.size(); ++query) {
    std::vector<Neighbour>& nearest = nearest_[query];
    for (std::size_t j = 0; j < experts.size(); ++j) {
      if (experts[j] < 0) continue;
      const Neighbour point = {
          distances_to_queries(static_cast<Eigen::Index>(query), static_cast<Eigen::Index>(j)),
          rows_ + static_cast<std::int64_t>(j), experts[j]};
      if (point.row == queries_.rows[query]) continue;
      if (nearest.size() == k_) {
        if (!(point < nearest.front())) continue;
        std::pop_heap(nearest.begin(), nearest.end());
        nearest.pop_back();
      }
      nearest.push_back(point);
      std::push_heap(nearest.begin(), nearest.end());
    }
  }
  rows_ += static_cast<std::int64_t>(experts.size());
  served_rows_ += std::count_if(experts.begin(), experts.end(), [](int expert) { return expert >= 0; });
}

std::vector<double> NearestNeighbours::other_expert_shares() const {
  std::vector<double> shares;
  if (served_rows_ < 2) return shares;
  // Points at an infinite distance have no order.
  if (!finite_) return std::vector<double>(nearest_.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t query = 0; query < nearest_.size(); ++query) {
    const auto others = std::count_if(
        nearest_[query].begin(), nearest_[query].end(),
        [&](const Neighbour& neighbour) { return neighbour.expert != queries_.experts[query]; });
    shares.push_back(static_cast<double>(others) / static_cast<double>(nearest_[query].size()));
  }
  return shares;
}

std::optional<double> expert_overlap(const Eigen::Ref<const Matrix>& points, std::span<const int> experts,
                                     int k) {
  const QueryPoints queries = first_points(points, experts, points.rows());
  NearestNeighbours neighbours(queries, k);
  visit_distances(queries, points, experts, [&](const Matrix& block, std::span<const int> block_experts) {
    neighbours.add(block, block_experts);
  });
  const std::vector<double> shares = neighbours.other_expert_shares();
  if (shares.empty()) return std::nullopt;
  return plain_mean(shares);
}

Silhouette::Silhouette(const QueryPoints& queries, int experts)
    : queries_(queries),
      sums_(Matrix::Zero(static_cast<Eigen::Index>(queries.rows.size()), experts)),
      counts_(size(experts), 0) {}

void Silhouette::add(const Eigen::Ref<const Matrix>& distances_to_queries, std::span<const int> experts) {
  for (Eigen::Index query = 0; query < sums_.rows(); ++query) {
    for (std::size_t j = 0; j < experts.size(); ++j) {
      if (experts[j] >= 0)
        sums_(query, experts[j]) += distances_to_queries(query, static_cast<Eigen::Index>(j));
    }
  }
  for (const int expert : experts) {
    if (expert >= 0) ++counts_[size(expert)];
  }
}

std::vector<double> Silhouette::coefficients() const {
  if (std::count_if(counts_.begin(), counts_.end(), [](std::int64_t count) { return count > 0; }) < 2)
    return {};
  std::vector<double> coefficients;
  for (Eigen::Index query = 0; query < sums_.rows(); ++query) {
    const int own = queries_.experts[size(query)];
    const std::int64_t others = counts_[size(own)] - 1;
    double nearest = std::numeric_limits<double>::infinity();
    for (Eigen::Index expert = 0; expert < sums_.cols(); ++expert) {
      const std::int64_t count = counts_[size(expert)];
      if (expert != own && count > 0)
        nearest = std::min(nearest, sums_(query, expert) / static_cast<double>(count));
    }
    const double within = others > 0 ? sums_(query, own) / static_cast<double>(others) : 0;
    const double larger = std::max(within, nearest);
    coefficients.push_back(others > 0 && larger > 0 ? (nearest - within) / larger : 0);
  }
  return coefficients;
}

std::optional<double> silhouette(const Eigen::Ref<const Matrix>& points, std::span<const int> experts) {
  const QueryPoints queries = first_points(points, experts, points.rows());
  if (experts.empty()) return std::nullopt;
  Silhouette measured(queries, *std::max_element(experts.begin(), experts.end()) + 1);
  visit_distances(queries, points, experts, [&](const Matrix& block, std::span<const int> block_experts) {
    measured.add(block, block_experts);
  });
  const std::vector<double> coefficients = measured.coefficients();
  if (coefficients.empty()) return std::nullopt;
  return plain_mean(coefficients);
}

Vector expert_output_similarities(const Eigen::Ref<const Matrix>& outputs, int experts) {
  const Eigen::Index width = output_width(outputs, experts);
  Vector similarities(outputs.rows());
  Vector sum(width);
  for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
    // Σ_{e≠f} ⟨u_e, u_f⟩ = ‖Σ_e u_e‖² − Σ_e ‖u_e‖² for u_e of length one or zero.
    sum.setZero();
    int directed = 0;
    for (int e = 0; e < experts; ++e) {
      const Eigen::Map<const Vector> output(outputs.data() + i * outputs.outerStride() + e * width, width);
      const double norm = output.stableNorm();
      if (norm == 0) continue;
      sum += output / norm;
      ++directed;
    }
    similarities[i] = (sum.squaredNorm() - directed) / (static_cast<double>(experts) * (experts - 1));
  }
  return similarities;
}

Vector task_signal_variances(const Eigen::Ref<const Matrix>& outputs, int experts,
                             const Eigen::Ref<const Matrix>& gradients) {
  check_signals(outputs, experts, gradients);
  Vector variances(outputs.rows());
  Vector signals(experts);
  for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
    for (int e = 0; e < experts; ++e) signals[e] = signal_of(outputs, experts, gradients, i, e);
    variances[i] = (signals.array() - signals.mean()).square().mean();
  }
  return variances;
}

SignalSpread selected_signal_spread(const Eigen::Ref<const Matrix>& outputs, int experts,
                                    const Eigen::Ref<const Matrix>& gradients,
                                    std::span<const unsigned char> selected) {
  check_signals(outputs, experts, gradients);
  if (selected.size() != size(outputs.rows() * experts)) {
    throw InvalidOption("selected", fmt::format("{} entries for {} rows of {} experts", selected.size(),
                                                outputs.rows(), experts));
  }
  SignalSpread spread;
  std::vector<double> signals;
  for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
    signals.clear();
    for (int e = 0; e < experts; ++e) {
      if (selected[size(i * experts + e)]) signals.push_back(signal_of(outputs, experts, gradients, i, e));
    }
    if (signals.size() < 2) continue;
    const Eigen::Map<const Vector> of_row(signals.data(), static_cast<Eigen::Index>(signals.size()));
    spread.variance += (of_row.array() - of_row.mean()).square().mean();
    spread.square += of_row.array().square().mean();
  }
  return spread;
}

MetricGroup overlap_metrics() {
  MetricGroup group = row_metrics<OverlapMetricOptions, OverlapMeter>(
      "overlap",
      "how separate the inputs are that different experts serve, each row labelled by its serving expert "
      "(Guo et al. 2025); uses serving",
      {metric("expert_overlap", false, "mean share of a row's nearest neighbours with another expert",
              "share of neighbours with another expert", "overlap", {}, "needs at least two rows"),
       metric("silhouette", false,
              "mean of (b − a) ÷ max(a, b), distances to the own and the nearest other expert",
              "silhouette of experts", "silhouette", {&needs::several_experts},
              "all rows have the same top-1 expert")});
  group.by_default = false;
  group.check = check_neighbours;
  group.options_for = overlap_options;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::space, &needs::first_choice};
  set_larger_is_better(group, {"silhouette"});
  return group;
}

MetricGroup expert_outputs_metrics() {
  MetricGroup group = row_metrics<NoMetricOptions, ExpertOutputsMeter>(
      "expert_outputs",
      "the outputs of every expert on every test row. It uses no routing. Two exceptions: g uses the "
      "training gating, and task_signal_variation uses selected",
      {metric("expert_output_similarity", false, "mean cosine between the outputs of two different experts",
              "cosine between experts' outputs", "output similarity", {&needs::expert_outputs}),
       metric("task_signal_variance", true,
              "mean over rows of the variance over experts of g^T expert_e(x), g the gradient of the row's "
              "loss in the output (Guo et al. 2025)",
              "variance of experts along the error", "task signal", {&needs::model, &needs::model_output}),
       metric(
           "task_signal_variation", false,
           "variance of g^T expert_e(x) over a row's selected experts, relative to the mean squares: 0 for "
           "equal signals, at most 1",
           "relative variance of selected experts along the error", "task signal variation",
           {&needs::model, &needs::model_output, &needs::sets})});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::several_experts};
  return group;
}

}  // namespace moelab
