#include "analysis/metrics/overlap.h"

#include <fmt/format.h>

#include <numeric>

#include "analysis/metrics/silhouette.h"
#include "app/metrics/metric_groups.h"

namespace moelab {
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

}  // namespace moelab
