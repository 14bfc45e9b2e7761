#include "app/run/measurement.h"

#include <algorithm>
#include <cmath>

#include "app/metrics/finite.h"

namespace moelab {
namespace {

/// Whether the chosen groups look at every prediction.
bool predicts(const CellOptions& cell) {
  return std::any_of(cell.metrics.begin(), cell.metrics.end(),
                     [](const MetricOptions& group) { return group.chosen() == "task"; });
}

void leave_out_not_finite(MetricValues& values) {
  for (auto metric = values.begin(); metric != values.end();)
    metric = std::isfinite(metric->second) ? metric + 1 : values.erase(metric);
}

}  // namespace

template <class Real>
Measurement<Real>::Measurement(const CellOptions& cell, const Problem& problem, const Dataset* train,
                               const Dataset& test)
    : cell_(cell), data_(problem.layout(), cell.experiment.loss, train ? *train : none_, test) {
  const MeterSetting<Real> setting{cell.experiment, problem, data_, cell.seeds, train != nullptr};
  for (const MetricOptions& group : cell.metrics) {
    if (std::unique_ptr<Meter<Real>> meter = make_meter(group, setting)) meters_.push_back(std::move(meter));
  }
}

template <class Real>
MetricValues Measurement<Real>::measure(const Moment<Real>& moment) {
  not_finite_.clear();
  try {
    return measure_finite(moment);
  } catch (const NotFinite& found) {
    not_finite_ = found.what();
    for (const std::unique_ptr<Meter<Real>>& meter : meters_) meter->forget();
    return {};
  }
}

template <class Real>
MetricValues Measurement<Real>::measure_finite(const Moment<Real>& moment) {
  check_finite<Real>(moment.model.parameters, "parameters");
  data_.check_inputs();
  // What is told of a model must not depend on what else is measured.
  if (!predicts(cell_)) data_.check_predictions(moment);
  const Network<Real>& network = *moment.model.network;
  MetricValues values;
  std::unique_ptr<LayerRouting<Real>> before, here;
  for (int layer = 0; layer < network.layers() && network.has_router(); ++layer) {
    before = std::move(here);
    here = std::make_unique<LayerRouting<Real>>(moment, data_, layer);
    const LayerMoment<Real> at{moment, *here, before.get()};
    MetricValues of_layer;
    for (const std::unique_ptr<Meter<Real>>& meter : meters_) meter->measure_layer(at, of_layer);
    for (const auto& [name, value] : of_layer) values[name + network.layer_ending(layer)] = value;
  }
  for (const std::unique_ptr<Meter<Real>>& meter : meters_) meter->measure(moment, values);
  leave_out_not_finite(values);
  return values;
}

template <class Real>
std::vector<SavedArray> Measurement<Real>::arrays(const Moment<Real>& moment) const {
  std::vector<SavedArray> arrays;
  if (cell_.saved.contains("weights")) {
    for (const NamedArray<Real>& array : moelab::arrays(moment.model))
      arrays.push_back({array.name, array.shape, {array.values.begin(), array.values.end()}, {}});
  }
  if (cell_.saved.contains("routing")) save_routing(moment, arrays);
  return arrays;
}

template <class Real>
void Measurement<Real>::save_routing(const Moment<Real>& moment, std::vector<SavedArray>& arrays) const {
  const Network<Real>& network = *moment.model.network;
  const Layout& layout = data_.layout();
  const Dataset& test = data_.test();
  const std::int64_t n = test.x.rows();
  const auto save = [&](const std::string& name, std::vector<std::int64_t> shape, const Matrix& values) {
    arrays.push_back({name, std::move(shape), {values.data(), values.data() + values.size()}, {}});
  };
  save("test_inputs", layout.input_shape(n), test.x);
  save("test_targets", layout.target_shape(n), test.y);
  arrays.push_back({"test_labels", layout.label_shape(n), {}, {test.cluster.begin(), test.cluster.end()}});
  save("test_outputs_soft", layout.target_shape(n), data_.test_outputs(moment, network.soft_gating()));
  save("test_outputs_top1", layout.target_shape(n), data_.test_outputs(moment, network.top1_gating()));
  for (int layer = 0; layer < network.layers() && network.has_router(); ++layer) {
    save("test_probs" + network.layer_ending(layer), layout.row_shape(n, network.experts()),
         data_.test_probabilities(moment, layer));
  }
}

template class Measurement<float>;
template class Measurement<double>;

}  // namespace moelab
