#include "app/run/measurement.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "analysis/metrics/agreement.h"
#include "analysis/metrics/routing.h"
#include "analysis/metrics/sparsity.h"
#include "app/run/results.h"
#include "plots/kinds/saved_arrays.h"
#include "sim/train/measured_gradients.h"

namespace moelab {
namespace {

/// Returns a layer's router arrays that are kept at every step. `parameters` holds the router's parameters
/// only (router_size()), because the parameters of the whole network may exceed the memory.
template <class Real>
std::vector<NamedArray<Real>> kept_arrays(const Mixture<Real>& mixture, const Real* parameters) {
  std::vector<NamedArray<Real>> arrays = mixture.router_arrays(parameters);
  std::erase_if(arrays, [](const NamedArray<Real>& array) {
    return array.name != "router_weight" && array.name != "router_bias";
  });
  return arrays;
}

}  // namespace

void RoutingSteps::add(std::int64_t step, const Matrix& mean_routing, const std::vector<std::int64_t>& loads,
                       Eigen::Index rows) {
  steps_.push_back(step);
  clusters_ = mean_routing.rows();
  experts_ = mean_routing.cols();
  routing_.insert(routing_.end(), mean_routing.data(), mean_routing.data() + mean_routing.size());
  for (const std::int64_t load : loads)
    loads_.push_back(static_cast<double>(load) / static_cast<double>(rows));
}

template <class Real>
void RoutingSteps::add_router(const Network<Real>& network, const AlignedVector<Real>& parameters,
                              int layer) {
  const PlacedBlock<Real>& placed = network.placed_mixture(layer);
  for (const NamedArray<Real>& array : kept_arrays(*placed.mixture, parameters.data() + placed.parameters)) {
    SavedArray& kept = router_[array.name];
    kept.shape = array.shape;
    kept.values.insert(kept.values.end(), array.values.begin(), array.values.end());
  }
}

std::vector<SavedArray> RoutingSteps::take_arrays(const std::string& ending) {
  const auto count = static_cast<std::int64_t>(steps_.size());
  std::vector<SavedArray> arrays;
  arrays.push_back({"recorded_steps" + ending, {count}, {}, std::move(steps_)});
  arrays.push_back({"cluster_routing_steps" + ending, {count, clusters_, experts_}, std::move(routing_), {}});
  arrays.push_back({"expert_load_steps" + ending, {count, experts_}, std::move(loads_), {}});
  for (auto& [name, kept] : router_) {
    kept.shape.insert(kept.shape.begin(), count);
    arrays.push_back({name + "_steps" + ending, std::move(kept.shape), std::move(kept.values), {}});
  }
  return arrays;
}

template void RoutingSteps::add_router(const Network<float>&, const AlignedVector<float>&, int);
template void RoutingSteps::add_router(const Network<double>&, const AlignedVector<double>&, int);

namespace {

constexpr const char *kInputs = "test_inputs", *kProbabilities = "test_probs";

/// The routing of one layer of a cell.
struct SavedRouting {
  RoutingPlace place;
  int seed = 0;
  std::string layer;
  std::string rows;  ///< checksum of the test inputs
  std::vector<int> likeliest;
  Vector mean;
};

std::vector<SavedRouting> saved_routings(const NamedRun& run) {
  std::vector<SavedRouting> routings;
  for (const ResultRow& row : run.results.table.rows) {
    const auto saved = run.results.arrays.find(row.cell);
    if (row.is_copy || row.state != "done" || saved == run.results.arrays.end() ||
        !saved->second.contains(kInputs))
      continue;
    for (const auto& [name, checksum] : saved->second) {
      if (!name.starts_with(kProbabilities)) continue;
      const Matrix probabilities = read_rows(saved_file(run.results, run.directory, row.cell, name)).values();
      routings.push_back({RoutingPlace{run.name, row.arm, row.point}, row.seed,
                          name.substr(std::string(kProbabilities).size()), saved->second.at(kInputs),
                          top1_assignment(probabilities), probabilities.colwise().mean().transpose()});
    }
  }
  return routings;
}

/// Returns whether two routings are a pair of seeds, or nothing if they are not a pair.
std::optional<bool> pair_of_seeds(const SavedRouting& left, const SavedRouting& right) {
  const bool same_rows = left.rows == right.rows && left.likeliest.size() == right.likeliest.size();
  if (!same_rows || left.layer != right.layer) return std::nullopt;
  const int differences = (left.place.run != right.place.run) + (left.place.arm != right.place.arm) +
                          (left.place.point != right.place.point) + (left.seed != right.seed);
  if (differences != 1) return std::nullopt;
  return left.seed != right.seed;
}

}  // namespace

std::vector<RoutingAgreement> routing_agreements(const std::vector<NamedRun>& runs) {
  std::vector<SavedRouting> all;
  for (const NamedRun& run : runs) {
    for (SavedRouting& routing : saved_routings(run)) all.push_back(std::move(routing));
  }
  std::vector<RoutingAgreement> agreements;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      const SavedRouting &left = all[i], &right = all[j];
      const std::optional<bool> of_seeds = pair_of_seeds(left, right);
      if (!of_seeds) continue;
      auto own = std::find_if(agreements.begin(), agreements.end(), [&](const RoutingAgreement& known) {
        return known.left == left.place && known.right == right.place && known.layer == left.layer &&
               known.of_seeds == *of_seeds;
      });
      if (own == agreements.end())
        own = agreements.insert(own, {left.place, right.place, left.layer, *of_seeds, {}, {}, {}});
      const ContingencyTable both = routing_table(left.likeliest, right.likeliest);
      own->ari.push_back(adjusted_rand_index(both).value());
      own->nmi.push_back(normalized_mutual_information(both).value());
      // If one model has more experts, its additional experts have share 0 in the other model.
      const Eigen::Index experts = std::max(left.mean.size(), right.mean.size());
      Vector p = Vector::Zero(experts), q = Vector::Zero(experts);
      p.head(left.mean.size()) = left.mean;
      q.head(right.mean.size()) = right.mean;
      own->divergence.push_back(jensen_shannon_divergence(p, q));
    }
  }
  return agreements;
}

