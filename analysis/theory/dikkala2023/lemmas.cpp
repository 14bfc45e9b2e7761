#include <algorithm>
#include <boost/math/constants/constants.hpp>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>

#include "analysis/theory/dikkala2023.h"
#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
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
  std::vector<Eigen::Index> nearest(size(inputs.rows()));
  for (Eigen::Index i = 0; i < inputs.rows(); ++i) distances.row(i).minCoeff(&nearest[size(i)]);
  return nearest;
}

/// The smallest gap between the nearest and the second nearest centre. The argmin is undefined for ties.
double smallest_margin(const Matrix& inputs, const Matrix& centres) {
  const Matrix distances = squared_distances(inputs, centres);
  double margin = kInfinity;
  for (Eigen::Index i = 0; i < inputs.rows(); ++i) {
    std::vector<double> sorted(distances.row(i).begin(), distances.row(i).end());
    std::nth_element(sorted.begin(), sorted.begin() + 1, sorted.end());
    margin = std::min(margin, std::sqrt(sorted[1]) - std::sqrt(sorted[0]));
  }
  return margin;
}

constexpr const char* kRatioId = "dikkala2023.lemma2";
constexpr int kRatioRepetitions = 50;
constexpr int kGrid = 1000;
/// The rounding of a gap: a difference of sums of up to 30 positive terms, divided by their size.
constexpr double kRatioRounding = 64 * kEpsilon;

WeightedPoints normalised(Vector x, const Vector& weight) {
  return {std::move(x), weight / weight.sum()};
}

/// A density on (0, end) at the nodes of a Gauss-Legendre rule.
WeightedPoints at_nodes(double end, const std::function<double(double)>& density) {
  constexpr int kNodes = 30;
  using Rule = boost::math::quadrature::gauss<double, kNodes>;
  Vector x(kNodes), weight(kNodes);
  for (int i = 0; i < kNodes; ++i) {
    const std::size_t place = size(i / 2);
    x[i] = end * (1 + (i % 2 == 0 ? 1 : -1) * Rule::abscissa()[place]) / 2;
    weight[i] = Rule::weights()[place] * density(x[i]);
  }
  return normalised(x, weight);
}

WeightedPoints atoms(Engine& engine, double end, int count) {
  Vector x(count), weight(count);
  for (int i = 0; i < count; ++i) {
    x[i] = end * (1 - draw_uniform(engine));
    x[i] = std::min(x[i], end * (1 - kEpsilon));
    weight[i] = 1 - draw_uniform(engine);
  }
  return normalised(x, weight);
}

/// One distribution of each family, with random parameters.
std::vector<WeightedPoints> draw_distributions(Engine& engine, double end) {
  const double first = 0.5 + 4 * draw_uniform(engine), second = 0.5 + 4 * draw_uniform(engine);
  const double rate = 10 * draw_uniform(engine) / end;
  const double centre = end * draw_uniform(engine), width = end * (0.05 + 0.2 * draw_uniform(engine));
  return {
      at_nodes(end, [](double) { return 1.0; }),
      at_nodes(end,
               [&](double x) { return std::pow(x / end, first - 1) * std::pow(1 - x / end, second - 1); }),
      at_nodes(end, [&](double x) { return std::exp(-rate * x); }),
      at_nodes(end, [&](double x) { return std::exp(-std::pow((x - centre) / width, 2) / 2); }),
      atoms(engine, end, 2),
      atoms(engine, end, 5)};
}

/// The smallest relative decrease of f(x)/x between neighbours of a grid on (0, T).
double smallest_descent(const ScalarFunction& f) {
  double smallest = kInfinity;
  double before = 0;
  for (int i = 1; i < kGrid; ++i) {
    const double x = f.end * i / kGrid, ratio = f.value(x) / x;
    if (i > 1) smallest = std::min(smallest, (before - ratio) / std::max(std::abs(before), std::abs(ratio)));
    before = ratio;
  }
  return smallest;
}

Hypothesis ratio_falls(const std::vector<ScalarFunction>& functions) {
  double smallest = kInfinity;
  for (const ScalarFunction& f : functions) smallest = std::min(smallest, smallest_descent(f));
  return {"f(a)/a > f(b)/b for a < b (smallest relative step on a grid > 0)", smallest,
          smallest > kRatioRounding};
}

}  // namespace

Matrix expert_gradient_step(const Matrix& inputs, const Matrix& centres, double rate) {
  const std::vector<Eigen::Index> nearest = nearest_centres(inputs, centres);
  Matrix gates = Matrix::Zero(inputs.rows(), centres.rows());
  for (Eigen::Index i = 0; i < inputs.rows(); ++i) gates(i, nearest[size(i)]) = 1;
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
  std::vector<int> counts(size(centres.rows()), 0);
  for (Eigen::Index i = 0; i < inputs.rows(); ++i) {
    const Eigen::Index j = nearest[size(i)];
    sums.row(j) += inputs.row(i);
    ++counts[size(j)];
  }
  Matrix next = centres;
  for (Eigen::Index j = 0; j < centres.rows(); ++j) {
    const double count = counts[size(j)];
    if (count == 0) continue;
    const double share = 2 * rate * count / static_cast<double>(inputs.rows());
    next.row(j) += share * (sums.row(j) / count - centres.row(j));
  }
  return next;
}

