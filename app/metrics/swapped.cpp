#include <numeric>

#include "app/metrics/finite.h"
#include "app/metrics/metric_groups.h"
#include "sim/data/token_masks.h"

namespace moelab {
namespace {

const Need swapped_tokens{"data.contamination swapped", [](const MetricSubject& of, int) {
                            return of.data().contamination.chosen() == "swapped";
                          }};

struct SwappedMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class SwappedMeter final : public Meter<Real> {
 public:
  SwappedMeter(const SwappedMetricOptions& /*options*/, const MeterSetting<Real>& setting)
      : data_(setting.data) {
    if (unmet_need("test_loss_unswapped", setting.subject)) return;
    // What is swapped depends on the seeds alone: of zeros those that no longer are.
    const Matrix& targets = data_.test().y;
    Matrix x = Matrix::Zero(targets.rows(), targets.cols()), y = x;
    contaminate(setting.subject.data().contamination, data_.layout(), setting.seeds, x, y);
    const bool is_masked = task_loss_kind(setting.experiment.loss.task).masks_tokens;
    const Matrix& moved = is_masked ? x : y;
    targets_ = (moved.array() == 0).select(targets, static_cast<double>(kNoTarget));
  }

  void measure(const Moment<Real>& moment, MetricValues& values) override {
    if (!(targets_.array() >= 0).any()) return;
    const std::vector<double> losses =
        token_losses(moment.model, moment.model.network->eval_gating(), data_.test_inputs(), targets_.data(),
                     data_.samples(), moment.workspace);
    check_finite<double>(losses, "losses");
    values["test_loss_unswapped"] =
        std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
  }

 private:
  const MeasuredData<Real>& data_;
  Matrix targets_;  ///< those that were swapped left out; empty where the metric does not apply
};

}  // namespace

MetricGroup swapped_metrics() {
  MetricGroup group = metric_group<SwappedMetricOptions, SwappedMeter>(
      "swapped", "what swapped tokens do to the others; uses what gating.eval selects",
      {{"test_loss_unswapped", true,
        "test_loss_eval over the tokens that were not swapped, told from those that may have been",
        "test loss of tokens that were kept (nats a token)", "kept tokens"}});
  group.by_default = false;
  group.needs = {&needs::model, &swapped_tokens};
  return group;
}

}  // namespace moelab
