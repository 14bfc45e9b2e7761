#include "analysis/theory/dikkala2023/lemma1.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/theory/extremes.h"
#include "sim/model/expert/constant_expert.h"
#include "sim/model/router/squared_distance_router.h"
#include "sim/train/trainer.h"

namespace moelab {
namespace {

constexpr const char* kCentreId = "dikkala2023.lemma1";
constexpr int kCentreInputs = 400, kCentreDim = 8, kCentres = 10;
constexpr int kRuns = 20, kCentreSteps = 20;
constexpr double kRate = 0.5;

/// ‖x_i − u_j‖² (n, k).
Matrix squared_distances(const Matrix& inputs, const Matrix& centres) {
  Matrix distances(inputs.rows(), centres.rows());
  for (Eigen::Index j = 0; j < centres.rows(); ++j)
    distances.col(j) = (inputs.rowwise() - centres.row(j)).rowwise().squaredNorm();
  return distances;
}

std::vector<Eigen::Index> nearest_centres(const Matrix& inputs, const Matrix& centres) {
  const Matrix distances = squared_distances(inputs, centres);
  std::vector<Eigen::Index> nearest(static_cast<std::size_t>(inputs.rows()));
  for (Eigen::Index i = 0; i < inputs.rows(); ++i)
    distances.row(i).minCoeff(&nearest[static_cast<std::size_t>(i)]);
  return nearest;
}

/// The smallest gap between the nearest and the second nearest centre. At a tie the argmin is not defined.
double smallest_margin(const Matrix& inputs, const Matrix& centres) {
  const Matrix distances = squared_distances(inputs, centres);
  double margin = std::numeric_limits<double>::infinity();
  for (Eigen::Index i = 0; i < inputs.rows(); ++i) {
    std::vector<double> sorted(distances.row(i).begin(), distances.row(i).end());
    std::nth_element(sorted.begin(), sorted.begin() + 1, sorted.end());
    margin = std::min(margin, std::sqrt(sorted[1]) - std::sqrt(sorted[0]));
  }
  return margin;
}

}  // namespace

Matrix expert_gradient_step(const Matrix& inputs, const Matrix& centres, double rate) {
  const std::vector<Eigen::Index> nearest = nearest_centres(inputs, centres);
  Matrix gates = Matrix::Zero(inputs.rows(), centres.rows());
  for (Eigen::Index i = 0; i < inputs.rows(); ++i) gates(i, nearest[static_cast<std::size_t>(i)]) = 1;
  const Matrix residual = gates * centres - inputs;
  return centres - rate * 2 / static_cast<double>(inputs.rows()) * (gates.transpose() * residual);
}

Matrix trained_step(const Matrix& inputs, const Matrix& centres, double rate) {
  const int dim = static_cast<int>(inputs.cols());
  ModelOptions options;
  options.experts = static_cast<int>(centres.rows());
  options.router = SquaredDistanceRouterOptions{.trainable = false};
  options.expert = ConstantExpertOptions{};
  options.gating.train = Top1GatingOptions{};
  Model<double> model(options, {.input_dim = dim, .output_dim = dim}, Start{Seeds{}});
  std::vector<NamedArray<double>> values = arrays(model);
  for (NamedArray<double>& array : values) {
    if (array.name == "router_centers" || array.name == "expert_output")
      array.values.assign(centres.data(), centres.data() + centres.size());
  }
  restore(model, values);
  const TrainingSet<double> data{static_cast<int>(inputs.rows()),
                                 {inputs.data(), inputs.data() + inputs.size()},
                                 {inputs.data(), inputs.data() + inputs.size()}};
  TrainOptions descent;
  descent.lr = PerGroup(rate);
  descent.batch_size = inputs.rows();
  descent.steps = 1;
  Workspace<double> workspace = model.network->make_workspace();
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  train<double>(model, {*loss}, data, descent, Seeds{}, TrainCallbacks{}, workspace);
  Matrix next;
  for (const NamedArray<double>& array : arrays(model)) {
    if (array.name == "expert_output") next = MatrixView(array.values.data(), centres.rows(), dim);
  }
  return next;
}

Matrix k_means_step(const Matrix& inputs, const Matrix& centres, double rate) {
  const std::vector<Eigen::Index> nearest = nearest_centres(inputs, centres);
  Matrix sums = Matrix::Zero(centres.rows(), centres.cols());
  std::vector<int> counts(static_cast<std::size_t>(centres.rows()), 0);
  for (Eigen::Index i = 0; i < inputs.rows(); ++i) {
    const Eigen::Index j = nearest[static_cast<std::size_t>(i)];
    sums.row(j) += inputs.row(i);
    ++counts[static_cast<std::size_t>(j)];
  }
  Matrix next = centres;
  for (Eigen::Index j = 0; j < centres.rows(); ++j) {
    const double count = counts[static_cast<std::size_t>(j)];
    if (count == 0) continue;
    const double share = 2 * rate * count / static_cast<double>(inputs.rows());
    next.row(j) += share * (sums.row(j) / count - centres.row(j));
  }
  return next;
}

CheckFinding check_lemma1(const CheckEffort& effort, const CentreStep& step) {
  double difference = 0, movement = 0, margin = std::numeric_limits<double>::infinity(), largest = 0;
  const int runs = kRuns * effort.seeds;
  for (int run = 0; run < runs; ++run) {
    Engine engine = check_stream(effort, kCentreId, run);
    const Matrix inputs = draw_normals(engine, kCentreInputs, kCentreDim);
    Matrix centres = draw_normals(engine, kCentres, kCentreDim);
    largest = std::max(largest, inputs.cwiseAbs().maxCoeff());
    for (int i = 0; i < kCentreSteps; ++i) {
      margin = std::min(margin, smallest_margin(inputs, centres));
      const Matrix next = k_means_step(inputs, centres, kRate);
      difference = larger(difference,
                          (step(inputs, centres, kRate) - next).cwiseAbs().maxCoeff<Eigen::PropagateNaN>());
      movement = std::max(movement, (next - centres).cwiseAbs().maxCoeff());
      centres = next;
    }
  }
  CheckFinding finding;
  finding.hypotheses = {{"no input is equally near to two centres (smallest gap > 0)", margin, margin > 0}};
  finding.measured = difference;
  finding.error_bound = kCentreInputs * std::numeric_limits<double>::epsilon() * largest;
  finding.error_origin = "rounding: n epsilon max|x|";
  finding.details = {
      {"runs", runs}, {"steps per run", kCentreSteps}, {"largest movement in a step", movement}};
  return finding;
}

std::vector<Check> dikkala2023_lemma1_checks() {
  return {
      {kCentreId, "Dikkala et al. 2023, Lemma 1",
       "with f(x) = u_j, j = argmin |u_j - x|, and target x, the gradient step on the squared loss is the "
       "k-means step u_j + (2 eta n_j / n)(mean of cluster j - u_j); the step is the trainer's",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_lemma1(effort); }}};
}

}  // namespace moelab
