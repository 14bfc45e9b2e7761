#include "sim/train/measured_gradients.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/base/kernels/kernels.h"
#include "sim/data/contamination.h"

namespace moelab {

template <class Real>
GradientError population_gradient_error(const Model<Real>& model, const Objective<Real>& objective,
                                        const Problem& problem, const TrainOptions& options,
                                        const Seeds& seeds, std::uint64_t moment,
                                        Workspace<Real>& workspace) {
  const std::size_t size = model.parameters.size();
  std::vector<double> mean(size, 0.0), squares(size, 0.0);  // Welford's recursion, entry by entry
  for (int rule = 0; rule < kGradientRules; ++rule) {
    // Training uses stream 0.
    const std::uint64_t stream = 1 + moment * kGradientRules + static_cast<std::uint64_t>(rule);
    PopulationBatches<Real> batches(problem, options, seeds, stream, objective.masks);
    const int points = batches.advance();
    loss_and_gradient(model, objective, batches.samples(), batches.y(), points, workspace);
    for (const ParameterGroup& group : model.network->groups()) {
      for (std::size_t j = group.begin; j < group.end && group.trainable; ++j) {
        const double value = static_cast<double>(workspace.gradient[j]);
        const double step = value - mean[j];
        mean[j] += step / (rule + 1);
        squares[j] += step * (value - mean[j]);
      }
    }
  }
  GradientError error;
  for (std::size_t j = 0; j < size; ++j) {
    error.norm += mean[j] * mean[j];
    error.standard_error += squares[j] / (kGradientRules - 1);
  }
  error.norm = std::sqrt(error.norm);
  error.standard_error = std::sqrt(error.standard_error);
  return error;
}

template GradientError population_gradient_error(const Model<float>&, const Objective<float>&, const Problem&,
                                                 const TrainOptions&, const Seeds&, std::uint64_t,
                                                 Workspace<float>&);
template GradientError population_gradient_error(const Model<double>&, const Objective<double>&,
                                                 const Problem&, const TrainOptions&, const Seeds&,
                                                 std::uint64_t, Workspace<double>&);

namespace {

/// The loss of a model on a block of samples, in the precision of the model.
template <class Real>
class LossOfModel final : public AttackedLoss<Real> {
 public:
  LossOfModel(const Model<Real>& model, const TaskLoss<Real>& loss, Workspace<Real>& workspace)
      : model_(model), loss_(loss), workspace_(workspace), layout_(model.network->layout()) {}

  void set_targets(const Matrix& y, const int* labels) {
    labels_ = labels;
    samples_ = static_cast<int>(y.rows());
    targets_.assign(y.data(), y.data() + y.size());
  }

  void gradient(const std::vector<Real>& x, std::vector<Real>& gradient) override {
    const std::size_t width = size(layout_.input_dim);
    const std::size_t stride = size(kernels::padded(layout_.input_dim));
    padded_.resize(entries(samples_, layout_.tokens) * stride);
    input_gradient(model_, loss_, {x.data(), labels_}, targets_.data(), samples_, workspace_, padded_.data());
    gradient.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) gradient[i] = padded_[i / width * stride + i % width];
  }

  void add_losses(const std::vector<Real>& x, double factor, std::vector<double>& sums) override {
    outputs_.resize(targets_.size());
    predict(model_, model_.network->train_gating(), {x.data(), labels_}, samples_, workspace_,
            outputs_.data());
    const int output_dim = layout_.output_dim, targets_of_sample = layout_.target_dim() / output_dim;
    const std::size_t stride = size(kernels::padded(output_dim));
    padded_.resize(2 * size(targets_of_sample) * stride);
    Real* const gradient = padded_.data() + padded_.size() / 2;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::size_t first = i * size(layout_.target_dim());
      for (std::size_t row = 0; row < size(targets_of_sample); ++row) {
        std::copy_n(outputs_.data() + first + row * size(output_dim), output_dim,
                    padded_.data() + row * stride);
      }
      sums[i] += factor * loss_.value_and_gradient(padded_.data(), targets_.data() + first, targets_of_sample,
                                                   output_dim, gradient);
    }
  }

 private:
  const Model<Real>& model_;
  const TaskLoss<Real>& loss_;
  Workspace<Real>& workspace_;
  const Layout& layout_;
  int samples_ = 0;
  const int* labels_ = nullptr;
  std::vector<Real> targets_, outputs_;
  AlignedVector<Real> padded_;
};

/// The true clusters of the rows of a sample and of later samples; null if rows have none.
const int* labels_of_rows(const Dataset& data, const Layout& layout, Eigen::Index first) {
  const Eigen::Index rows = data.x.rows() * layout.tokens;
  return static_cast<Eigen::Index>(data.cluster.size()) == rows ? data.cluster.data() + first * layout.tokens
                                                                : nullptr;
}

}  // namespace

template <class Real>
Matrix attacked_inputs(const ContaminationOptions& contamination, const Model<Real>& model,
                       const TaskLoss<Real>& loss, const Dataset& clean, const Seeds& seeds,
                       Workspace<Real>& workspace) {
  if (!contamination.entry().is_attack()) {
    throw std::invalid_argument("'" + contamination.chosen() + "' is no attack on a model");
  }
  LossOfModel<Real> of_model(model, loss, workspace);
  Engine engine = seeds.stream(Purpose::evaluation, kAttacks);
  Matrix attacked = clean.x;
  const Layout& layout = model.network->layout();
  const Eigen::Index most = model.network->block_samples();
  std::vector<Real> block;
  for (Eigen::Index start = 0; start < clean.x.rows(); start += most) {
    const Eigen::Index count = std::min(most, clean.x.rows() - start);
    const Matrix x = clean.x.middleRows(start, count);
    of_model.set_targets(clean.y.middleRows(start, count), labels_of_rows(clean, layout, start));
    block.assign(x.data(), x.data() + x.size());
    contamination.entry().attack.of<Real>()(contamination.options(), of_model, engine,
                                            static_cast<int>(count), block);
    attacked.middleRows(start, count) =
        Eigen::Map<const MatrixOf<Real>>(block.data(), count, x.cols()).template cast<double>();
  }
  return attacked;
}

template Matrix attacked_inputs(const ContaminationOptions&, const Model<float>&, const TaskLoss<float>&,
                                const Dataset&, const Seeds&, Workspace<float>&);
template Matrix attacked_inputs(const ContaminationOptions&, const Model<double>&, const TaskLoss<double>&,
                                const Dataset&, const Seeds&, Workspace<double>&);

}  // namespace moelab
