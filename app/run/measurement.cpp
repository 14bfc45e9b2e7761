#include "app/run/measurement.h"

#include <algorithm>
#include <cmath>

#include "analysis/metrics/sparsity.h"
#include "app/metrics/finite.h"

namespace moelab {
namespace {

/// Whether the chosen groups look at every prediction.
bool predicts(const CellOptions& cell) {
  return std::any_of(cell.metrics.begin(), cell.metrics.end(),
                     [](const MetricOptions& group) { return group.chosen() == "task"; });
}

}  // namespace

template <class Real>
Measurement<Real>::Measurement(const CellOptions& cell, const DataOptions& data, const Problem& problem,
                               const Dataset* train, const Dataset& test)
    : cell_(cell),
      data_(problem.layout(), cell.experiment.loss, train ? *train : none_, test),
      subject_(cell.experiment, data, cell.seeds, train != nullptr, &problem) {
  const MeterSetting<Real> setting{cell.experiment, problem, data_, cell.seeds, subject_};
  for (const MetricOptions& group : cell.metrics) {
    if (std::unique_ptr<Meter<Real>> meter = make_meter(group, setting)) meters_.push_back(std::move(meter));
  }
  keeps_steps_ = train != nullptr && cell.saved.contains("routing_steps");
}

template <class Real>
MeasuredValues Measurement<Real>::measure(const Moment<Real>& moment) {
  not_finite_.clear();
  try {
    MeasuredValues values = measure_finite(moment);
    measured_.insert(moment.step);
    return values;
  } catch (const NotFinite& found) {
    not_finite_ = found.what();
    for (const std::unique_ptr<Meter<Real>>& meter : meters_) meter->forget();
    return {};
  }
}

template <class Real>
MeasuredValues Measurement<Real>::complete(std::int64_t step) {
  MeasuredValues values;
  if (!not_finite_.empty() || !measured_.contains(step)) return values;
  for (int layer = 0; layer < layers_; ++layer) {
    MetricValues of_layer;
    for (const std::unique_ptr<Meter<Real>>& meter : meters_) meter->complete_layer(step, layer, of_layer);
    add_layer(layer, of_layer, values);
  }
  return values;
}

template <class Real>
void Measurement<Real>::add_layer(int layer, const MetricValues& of_layer, MeasuredValues& values) const {
  for (const auto& [name, value] : of_layer) {
    if (!std::isfinite(value)) continue;
    MetricKey key{.metric = name};
    if (layers_ > 1) key.layer = layer;
    values[key] = value;
  }
}

template <class Real>
MeasuredValues Measurement<Real>::measure_finite(const Moment<Real>& moment) {
  check_finite<Real>(moment.model.parameters, "parameters");
  data_.check_inputs();
  const Network<Real>& network = *moment.model.network;
  TestPass<Real> pass(moment, data_);
  const TestMoment<Real> on_test{moment, pass};
  // What is told of a model must not depend on what else is measured.
  if (!predicts(cell_)) check_predictions(on_test);
  MeasuredValues values;
  std::unique_ptr<LayerRouting<Real>> before, here;
  layers_ = network.has_router() ? network.layers() : 0;
  for (int layer = 0; layer < layers_; ++layer) {
    before = std::move(here);
    here = std::make_unique<LayerRouting<Real>>(on_test, data_, layer);
    const LayerMoment<Real> at{moment, *here, before.get()};
    MetricValues of_layer;
    for (const std::unique_ptr<Meter<Real>>& meter : meters_) meter->measure_layer(at, of_layer);
    add_layer(layer, of_layer, values);
    if (keeps_steps_) keep_step(moment, *here);
  }
  MetricValues of_model;
  for (const std::unique_ptr<Meter<Real>>& meter : meters_) meter->measure(on_test, of_model);
  for (const auto& [name, value] : of_model) {
    if (std::isfinite(value)) values[MetricKey{.metric = name}] = value;
  }
  return values;
}

template <class Real>
void Measurement<Real>::check_predictions(const TestMoment<Real>& moment) const {
  const Network<Real>& network = *moment.model.network;
  if (data_.has_train()) data_.train_loss(moment, network.train_gating());
  for (const Gating<Real>* gating : {&network.soft_gating(), &network.top1_gating()})
    data_.test_loss(moment, *gating);
  moment.pass.loss();
}

template <class Real>
void Measurement<Real>::keep_step(const Moment<Real>& moment, LayerRouting<Real>& layer) {
  const auto place = static_cast<std::size_t>(layer.layer());
  if (steps_.size() <= place) steps_.resize(place + 1);
  const ClusterRouting routing(layer.probabilities(), data_.clusters().front().labels.front());
  steps_[place].add(moment.step, routing.mean_routing(), layer.loads(), data_.rows());
  steps_[place].add_router(*moment.model.network, moment.model.parameters, layer.layer());
}

template <class Real>
std::vector<SavedArray> Measurement<Real>::arrays(const Moment<Real>& moment) const {
  std::vector<SavedArray> arrays;
  if (cell_.saved.contains("weights")) {
    for (const NamedArray<Real>& array : moelab::arrays(moment.model))
      arrays.push_back({array.name, array.shape, {array.values.begin(), array.values.end()}, {}});
  }
  if (cell_.saved.contains("routing")) save_routing(moment, arrays);
  for (std::size_t layer = 0; layer < steps_.size(); ++layer) {
    const std::string ending = moment.model.network->layer_ending(static_cast<int>(layer));
    for (SavedArray& array : steps_[layer].arrays(ending)) arrays.push_back(std::move(array));
  }
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
  const auto save_ids = [&](const std::string& name, const Matrix& ids) {
    arrays.push_back({name, layout.input_shape(n), {}, {ids.data(), ids.data() + ids.size()}});
  };
  if (data_.has_ids()) {
    save_ids("test_inputs", test.x);
    save_ids("test_targets", test.y);
  } else {
    save("test_inputs", layout.input_shape(n), test.x);
    save("test_targets", layout.target_shape(n), test.y);
  }
  arrays.push_back({"test_labels", layout.label_shape(n), {}, {test.cluster.begin(), test.cluster.end()}});
  if (!data_.has_ids()) {
    save("test_outputs_soft", layout.target_shape(n), data_.test_outputs(moment, network.soft_gating()));
    save("test_outputs_top1", layout.target_shape(n), data_.test_outputs(moment, network.top1_gating()));
  }
  for (int layer = 0; layer < network.layers() && network.has_router(); ++layer) {
    save("test_probs" + network.layer_ending(layer), layout.row_shape(n, network.experts()),
         data_.test_probabilities(moment, layer));
  }
}

template class Measurement<float>;
template class Measurement<double>;

}  // namespace moelab