CheckFinding check_lemma1(const CheckEffort& effort, const CentreStep& step) {
  double difference = 0, movement = 0, margin = kInfinity, largest = 0;
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
  return {
      .hypotheses = {{"no input is equally near to two centres (smallest gap > 0)", margin, margin > 0}},
      .measured = difference,
      .error_bound = kCentreInputs * kEpsilon * largest,
      .error_origin = "rounding: n epsilon max|x|",
      .details = {{"runs", runs}, {"steps per run", kCentreSteps}, {"largest movement in a step", movement}}};
}

std::vector<Check> dikkala2023_lemma1_checks() {
  return {{kCentreId, "Dikkala et al. 2023, Lemma 1",
           "with f(x) = u_j, j = argmin |u_j - x|, and target x, the gradient step on the squared loss is "
           "the k-means step u_j + (2 eta n_j / n)(mean of cluster j - u_j). The step is the trainer's",
           CheckVerdict::holds, [](Effort effort) { return check_lemma1(effort); }}};
}

double lemma2_gap(const WeightedPoints& points, const ScalarFunction& f) {
  const Vector values = points.x.unaryExpr([&](double x) { return f.value(x); });
  const auto expect = [&](const Vector& of) { return points.weight.dot(of); };
  const double square = expect(points.x.cwiseAbs2()), mean = expect(points.x);
  const double difference = square * expect(values) - mean * expect(points.x.cwiseProduct(values));
  const Vector sizes = values.cwiseAbs();
  return difference / (square * expect(sizes) + mean * expect(points.x.cwiseProduct(sizes)));
}

std::vector<ScalarFunction> lemma2_functions() {
  constexpr double kPi = boost::math::constants::pi<double>();
  return {{"(1 - y^2)/2 (Claim 2)", 1, [](double y) { return (1 - y * y) / 2; }},
          {"ln((1 + y)/(1 - y))(1 - y^2)/2 (Claim 3)", 1,
           [](double y) { return std::log((1 + y) / (1 - y)) * (1 - y * y) / 2; }},
          {"1", 4, [](double) { return 1.0; }},
          {"sqrt(y)", 5, [](double y) { return std::sqrt(y); }},
          {"ln(1 + y)", 4, [](double y) { return std::log1p(y); }},
          {"exp(-y)", 4, [](double y) { return std::exp(-y); }},
          {"sin(y)", kPi, [](double y) { return std::sin(y); }},
          {"-y^2", 2, [](double y) { return -y * y; }}};
}

CheckFinding check_lemma2(const CheckEffort& effort, bool with_point_masses,
                          const std::vector<ScalarFunction>& functions, const Lemma2Gap& gap) {
  const int repetitions = kRatioRepetitions * effort.seeds;
  int pairs = 0, strict = 0;
  double smallest = kInfinity;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    Engine engine = check_stream(effort, kRatioId, repetition);
    for (const ScalarFunction& f : functions) {
      std::vector<WeightedPoints> distributions = draw_distributions(engine, f.end);
      if (with_point_masses) distributions.push_back(atoms(engine, f.end, 1));
      for (const WeightedPoints& points : distributions) {
        const double found = gap(points, f);
        smallest = smaller(smallest, found);
        ++pairs;
        if (found > kRatioRounding) ++strict;
      }
    }
  }
  return {.hypotheses = {ratio_falls(functions)},
          .predicted = 1,
          .measured = static_cast<double>(strict) / pairs,
          .error_origin = "none: each pair is judged beyond rounding",
          .details = {{"pairs", pairs}, {"smallest relative gap", smallest}}};
}

CheckFinding check_lemma2_point_mass(const CheckEffort& effort, const Lemma2Gap& gap) {
  const std::vector<ScalarFunction> functions = lemma2_functions();
  double largest = 0;
  for (int repetition = 0; repetition < kRatioRepetitions * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kRatioId, repetition);
    for (const ScalarFunction& f : functions)
      largest = larger(largest, std::abs(gap(atoms(engine, f.end, 1), f)));
  }
  return {.hypotheses = {ratio_falls(functions)},
          .measured = largest,
          .error_bound = kRatioRounding,
          .error_origin = "rounding: 64 epsilon"};
}

std::vector<Check> dikkala2023_lemma2_checks() {
  const std::string source = "Dikkala et al. 2023, Lemma 2";
  return {{std::string(kRatioId) + ".as_printed", source,
           "f(a)/a > f(b)/b for a < b implies E[x^2] E[f] > E[x] E[x f] for any distribution on (0, T): "
           "share of pairs of functions and distributions, point masses among them, where it does",
           CheckVerdict::fails, [](Effort effort) { return check_lemma2(effort, true); }},
          {std::string(kRatioId) + ".corrected", source,
           "f(a)/a > f(b)/b for a < b implies E[x^2] E[f] > E[x] E[x f] for any distribution on (0, T) that "
           "is not a point mass: share of pairs of functions and distributions",
           CheckVerdict::holds, [](Effort effort) { return check_lemma2(effort, false); }},
          {std::string(kRatioId) + ".point_mass", source,
           "E[x^2] E[f] = E[x] E[x f] for a point mass (largest relative difference)", CheckVerdict::holds,
           [](Effort effort) { return check_lemma2_point_mass(effort); }}};
}

}  // namespace moelab
