#include "sim/model/router/routers.h"

#include <cmath>

#include "analysis/theory/patch_routing2023.h"
#include "sim/data/patches.h"
#include "sim/model/network.h"
#include "sim/train/experiment.h"

namespace moelab {
namespace {

constexpr const char* kFormId = "patch_routing2023.router";
constexpr const char* kMeanId = "patch_routing2023.mean_router";
constexpr int kPatches = 12, kRoutedWidth = 24, kRoutedSamples = 200, kBatch = 20, kEpochs = 5,
              kDraws = 20000;
constexpr double kRouterRate = 0.2;

PatchesOptions patch_data(double overlap) {
  return {.dim = kRoutedWidth,
          .patches = kPatches,
          .law = patches::OwnPatch{.overlap = overlap, .patterns = 8, .noise_std = 0.5}};
}

/// Σ_i y_i Σ_j x_i^(j) (d), y = ±1.
Vector signed_sum(const Dataset& data) {
  Vector sum = Vector::Zero(kRoutedWidth);
  for (Eigen::Index i = 0; i < data.x.rows(); ++i) {
    const MatrixView patches(&data.x(i, 0), kPatches, kRoutedWidth);
    sum += (data.y(i, 0) - data.y(i, 1)) * patches.colwise().sum().transpose();
  }
  return sum;
}

Matrix router_of(const Model<float>& model) {
  for (const NamedArray<float>& array : model.network->arrays(model.parameters)) {
    if (array.name == "router_weight")
      return Eigen::Map<const MatrixOf<float>>(array.values.data(), 2, kRoutedWidth).cast<double>();
  }
  return {};
}

}  // namespace

CheckFinding check_router_form(const CheckEffort& effort, double factor) {
  double largest = 0;
  for (int repetition = 0; repetition < 3 * effort.seeds; ++repetition) {
    const double overlap = repetition % 3 - 1;  // −1, 0 and 1/2
    ExperimentOptions options;
    options.data = patch_data(overlap > 0 ? 0.5 : overlap);
    options.data.train_samples = kRoutedSamples;
    options.model.experts = 2;
    options.model.router = LinearRouterOptions{.init_scale = 0.1 * std::sqrt(1.0 * kRoutedWidth)};
    options.model.expert = FiltersExpertOptions{.filters = 4,
                                                .activation = FiltersExpertOptions::Activation::relu,
                                                .outputs = FiltersExpertOptions::Outputs::opposite,
                                                .signs = FiltersExpertOptions::Signs::by_expert};
    options.model.gating.train =
        PatchChoiceGatingOptions{.patches = 2, .gate = PatchChoiceGatingOptions::Gate::one};
    options.model.gating.eval = options.model.gating.train;
    options.loss.task = "cross_entropy";
    options.loss.coefficient("class_scores") = 1;
    options.train.lr = kRouterRate;
    options.train.batch_size = kBatch;
    options.train.epochs = kEpochs;
    const Seeds seeds{effort.root, static_cast<std::uint64_t>(repetition)};
    Experiment<float> experiment(options, seeds);
    const Matrix start = router_of(experiment.model());
    experiment.train();
    const Matrix change = router_of(experiment.model()) - start;
    const double c = factor * kRouterRate * kEpochs / kBatch;
    const Vector sum =
        c * signed_sum(draw_set(experiment.problem(), seeds, Purpose::train_data, kRoutedSamples));
    Matrix predicted(2, kRoutedWidth);
    predicted.row(0) = sum.transpose();
    predicted.row(1) = -sum.transpose();
    largest = larger(largest, (change - predicted).norm() / predicted.norm());
  }
  return expected_zero(largest, 1e-5, "float, over 50 steps", {{"steps", kRoutedSamples * kEpochs / kBatch}});
}

CheckFinding check_mean_router(const CheckEffort& effort, double share) {
  const Seeds seeds{effort.root, 0};
  double largest = 0;
  for (const double overlap : {-1.0, 0.0, 0.5}) {
    const DataOptions data = patch_data(overlap);
    const std::unique_ptr<Problem> problem = draw_problem(data, seeds);
    const Matrix& own = problem->patch_directions()->signals;
    const Vector expected = share * (own.col(0) - own.col(1));
    Engine engine = check_stream(effort, kMeanId, static_cast<int>(2 * overlap) + 2);
    MeanOfZero deviation(kRoutedWidth);
    for (int i = 0; i < kDraws * effort.seeds; ++i)
      deviation.add(signed_sum(problem->draw(engine, {Purpose::evaluation, i, 1})) - expected);
    largest = larger(largest, deviation.largest_deviation());
  }
  return in_standard_errors(largest, {{"draws", kDraws * effort.seeds}});
}

std::vector<Check> patch_routing2023_checks() {
  const std::string source = "Chowdhury et al. 2023, separate training, stage 1";
  return {{kFormId, source,
           "routers end at theta(0) +- c sum_i y_i sum_j x_i^(j), c = rate epochs / batch (largest relative "
           "difference of their changes)",
           CheckVerdict::holds, [](Effort effort) { return check_router_form(effort); }},
          {kMeanId, source + ", in expectation",
           "E[y sum_j x^(j)] = (o_1 - o_2) / 2 (largest deviation in standard errors)", CheckVerdict::holds,
           [](Effort effort) { return check_mean_router(effort); }}};
}

}  // namespace moelab
