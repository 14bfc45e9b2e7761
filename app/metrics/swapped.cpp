#include <algorithm>
#include <vector>

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
  SwappedMeter(const SwappedMetricOptions& /*options*/, const MeterSetting<Real>& setting) {
    if (unmet_need("test_loss_unswapped", setting.subject)) return;
    const MeasuredData<Real>& data = setting.data;
    // What is swapped depends on the seeds alone: of zeros those that no longer are.
    const Matrix& targets = data.test().y;
    Matrix x = Matrix::Zero(targets.rows(), targets.cols()), y = x;
    contaminate(setting.subject.data().contamination, data.layout(), setting.seeds, x, y);
    const bool is_masked = task_loss_kind(setting.experiment.loss.task).masks_tokens;
    const Matrix& moved = is_masked ? x : y;
    for (Eigen::Index i = 0; i < targets.size(); ++i)
      if (targets.data()[i] >= 0) is_kept_.push_back(moved.data()[i] == 0);
  }

  void measure(const TestMoment<Real>& moment, MetricValues& values) override {
    const auto kept = std::count(is_kept_.begin(), is_kept_.end(), true);
    if (kept == 0) return;
    const std::vector<double>& losses = moment.pass.token_losses();
    double sum = 0;
    for (std::size_t i = 0; i < losses.size(); ++i) sum += is_kept_[i] ? losses[i] : 0;
    values["test_loss_unswapped"] = sum / static_cast<double>(kept);
  }

 private:
  std::vector<bool> is_kept_;  ///< of the tokens that have a target; empty where the metric does not apply
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
