#include "analysis/metrics/similarity.h"
#include "analysis/metrics/task.h"
#include "app/metrics/metric_groups.h"

namespace moelab {
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
