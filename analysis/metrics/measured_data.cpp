#include "analysis/metrics/measured_data.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "analysis/metrics/metric_groups.h"
#include "analysis/metrics/task.h"

namespace moelab {
namespace {

template <class Real>
std::vector<Real> cast(const Matrix& values) {
  std::vector<Real> result(static_cast<std::size_t>(values.size()));
  Eigen::Map<MatrixOf<Real>>(result.data(), values.rows(), values.cols()) = values.cast<Real>();
  return result;
}

template <class Real>
std::vector<Real> outputs_on(const Moment<Real>& moment, const Gating<Real>& gating,
                             const Samples<Real>& inputs, const Matrix& targets) {
  std::vector<Real> outputs(static_cast<std::size_t>(targets.size()));
  predict(moment.model, gating, inputs, static_cast<int>(targets.rows()), moment.workspace, outputs.data());
  return outputs;
}

template <class Real>
Matrix finite_outputs_on(const Moment<Real>& moment, const Gating<Real>& gating, const Samples<Real>& inputs,
                         const Matrix& targets, const char* name) {
  const std::vector<Real> outputs = outputs_on(moment, gating, inputs, targets);
  check_finite<Real>(outputs, name);
  return widen(outputs, targets.rows(), targets.cols());
}

}  // namespace

int most_measured_train_samples(const DataOptions& data) {
  const GeneratorKind& generator = data.entry();
  if (!generator.token_ids) return kMeasuredTrainSamples;
  return std::max(1, kMeasuredTrainSamples / generator.tokens(data.options()));
}

double mean_loss(const std::vector<double>& token_losses) {
  return Eigen::Map<const Vector>(token_losses.data(), static_cast<Eigen::Index>(token_losses.size())).mean();
}

template <class Real>
MeasuredData<Real>::MeasuredData(const Layout& layout, const LossOptions& loss, const Dataset& train,
                                 const Dataset& test)
    : layout_(layout),
      train_(train),
      test_(test),
      clusters_(cluster_labels(layout, test.cluster)),
      cross_entropy_(task_loss_kind(loss.task).needs_classes),
      train_inputs_(cast<Real>(train.x)),
      test_inputs_(cast<Real>(test.x)) {}

template <class Real>
Matrix MeasuredData<Real>::train_outputs(const Moment<Real>& moment, const Gating<Real>& gating) const {
  return finite_outputs_on(moment, gating, train_inputs(), train_.y, "outputs on the training data");
}

template <class Real>
Matrix MeasuredData<Real>::test_outputs(const Moment<Real>& moment, const Gating<Real>& gating) const {
  return finite_outputs_on(moment, gating, test_inputs(), test_.y, "outputs on the test data");
}

template <class Real>
std::optional<double> MeasuredData<Real>::train_nmse(const Moment<Real>& moment,
                                                     const Gating<Real>& gating) const {
  const Matrix outputs =
      widen(outputs_on(moment, gating, train_inputs(), train_.y), train_.y.rows(), train_.y.cols());
  return normalised_mean_squared_error(target_rows(outputs), target_rows(train_.y));
}

template <class Real>
void MeasuredData<Real>::check_inputs() const {
  check_finite<Real>(train_inputs_, "inputs of the training data");
  check_finite<Real>(test_inputs_, "inputs of the test data");
}

template <class Real>
double MeasuredData<Real>::task_loss(const Matrix& outputs, const Matrix& targets) const {
  const MatrixView f = target_rows(outputs), y = target_rows(targets);
  const double mean = cross_entropy_ ? mean_cross_entropy(f, y) : mean_squared_error(f, y);
  check_finite<double>({&mean, 1}, "losses");
  return mean;
}

template <class Real>
double MeasuredData<Real>::mean_token_loss(const Moment<Real>& moment, const Gating<Real>& gating,
                                           const std::vector<Real>& inputs, const Dataset& data) const {
  const std::vector<double> losses =
      token_losses(moment.model, gating, samples_of(inputs, data), data.y.data(),
                   static_cast<int>(data.y.rows()), moment.workspace);
  check_finite<double>(losses, "losses");
  return mean_loss(losses);
}

template <class Real>
double MeasuredData<Real>::train_loss(const Moment<Real>& moment, const Gating<Real>& gating) const {
  if (has_ids()) return mean_token_loss(moment, gating, train_inputs_, train_);
  return task_loss(train_outputs(moment, gating), train_.y);
}

template <class Real>
double MeasuredData<Real>::test_loss(const Moment<Real>& moment, const Gating<Real>& gating) const {
  if (has_ids()) return mean_token_loss(moment, gating, test_inputs_, test_);
  return task_loss(test_outputs(moment, gating), test_.y);
}

template <class Real>
Matrix MeasuredData<Real>::test_probabilities(const Moment<Real>& moment, int layer,
                                              std::span<const int> permutation) const {
  const int experts = moment.model.network->experts();
  std::vector<Real> probabilities(static_cast<std::size_t>(rows()) * static_cast<std::size_t>(experts));
  route(moment.model, layer, test_inputs(), samples(), moment.workspace, probabilities.data(), permutation);
  if (permutation.empty()) check_finite<Real>(probabilities, "probabilities on the test data");
  return widen(probabilities, rows(), experts);
}

template class MeasuredData<float>;
template class MeasuredData<double>;

template <class Real>
const EvaluatedSamples<Real>& TestPass<Real>::evaluated(bool with_routing) {
  if (!evaluated_ || (with_routing && evaluated_->layers.empty())) {
    const double* const ids = data_.has_ids() ? data_.test().y.data() : nullptr;
    EvaluatedSamples<Real> made =
        evaluate(moment_.model, data_.test_inputs(), ids, data_.samples(), moment_.workspace, with_routing);
    // Once: every metric of a layer asks for its routing anew.
    for (const RoutedRows& routed : made.layers)
      check_finite<double>(routed.probabilities, "probabilities on the test data");
    evaluated_ = std::move(made);
  }
  return *evaluated_;
}

template <class Real>
const RoutedRows& TestPass<Real>::routed(int layer) {
  return evaluated(true).layers.at(static_cast<std::size_t>(layer));
}

template <class Real>
Matrix TestPass<Real>::outputs() {
  const Matrix& targets = data_.test().y;
  const std::vector<Real>& outputs = evaluated().outputs;
  check_finite<Real>(outputs, "outputs on the test data");
  return widen(outputs, targets.rows(), targets.cols());
}

template <class Real>
const std::vector<double>& TestPass<Real>::token_losses() {
  check_finite<double>(evaluated().token_losses, "losses");
  return evaluated().token_losses;
}

template <class Real>
double TestPass<Real>::loss() {
  return data_.has_ids() ? mean_loss(token_losses()) : data_.task_loss(outputs(), data_.test().y);
}

template class TestPass<float>;
template class TestPass<double>;

template <class Real>
std::vector<std::int64_t> LayerRouting<Real>::loads() {
  const Network<Real>& network = *moment_.model.network;
  if (network.eval_gating().activates_all()) {
    return expert_loads(moment_.model, layer_, network.top1_gating(), data_.test_inputs(), data_.samples(),
                        moment_.workspace);
  }
  const std::vector<unsigned char>& selected = routed().selected;
  const std::size_t experts = static_cast<std::size_t>(network.experts());
  std::vector<std::int64_t> loads(experts, 0);
  for (std::size_t i = 0; i < selected.size(); ++i) loads[i % experts] += selected[i];
  return loads;
}

template class LayerRouting<float>;
template class LayerRouting<double>;

namespace {

/// Of swept paths.
struct Label {
  const char* name;
  const char* axis;
  const char* legend;
};

constexpr std::array kPathLabels = {
    Label{"step", "training step", "step"},
    Label{"data.train_samples", "training samples", "samples"},
    Label{"data.clusters", "clusters", "clusters"},
    Label{"data.dim", "input width", "width"},
    Label{"data.spurious_dims", "spurious dimensions", "spurious dimensions"},
    Label{"data.mean_std", "standard deviation of the means", "mean_std"},
    Label{"data.noise_std", "noise standard deviation", "noise_std"},
    Label{"data.separation", "cluster separation c", "separation"},
    Label{"model.experts", "experts", "experts"},
    Label{"model.layers", "layers", "layers"},
    Label{"model.router.init_scale", "initial scale of the router", "router scale"},
    Label{"model.router.kind", "router", "router"},
    Label{"train.batch_size", "batch size", "batch"},
    Label{"train.steps", "training steps", "steps"},
    Label{"train.weight_decay", "weight decay", "weight decay"},
    Label{"train.lr.router", "learning rate of the router", "router rate"},
    Label{"train.lr.expert", "learning rate of the experts", "expert rate"},
};

const Label* path_label(const std::string& name) {
  const auto* const known = std::find_if(kPathLabels.begin(), kPathLabels.end(),
                                         [&](const Label& label) { return label.name == name; });
  return known == kPathLabels.end() ? nullptr : known;
}

/// A metric's label, and what else its key says.
std::string metric_label(const std::string& name, std::string MetricGroup::Metric::*form) {
  const MetricGroup::Metric* const metric = find_metric(name);
  if (!metric || (metric->*form).empty()) return name;
  const MetricKey key = MetricKey::parse(name);
  std::string label = metric->*form;
  if (key.layer) label += ", layer " + std::to_string(*key.layer);
  for (const std::string& part : {key.variant, key.evaluation}) {
    if (!part.empty()) label += ", " + part;
  }
  return label;
}

}  // namespace

std::string axis_label(const std::string& name) {
  const Label* const path = path_label(name);
  return path ? path->axis : metric_label(name, &MetricGroup::Metric::axis_label);
}
std::string legend_label(const std::string& name) {
  const Label* const path = path_label(name);
  return path ? path->legend : metric_label(name, &MetricGroup::Metric::legend_label);
}

namespace {

/// The place of each sample's set of labels in the order of first appearance.
std::vector<int> labels_of_sets(const std::vector<int>& labels, std::size_t parts) {
  std::map<std::vector<int>, int> place;
  std::vector<int> sets;
  for (std::size_t at = 0; at < labels.size(); at += parts) {
    std::vector<int> set(labels.begin() + static_cast<std::ptrdiff_t>(at),
                         labels.begin() + static_cast<std::ptrdiff_t>(at + parts));
    std::sort(set.begin(), set.end());
    sets.push_back(place.try_emplace(std::move(set), static_cast<int>(place.size())).first->second);
  }
  return sets;
}

}  // namespace

std::vector<ClusterLabels> cluster_labels(const Layout& layout, const std::vector<int>& labels) {
  if (layout.sequences || layout.labels == 1) return {{"", {labels}}};
  const std::size_t parts = static_cast<std::size_t>(layout.labels);
  const std::size_t rows = labels.size() / parts;
  ClusterLabels each{"_per_atom", {}};
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<int>& column = each.labels.emplace_back();
    for (std::size_t row = 0; row < rows; ++row) column.push_back(labels[row * parts + part]);
  }
  return {{"", {labels_of_sets(labels, parts)}}, std::move(each), {"_overall", {std::vector<int>(rows, 0)}}};
}

}  // namespace moelab