namespace {

/// Whether a selected group checks every prediction, at every record or at the last one alone.
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
      subject_(cell.experiment, data, cell.seeds, train != nullptr, &problem),
      router_columns_(router_dim(cell.experiment.model, problem.layout())) {
  const RowSetting of_rows{[&](std::string_view metric) { return !unmet_need(metric, subject_); }, &subject_};
  const MeterSetting<Real> of_model{cell.experiment, problem, data_, cell.seeds, subject_};
  for (const MetricOptions& group : cell.metrics) {
    const MetricGroup& entry = group.entry();
    Meters& meters = group.records == MetricOptions::Records::every ? every_ : last_;
    if (entry.make_row_meter) meters.of_rows.push_back(entry.make_row_meter(group.options(), of_rows));
    if (const auto make = entry.make_model_meter.template of<Real>())
      meters.of_model.push_back(make(group.options(), of_model));
  }
  keeps_steps_ = train != nullptr && cell.saved.contains("routing_steps");
}

template <class Real>
MeasuredValues Measurement<Real>::measure(const Moment<Real>& moment) {
  not_finite_.clear();
  try {
    check_finite<Real>(moment.model.parameters, "parameters");
    data_.check_inputs();
    TestPass<Real> pass(moment, data_);
    const TestMoment<Real> on_test{moment, pass};
    // A model's result must not depend on the selection of metric groups.
    if (!predicts(cell_)) check_predictions(on_test);
    MeasuredValues values = measure_by(every_, on_test, keeps_steps_);
    measured_.insert(moment.step);
    return values;
  } catch (const NotFinite& found) {
    not_finite_ = found.what();
    for (const std::unique_ptr<RowMeter>& meter : every_.of_rows) meter->forget();
    return {};
  }
}

template <class Real>
MeasuredValues Measurement<Real>::measure_last(const Moment<Real>& moment) {
  if (!not_finite_.empty() || (last_.of_rows.empty() && last_.of_model.empty())) return {};
  try {
    TestPass<Real> pass(moment, data_);
    return measure_by(last_, {moment, pass}, false);
  } catch (const NotFinite& found) {
    not_finite_ = found.what();
    return {};
  }
}

template <class Real>
void Measurement<Real>::after_round(const Moment<Real>& moment, const FinishedRound& round) {
  if (!not_finite_.empty()) return;
  try {
    TestPass<Real> pass(moment, data_);
    for (const Meters* meters : {&every_, &last_})
      for (const std::unique_ptr<ModelMeter<Real>>& meter : meters->of_model)
        meter->after_round({moment, pass}, round);
  } catch (const NotFinite& found) {
    not_finite_ = found.what();
  }
}

template <class Real>
MeasuredValues Measurement<Real>::complete(std::int64_t step) {
  MeasuredValues values;
  if (!not_finite_.empty() || !measured_.contains(step)) return values;
  for (int layer = 0; layer < layers_; ++layer) {
    MetricValues of_layer;
    for (const std::unique_ptr<RowMeter>& meter : every_.of_rows) meter->complete(step, layer, of_layer);
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
MeasuredValues Measurement<Real>::measure_by(const Meters& meters, const TestMoment<Real>& on_test,
                                             bool keeps_steps) {
  const Network<Real>& network = *on_test.model.network;
  MeasuredValues values;
  std::unique_ptr<ModelRows<Real>> before, here;
  layers_ = network.has_router() ? network.layers() : 0;
  for (int layer = 0; layer < layers_; ++layer) {
    before = std::move(here);
    here =
        std::make_unique<ModelRows<Real>>(on_test, data_, cell_.seeds, router_columns_, layer, before.get());
    LayerMetrics of_layer;
    for (const std::unique_ptr<RowMeter>& meter : meters.of_rows) meter->measure(*here, of_layer);
    for (const auto& [name, of_rows] : of_layer.of_rows) {
      if (!of_rows.empty())
        of_layer.values[name] =
            std::accumulate(of_rows.begin(), of_rows.end(), 0.0) / static_cast<double>(of_rows.size());
    }
    for (const std::unique_ptr<ModelMeter<Real>>& meter : meters.of_model)
      meter->measure_layer(on_test, layer, of_layer.values);
    add_layer(layer, of_layer.values, values);
    if (keeps_steps) keep_step(on_test, *here);
  }
  MetricValues of_model;
  for (const std::unique_ptr<RowMeter>& meter : meters.of_rows) meter->measure_stack(layers_, of_model);
  for (const std::unique_ptr<ModelMeter<Real>>& meter : meters.of_model) meter->measure(on_test, of_model);
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
void Measurement<Real>::keep_step(const Moment<Real>& moment, ModelRows<Real>& rows) {
  const auto place = static_cast<std::size_t>(rows.layer());
  if (steps_.size() <= place) steps_.resize(place + 1);
  const ClusterRouting routing(rows.probabilities(), data_.clusters().front().labels.front());
  steps_[place].add(moment.step, routing.mean_routing(), rows.loads(), data_.rows());
  steps_[place].add_router(*moment.model.network, moment.model.parameters, rows.layer());
}

template <class Real>
std::vector<SavedArray> Measurement<Real>::take_arrays(const Moment<Real>& moment) {
  std::vector<SavedArray> arrays;
  if (cell_.saved.contains("weights")) {
    for (const NamedArray<Real>& array : moelab::arrays(moment.model))
      arrays.push_back({array.name, array.shape, {array.values.begin(), array.values.end()}, {}});
  }
  if (cell_.saved.contains("routing")) save_routing(moment, arrays);
  for (std::size_t layer = 0; layer < steps_.size(); ++layer) {
    const std::string ending = moment.model.network->layer_ending(static_cast<int>(layer));
    for (SavedArray& array : steps_[layer].take_arrays(ending)) arrays.push_back(std::move(array));
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

template <class Real>
Evaluation<Real>::Evaluation(std::string name, const DataOptions& data, const CellOptions& cell,
                             const Problem& problem, const Dataset* train)
    : name_(std::move(name)),
      data_(data),
      cell_(cell),
      problem_(problem),
      train_(train),
      test_(draw_set(problem, cell.seeds, Purpose::test_data, data.test_samples)),
      looked_at_(test_) {
  contaminate(data.contamination, problem.layout(), cell.seeds, looked_at_.x, looked_at_.y);
  if (const TokenMasks masks = masks_of(cell.experiment.loss, problem.layout()))
    mask_tokens(masks, cell.seeds, Purpose::test_data, problem.layout().tokens, looked_at_);
  if (!is_attack()) make_measurement();
}

template <class Real>
void Evaluation<Real>::attack(const Moment<Real>& moment) {
  looked_at_.x = attacked_inputs(data_.contamination, moment.model, moment.objective.task, test_, cell_.seeds,
                                 moment.workspace);
  make_measurement();
}

template <class Real>
void Evaluation<Real>::measure(const Moment<Real>& moment, MetricValues& values) {
  if (is_attack()) attack(moment);
  at_last_record_ = measurement_->measure(moment);
  add(at_last_record_, values);
}

template <class Real>
void Evaluation<Real>::measure_last(const Moment<Real>& moment, MetricValues& values) {
  add(measurement_->measure_last(moment), values);
  if (not_finite().empty()) return;
  for (const auto& [key, value] : at_last_record_) values.erase(text_of(key));
}

template <class Real>
void Evaluation<Real>::complete(std::vector<TraceEntry>& trace) {
  if (is_attack()) return;
  for (TraceEntry& entry : trace) add(measurement_->complete(entry.step), entry.metrics);
}

template <class Real>
void Evaluation<Real>::add(const MeasuredValues& measured, MetricValues& values) const {
  for (const auto& [key, value] : measured) values[text_of(key)] = value;
}

template <class Real>
std::string Evaluation<Real>::text_of(MetricKey key) const {
  key.evaluation = name_;
  return key.text();
}

template class Evaluation<float>;
template class Evaluation<double>;

}  // namespace moelab
