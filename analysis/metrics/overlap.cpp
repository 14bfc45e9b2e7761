#include "analysis/metrics/overlap.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "analysis/metrics/metric_groups.h"
#include "analysis/metrics/task.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Points compared at a time, so that they stay in the cache for all queries.
constexpr Eigen::Index kBlock = 256;

}  // namespace

QueryPoints first_points(const Eigen::Ref<const Matrix>& points, std::span<const int> experts,
                         std::int64_t count) {
  if (static_cast<std::size_t>(points.rows()) != experts.size())
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
            experts.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
  }
}

NearestNeighbours::NearestNeighbours(const QueryPoints& queries, int k)
    : queries_(queries), k_(static_cast<std::size_t>(k)), nearest_(queries.rows.size()) {}

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
  // Of points at an infinite distance none is nearer than another.
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
  return std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size());
}

Silhouette::Silhouette(const QueryPoints& queries, int experts)
    : queries_(queries),
      sums_(Matrix::Zero(static_cast<Eigen::Index>(queries.rows.size()), experts)),
      counts_(static_cast<std::size_t>(experts), 0) {}

void Silhouette::add(const Eigen::Ref<const Matrix>& distances_to_queries, std::span<const int> experts) {
  for (Eigen::Index query = 0; query < sums_.rows(); ++query) {
    for (std::size_t j = 0; j < experts.size(); ++j) {
      if (experts[j] >= 0)
        sums_(query, experts[j]) += distances_to_queries(query, static_cast<Eigen::Index>(j));
    }
  }
  for (const int expert : experts) {
    if (expert >= 0) ++counts_[static_cast<std::size_t>(expert)];
  }
}

