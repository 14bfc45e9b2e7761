#include <algorithm>
#include <vector>

#include "analysis/metrics/metric_groups.h"
#include "sim/data/problem.h"

namespace moelab {
namespace {

const Need replaced_rows{"data.contamination replaced", [](const MetricSubject& of, int) {
                           return of.data().contamination.chosen() == "replaced";
                         }};

struct ReplacedMetricOptions {
  void bind(Fields& /*fields*/) {}
};

template <class Real>
class ReplacedMeter final : public Meter<Real> {
 public:
  ReplacedMeter(const ReplacedMetricOptions& /*options*/, const MeterSetting<Real>& setting)
      : data_(setting.data), applies_(!unmet_need("test_loss_kept", setting.subject)) {
    if (!applies_) return;
    // What is replaced depends on the seeds alone: of rows of zeros those that no longer are.
    const Layout& layout = data_.layout();
    Matrix inputs = Matrix::Zero(data_.samples(), layout.sample_dim());
    contaminate(setting.subject.data().contamination, layout, setting.seeds, inputs);
    const Eigen::Index width = layout.target_per_token ? layout.input_dim : inputs.cols();
    const MatrixView rows(inputs.data(), inputs.size() / width, width);
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      if (rows.row(i).isZero(0)) kept_.push_back(i);
    }
  }

  void measure(const TestMoment<Real>& moment, MetricValues& values) override {
    if (!applies_ || kept_.empty()) return;
    const Matrix outputs = moment.pass.outputs();
    values["test_loss_kept"] = data_.task_loss(kept_of(outputs), kept_of(data_.test().y));
  }

 private:
  Matrix kept_of(const Matrix& all) const { return data_.target_rows(all)(kept_, Eigen::all); }

  const MeasuredData<Real>& data_;
  bool applies_;
  std::vector<Eigen::Index> kept_;  ///< rows of targets
};

}  // namespace

MetricGroup replaced_metrics() {
  MetricGroup group = metric_group<ReplacedMetricOptions, ReplacedMeter>(
      "replaced", "what replaced rows do to the others; uses what gating.eval selects",
      {{"test_loss_kept", true,
        "test_loss_eval over the targets none of whose inputs was replaced: routers that look at a batch or "
        "at a sequence carry harm from row to row",
        "test loss of rows that were kept", "kept rows"}});
  group.by_default = false;
  group.needs = {&needs::model, &replaced_rows};
  return group;
}

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
