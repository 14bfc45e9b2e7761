#include "analysis/metrics/measured_data.h"

#include <algorithm>
#include <utility>

#include "analysis/metrics/task.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

template <class Real>
std::vector<Real> cast(const Matrix& values) {
  std::vector<Real> result(size(values.size()));
  Eigen::Map<MatrixOf<Real>>(result.data(), values.rows(), values.cols()) = values.cast<Real>();
  return result;
}

template <class Real>
std::vector<Real> outputs_on(const Moment<Real>& moment, const Gating<Real>& gating,
                             const Samples<Real>& inputs, const Matrix& targets) {
  std::vector<Real> outputs(size(targets.size()));
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
      of_softmax_(task_loss_kind(loss.task).of_softmax),
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
  const double mean = of_softmax_      ? mean_cross_entropy(softmax(f), y)
                      : cross_entropy_ ? mean_cross_entropy(f, y)
                                       : mean_squared_error(f, y);
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
  std::vector<Real> probabilities(size(rows()) * size(experts));
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
  return evaluated(true).layers.at(size(layer));
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
std::vector<std::int64_t> ModelRows<Real>::loads() {
  if (network().eval_gating().activates_all()) {
    return expert_loads(moment_.model, layer_, network().top1_gating(), data_.test_inputs(), data_.samples(),
                        moment_.workspace);
  }
  const std::span<const unsigned char> is_selected = selected();
  const std::size_t count = size(experts());
  std::vector<std::int64_t> loads(count, 0);
  for (std::size_t i = 0; i < is_selected.size(); ++i) loads[i % count] += is_selected[i];
  return loads;
}

template <class Real>
std::vector<int> ModelRows<Real>::token_ids() {
  if (!data_.has_ids()) return {};
  const Matrix& ids = data_.test().x;
  return {ids.data(), ids.data() + ids.size()};
}

template <class Real>
std::vector<std::int64_t> ModelRows<Real>::compared_rows(std::int64_t most) {
  const std::span<const int> experts_of_rows = serving();
  std::vector<std::int64_t> compared;
  for (std::size_t row = 0; row < experts_of_rows.size() && std::ssize(compared) < most; ++row) {
    if (experts_of_rows[row] >= 0) compared.push_back(static_cast<std::int64_t>(row));
  }
  return compared;
}

template <class Real>
void ModelRows<Real>::visit_points(Space space, const PointBlock& visit) {
  if (space == Space::inputs) return visit(0, data_.test_rows());
  if (block_inputs_.size() == 0) block_inputs_ = read_block_inputs();
  visit(0, block_inputs_);
}

template <class Real>
Matrix ModelRows<Real>::read_block_inputs() const {
  const std::size_t block = size(&network().placed_mixture(layer_) - network().blocks().data());
  Matrix all;
  visit_blocks<Real>(moment_.model, network().eval_gating(), data_.test_inputs(), data_.samples(),
                     moment_.workspace, [&](int first_row) {
                       const View<const Real>& inputs = moment_.workspace.inputs[block];
                       if (first_row == 0) all.resize(data_.rows(), inputs.columns);
                       for (int row = 0; row < inputs.rows; ++row) {
                         for (int q = 0; q < inputs.columns; ++q)
                           all(first_row + row, q) = static_cast<double>(inputs(row, q));
                       }
                     });
  return all;
}

template <class Real>
Matrix ModelRows<Real>::router_weight() {
  const std::string name = "router_weight" + network().layer_ending(layer_);
  for (const NamedArray<Real>& array : network().arrays(moment_.model.parameters)) {
    if (array.name == name) return widen(array.values, array.shape[0], array.shape[1]);
  }
  return {};
}

template <class Real>
MatrixView ModelRows<Real>::feature_weights() {
  const std::string name = "router_feature_weights" + network().layer_ending(layer_);
  const double* place = moment_.model.state.values.data();
  for (const StateArray& array : network().state_arrays()) {
    if (array.name == name) return {place, array.shape[0], array.shape[1]};
    place += array.size();
  }
  return {nullptr, 0, 0};
}

template <class Real>
Eigen::Ref<const Matrix> ModelRows<Real>::shuffled(const RowBlock& /*block*/, int s) {
  Engine engine = seeds_.stream(Purpose::shuffles, static_cast<std::uint64_t>(s));
  shuffled_ = data_.test_probabilities(moment_, layer_, draw_permutation(engine, router_columns_));
  return shuffled_;
}

template <class Real>
void ModelRows<Real>::visit_expert_outputs(const PointBlock& visit) {
  const PlacedBlock<Real>& placed = network().placed_mixture(layer_);
  MixtureScratch<Real>& scratch = network().mixture_scratch(layer_, moment_.workspace);
  visit_blocks<Real>(moment_.model, network().soft_gating(), data_.test_inputs(), data_.samples(),
                     moment_.workspace, [&](int first_row) {
                       const BlockValues<Real> own =
                           network().values(placed, moment_.model.parameters, moment_.model.state);
                       const Eigen::Map<const MatrixOf<Real>> outputs(
                           placed.mixture->pair_outputs(own, scratch), scratch.routing().rows,
                           experts() * placed.mixture->output_stride());
                       visit(first_row, outputs.template cast<double>());
                     });
}

template <class Real>
Matrix ModelRows<Real>::error_gradients() {
  const Matrix outputs = data_.test_outputs(moment_, network().train_gating());
  const MatrixView f = data_.target_rows(outputs), y = data_.target_rows(data_.test().y);
  if (!data_.of_softmax()) return data_.cross_entropy() ? cross_entropy_gradients(f, y) : Matrix(2 * (f - y));
  const Matrix p = softmax(f), of_p = cross_entropy_gradients(p, y);
  const Vector means = p.cwiseProduct(of_p).rowwise().sum();
  return p.cwiseProduct(of_p.colwise() - means);
}

template class ModelRows<float>;
template class ModelRows<double>;

}  // namespace moelab
