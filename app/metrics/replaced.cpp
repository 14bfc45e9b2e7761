#include "app/metrics/metric_groups.h"

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

}  // namespace moelab