std::vector<double> Silhouette::coefficients() const {
  if (std::count_if(counts_.begin(), counts_.end(), [](std::int64_t count) { return count > 0; }) < 2)
    return {};
  std::vector<double> coefficients;
  for (Eigen::Index query = 0; query < sums_.rows(); ++query) {
    const int own = queries_.experts[static_cast<std::size_t>(query)];
    const std::int64_t others = counts_[static_cast<std::size_t>(own)] - 1;
    double nearest = std::numeric_limits<double>::infinity();
    for (Eigen::Index expert = 0; expert < sums_.cols(); ++expert) {
      const std::int64_t count = counts_[static_cast<std::size_t>(expert)];
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
  return std::accumulate(coefficients.begin(), coefficients.end(), 0.0) /
         static_cast<double>(coefficients.size());
}

namespace {

/// The columns of an expert's output.
Eigen::Index output_width(const Eigen::Ref<const Matrix>& outputs, int experts) {
  if (experts < 2 || outputs.cols() % experts != 0)
    throw InvalidOption("expert outputs",
                        fmt::format("{} columns of {} experts; needs at least two experts and as "
                                    "many outputs of each",
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

}  // namespace

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
  if (selected.size() != static_cast<std::size_t>(outputs.rows() * experts)) {
    throw InvalidOption("selected", fmt::format("{} entries for {} rows of {} experts", selected.size(),
                                                outputs.rows(), experts));
  }
  SignalSpread spread;
  std::vector<double> signals;
  for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
    signals.clear();
    for (int e = 0; e < experts; ++e) {
      if (selected[static_cast<std::size_t>(i * experts + e)])
        signals.push_back(signal_of(outputs, experts, gradients, i, e));
    }
    if (signals.size() < 2) continue;
    const Eigen::Map<const Vector> of_row(signals.data(), static_cast<Eigen::Index>(signals.size()));
    spread.variance += (of_row.array() - of_row.mean()).square().mean();
    spread.square += of_row.array().square().mean();
  }
  return spread;
}

namespace {

struct OverlapMetricOptions {
  enum class Space { inputs, experts };
  int neighbours = 10;
  int rows = 1000;
  Space space = Space::inputs;

  void bind(Fields& fields) {
    fields.add("neighbours", neighbours, between(1, 1e6), "nearest neighbours of expert_overlap");
    fields.add("rows", rows, between(2, 1e6), "first test rows that are compared with all; bounds the cost");
    fields.add(
        "space", space, {"inputs", "experts"},
        "where distances are taken: between rows of the data, or between what the layer reads of them");
  }
};

/// The default is as many as there are. Throws InvalidOption for more that the test rows do not have.
void check_neighbours(const AnyOptions& given, const ExperimentOptions& experiment, const std::string& path) {
  const int neighbours = given.get<OverlapMetricOptions>().neighbours;
  const auto tokens = experiment.data.entry().tokens;
  const std::int64_t rows =
      std::int64_t{experiment.data.test_samples} * (tokens ? tokens(experiment.data.options()) : 1);
  if (neighbours == OverlapMetricOptions().neighbours || neighbours < rows) return;
  throw InvalidOption(path + ".neighbours",
                      fmt::format("got {}, needs at most {}, the other test rows", neighbours, rows - 1));
}

template <class Real>
class OverlapMeter final : public Meter<Real> {
 public:
  OverlapMeter(const OverlapMetricOptions& options, const MeterSetting<Real>& setting)
      : options_(options), data_(setting.data) {}

  void measure_layer(const LayerMoment<Real>& moment, MetricValues& values) override {
    if (data_.has_ids() && options_.space != OverlapMetricOptions::Space::experts)
      return;  // names, no places
    const std::vector<int>& experts = moment.here.serving();
    const bool of_layer = options_.space == OverlapMetricOptions::Space::experts;
    const Matrix read = of_layer ? rows_read(moment) : Matrix();
    const MatrixView rows = of_layer ? MatrixView(read.data(), read.rows(), read.cols()) : data_.test_rows();
    const QueryPoints queries = first_points(rows, experts, options_.rows);
    NearestNeighbours neighbours(queries, options_.neighbours);
    Silhouette silhouettes(queries, moment.moment.model.network->experts());
    visit_distances(queries, rows, experts, [&](const Matrix& block, std::span<const int> block_experts) {
      neighbours.add(block, block_experts);
      silhouettes.add(block, block_experts);
    });
    const auto add_mean = [&](const std::string& name, const std::vector<double>& of_rows) {
      if (of_rows.empty()) return;
      values[name] =
          std::accumulate(of_rows.begin(), of_rows.end(), 0.0) / static_cast<double>(of_rows.size());
    };
    add_mean("expert_overlap", neighbours.other_expert_shares());
    add_mean("silhouette", silhouettes.coefficients());
  }

 private:
  /// What the layer's block reads of every test row under the evaluation gating, (rows, d).
  Matrix rows_read(const LayerMoment<Real>& at) const {
    const Moment<Real>& moment = at.moment;
    const Network<Real>& network = *moment.model.network;
    const std::size_t block =
        static_cast<std::size_t>(&network.placed_mixture(at.layer()) - network.blocks().data());
    Matrix all;
    visit_blocks<Real>(moment.model, network.eval_gating(), data_.test_inputs(), data_.samples(),
                       moment.workspace, [&](int first_row) {
                         const View<const Real>& inputs = moment.workspace.inputs[block];
                         if (first_row == 0) all.resize(data_.rows(), inputs.columns);
                         for (int row = 0; row < inputs.rows; ++row) {
                           for (int q = 0; q < inputs.columns; ++q)
                             all(first_row + row, q) = static_cast<double>(inputs(row, q));
                         }
                       });
    return all;
  }

  OverlapMetricOptions options_;
  const MeasuredData<Real>& data_;
};

}  // namespace

MetricGroup overlap_metrics() {
  MetricGroup group = metric_group<OverlapMetricOptions, OverlapMeter>(
      "overlap",
      "how separate the inputs are that different experts serve, each row labelled by its serving expert "
      "(Guo "
      "et al. 2025); uses serving",
      {{"expert_overlap", false, "mean share of a row's nearest neighbours with another expert",
        "share of neighbours with another expert", "overlap"},
       {"silhouette",
        false,
        "mean of (b − a) ÷ max(a, b), distances to the own and the nearest other expert",
        "silhouette of experts",
        "silhouette",
        {&needs::several_experts}}});
  group.by_default = false;
  group.check = check_neighbours;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::space};
  return group;
}

namespace {

struct ExpertOutputsMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class ExpertOutputsMeter final : public Meter<Real> {
 public:
  ExpertOutputsMeter(const ExpertOutputsMetricOptions& /*options*/, const MeterSetting<Real>& setting)
      : data_(setting.data),
        has_similarity_(!unmet_need("expert_output_similarity", setting.subject)),
        has_signal_(!unmet_need("task_signal_variance", setting.subject)),
        has_spread_(!unmet_need("task_signal_variation", setting.subject)) {}

  void measure_layer(const LayerMoment<Real>& at, MetricValues& values) override {
    const Moment<Real>& moment = at.moment;
    const Model<Real>& model = moment.model;
    const Network<Real>& network = *model.network;
    if (!has_similarity_) return;
    const int experts = network.experts();
    const PlacedBlock<Real>& placed = network.placed_mixture(at.layer());
    MixtureScratch<Real>& scratch = network.mixture_scratch(at.layer(), moment.workspace);
    const Matrix errors = has_signal_ ? error_gradients(moment) : Matrix();
    double similarity = 0, signal = 0;
    SignalSpread spread;
    // Routing the rows writes the workspace: before the pass whose outputs are read there.
    std::span<const unsigned char> selected;
    if (has_spread_) selected = at.here.selected();
    visit_blocks<Real>(model, network.soft_gating(), data_.test_inputs(), data_.samples(), moment.workspace,
                       [&](int first_row) {
                         const BlockValues<Real> own = network.values(placed, model.parameters, model.state);
                         const Eigen::Map<const MatrixOf<Real>> outputs(
                             placed.mixture->pair_outputs(own, scratch), scratch.routing().rows,
                             experts * placed.mixture->output_stride());
                         const Matrix block = outputs.template cast<double>();
                         similarity += expert_output_similarities(block, experts).sum();
                         if (has_signal_) {
                           const Matrix own_errors = errors.middleRows(first_row, block.rows());
                           signal += task_signal_variances(block, experts, own_errors).sum();
                           if (selected.empty()) return;
                           const std::size_t first =
                               static_cast<std::size_t>(first_row) * static_cast<std::size_t>(experts);
                           const SignalSpread of_block = selected_signal_spread(
                               block, experts, own_errors,
                               selected.subspan(first, static_cast<std::size_t>(block.rows() * experts)));
                           spread.variance += of_block.variance;
                           spread.square += of_block.square;
                         }
                       });
    const double rows = static_cast<double>(data_.rows());
    values["expert_output_similarity"] = similarity / rows;
    if (has_signal_) values["task_signal_variance"] = signal / rows;
    if (spread.square > 0) values["task_signal_variation"] = spread.variance / spread.square;
  }

 private:
  /// ∂(loss of a row)/∂f (rows, o) where a layer's output is the model's: a row has an error of its own to be
  /// corrected by the experts.
  Matrix error_gradients(const Moment<Real>& moment) const {
    const Matrix outputs = data_.test_outputs(moment, moment.model.network->train_gating());
    const MatrixView f = data_.target_rows(outputs), y = data_.target_rows(data_.test().y);
    return data_.cross_entropy() ? cross_entropy_gradients(f, y) : Matrix(2 * (f - y));
  }

  const MeasuredData<Real>& data_;
  bool has_similarity_, has_signal_, has_spread_;
};

}  // namespace

MetricGroup expert_outputs_metrics() {
  MetricGroup group = metric_group<ExpertOutputsMetricOptions, ExpertOutputsMeter>(
      "expert_outputs",
      "what the experts answer on the test rows, every expert on every row; uses no routing, but that of "
      "training for g, and selected for task_signal_variation",
      {{"expert_output_similarity",
        false,
        "mean cosine between the outputs of two different experts",
        "cosine between experts' outputs",
        "output similarity",
        {&needs::expert_outputs}},
       {"task_signal_variance",
        true,
        "mean over rows of the variance over experts of g^T expert_e(x), g the gradient of the row's loss in "
        "the output (Guo et al. 2025)",
        "variance of experts along the error",
        "task signal",
        {&needs::model, &needs::model_output}},
       {"task_signal_variation",
        false,
        "the same over the experts that the row selects, summed over rows and divided by the sum of their "
        "mean "
        "squares: 0 equal signals, at most 1",
        "relative variance of selected experts along the error",
        "task signal variation",
        {&needs::model, &needs::model_output, &needs::sets}}});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::several_experts};
  return group;
}

}  // namespace moelab
