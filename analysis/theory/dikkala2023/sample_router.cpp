#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/stats/intervals.h"
#include "analysis/theory/dikkala2023.h"
#include "sim/base/numerics.h"
#include "sim/base/random.h"
#include "sim/data/cluster_means.h"
#include "sim/data/gaussian_mixture.h"
#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "sim/train/trainer.h"

namespace moelab {
namespace {

constexpr int kRelevant = 2, kIrrelevant = 2, kSubspaceDim = kRelevant + kIrrelevant;
constexpr int kSubspaceExperts = 3, kSubspaceOutputs = 3, kSubspaceClusters = 3;
constexpr int kSignalPoints = 24;
constexpr int kNodes = 14;  // Gauss-Hermite nodes per coordinate of x₂

/// Nodes and weights of Gauss and Hermite from the Jacobi matrix of the polynomials (Golub and Welsch 1969).
NormalRule normal_rule() {
  Matrix jacobi = Matrix::Zero(kNodes, kNodes);
  for (int i = 1; i < kNodes; ++i) jacobi(i, i - 1) = jacobi(i - 1, i) = std::sqrt(static_cast<double>(i));
  const auto [node, vectors] = symmetric_eigen(jacobi);
  const Vector weight = vectors.row(0).cwiseAbs2().transpose();
  NormalRule rule{Matrix(kNodes * kNodes, kIrrelevant), Vector(kNodes * kNodes)};
  for (int i = 0; i < kNodes; ++i) {
    for (int j = 0; j < kNodes; ++j) {
      rule.points.row(i * kNodes + j) << node[i], node[j];
      rule.weight[i * kNodes + j] = weight[i] * weight[j];
    }
  }
  return rule;
}

/// x₁ from uniforms (m, 1 + d'): the component, then its standard normals.
Matrix signal_points(const SignalMixture& mixture, const Matrix& uniforms) {
  Matrix points(uniforms.rows(), kRelevant);
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    const int c = std::min(static_cast<int>(kSubspaceClusters * uniforms(i, 0)), kSubspaceClusters - 1);
    for (int j = 0; j < kRelevant; ++j)
      points(i, j) = mixture.centres(c, j) + normal_quantile(uniforms(i, 1 + j));
  }
  return points;
}

/// y(x₁): the value of the nearest centre, a function of x₁ even where components overlap.
Matrix targets_at(const SignalMixture& mixture, const Matrix& points) {
  Matrix targets(points.rows(), kSubspaceOutputs);
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    Eigen::Index nearest = 0;
    (mixture.centres.rowwise() - points.row(i)).rowwise().squaredNorm().minCoeff(&nearest);
    targets.row(i) = mixture.values.row(nearest);
  }
  return targets;
}

/// Every signal point with every node of x₂.
void set_product_rule(SubspaceProblem& problem, const Matrix& points, const Matrix& targets) {
  const NormalRule& rest = irrelevant_rule();
  const Eigen::Index q = rest.points.rows(), n = points.rows() * q;
  SoftMixturePopulation& population = problem.population;
  population = {
      Matrix(n, kSubspaceDim), Matrix(n, kSubspaceOutputs), Vector(n), kSubspaceExperts, kSubspacePenalty,
      kSubspacePenalty};
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    population.x.middleRows(i * q, q) = rest.points * problem.irrelevant.transpose();
    population.x.middleRows(i * q, q).rowwise() += (problem.relevant * points.row(i).transpose()).transpose();
    population.y.middleRows(i * q, q).rowwise() = targets.row(i);
    population.weight.segment(i * q, q) = rest.weight / static_cast<double>(points.rows());
  }
}

}  // namespace

const NormalRule& irrelevant_rule() {
  static const NormalRule rule = normal_rule();
  return rule;
}

SignalMixture draw_signal_mixture(Engine& engine) {
  return {draw_normals(engine, kSubspaceClusters, kRelevant, 2.0),
          draw_normals(engine, kSubspaceClusters, kSubspaceOutputs)};
}

SubspaceProblem draw_subspaces(Engine& engine, bool rotated) {
  Matrix basis = Matrix::Identity(kSubspaceDim, kSubspaceDim);
  if (rotated) basis = qr_factors(draw_normals(engine, kSubspaceDim, kSubspaceDim)).q;
  return {SoftMixturePopulation{}, basis.leftCols(kRelevant), basis.rightCols(kIrrelevant)};
}

SubspaceProblem draw_subspace_problem(Engine& engine, bool rotated) {
  SubspaceProblem problem = draw_subspaces(engine, rotated);
  const SignalMixture mixture = draw_signal_mixture(engine);
  const Matrix points = signal_points(mixture, QuasiRandom(1 + kRelevant, engine).uniforms(kSignalPoints));
  set_product_rule(problem, points, targets_at(mixture, points));
  return problem;
}

void set_points(SubspaceProblem& problem, const SignalMixture& mixture, const Matrix& uniforms) {
  const Matrix points = signal_points(mixture, uniforms.leftCols(1 + kRelevant));
  const Matrix rest = uniforms.rightCols(kIrrelevant).unaryExpr(&normal_quantile);
  const Eigen::Index n = uniforms.rows();
  problem.population = {points * problem.relevant.transpose() + rest * problem.irrelevant.transpose(),
                        targets_at(mixture, points),
                        Vector::Constant(n, 1.0 / static_cast<double>(n)),
                        kSubspaceExperts,
                        kSubspacePenalty,
                        kSubspacePenalty};
}

Vector draw_parameters(Engine& engine, const SubspaceProblem& problem) {
  Vector theta = draw_normals(engine, problem.population.size(), 1);
  const Matrix excess = irrelevant_part(problem, theta) * (2.0 / 3) * problem.irrelevant.transpose();
  problem.population.router(theta) -= excess;
  return theta;
}

Saddle draw_saddle(Engine& engine) {
  Saddle saddle{draw_subspaces(engine, true), {}};
  SoftMixturePopulation& population = saddle.problem.population;
  const Matrix points = draw_normals(engine, kSignalPoints, kRelevant, 3.0);
  set_product_rule(saddle.problem, points, Matrix::Zero(kSignalPoints, kSubspaceOutputs));
  saddle.theta = draw_parameters(engine, saddle.problem);
  // The task's gradient in W sums to 0 over the experts, and so must the penalty's.
  Eigen::Map<Matrix> router = population.router(saddle.theta);
  const Eigen::RowVectorXd mean = router.colwise().mean();
  router.rowwise() -= mean;

  // Start from y = E[f | x₁], for which the residual is small, and add the least change that is needed.
  const Eigen::Index q = population.x.rows() / kSignalPoints;
  const auto rows_of = [&](Eigen::Index i) { return population.y.middleRows(i * q, q); };
  const Matrix outputs = population.probabilities(saddle.theta) * population.values(saddle.theta);
  for (Eigen::Index i = 0; i < kSignalPoints; ++i) {
    const Vector weight = population.weight.segment(i * q, q) * kSignalPoints;
    rows_of(i).rowwise() = weight.transpose() * outputs.middleRows(i * q, q);
  }
  const Vector residual = population.gradient(saddle.theta);
  Matrix response(population.size(), kSignalPoints * kSubspaceOutputs);
  for (Eigen::Index i = 0; i < kSignalPoints; ++i) {
    for (Eigen::Index j = 0; j < kSubspaceOutputs; ++j) {
      rows_of(i).col(j).array() += 1;
      response.col(i * kSubspaceOutputs + j) = population.gradient(saddle.theta) - residual;
      rows_of(i).col(j).array() -= 1;
    }
  }
  const Vector changes = least_norm_solution(response, -residual);
  for (Eigen::Index i = 0; i < kSignalPoints; ++i) {
    for (Eigen::Index j = 0; j < kSubspaceOutputs; ++j)
      rows_of(i).col(j).array() += changes[i * kSubspaceOutputs + j];
  }
  return saddle;
}

/// W₂ = W Q₂ (E, d − d').
Matrix irrelevant_part(const SubspaceProblem& problem, const Vector& theta) {
  return problem.population.router(theta) * problem.irrelevant;
}

double irrelevant_share(const SubspaceProblem& problem, const Vector& theta) {
  return irrelevant_part(problem, theta).norm() / problem.population.router(theta).norm();
}

namespace {

constexpr const char* kMassId = "dikkala2023.theorem2.off_cluster_mass";
constexpr const char* kSpecialistsId = "dikkala2023.theorem2.specialists";
constexpr int kRouterClusters = 4;
constexpr double kRowFactor = 2;     // c in E = c k ln k
constexpr double kSeparation = 0.5;  // c of c-separation
constexpr int kDims[] = {8, 16, 32, 64};
constexpr int kMassRepetitions = 16, kRouters = 300, kRouterInputs = 2;  // inputs per cluster and router
constexpr double kLevel = 0.999;
/// Slopes of ln mass against d from 32 to 64 over those from 8 to 16: 1 for exp(−a d), (16 − 8)/(64 − 32) for
/// every power of d. Halfway between logarithms of the two.
constexpr double kSlopesKept = 0.5;
/// Cosines of random directions have mean 0 and standard deviation 1/√d. Their mean over all draws is a
/// hundredth of that.
constexpr double kRandomCosine = 0.02;

constexpr int kTrainings = 8, kTrainingDim = 32, kTrainingOutputs = 4;
constexpr int kPoints = 512, kTrainingSteps = 500, kTestPoints = 1000;
/// What still counts as o(1): 5 % of ‖v_c‖.
constexpr double kNear = 0.05;

/// Labels of E rows, each cluster at least once.
std::vector<int> draw_labels(Engine& engine, int clusters) {
  std::vector<int> labels(static_cast<std::size_t>(router_rows(kRowFactor, clusters)));
  do {
    for (int& label : labels) label = draw_index(engine, clusters);
  } while (!covers_all(labels, clusters));
  return labels;
}

Matrix draw_inputs(Engine& engine, const Matrix& centres, const std::vector<int>& labels) {
  Matrix x = draw_normals(engine, static_cast<Eigen::Index>(labels.size()), centres.cols());
  for (Eigen::Index i = 0; i < x.rows(); ++i) x.row(i) += centres.row(labels[static_cast<std::size_t>(i)]);
  return x;
}

/// The mass that each input gives to rows of other labels, (n), from scores (n, E).
Vector off_cluster_mass(Matrix scores, const std::vector<int>& inputs, const std::vector<int>& rows) {
  Vector mass = Vector::Zero(scores.rows());
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    const double largest = scores.row(i).maxCoeff();
    scores.row(i) = (scores.row(i).array() - largest).exp();
    for (Eigen::Index e = 0; e < scores.cols(); ++e) {
      if (rows[static_cast<std::size_t>(e)] != inputs[static_cast<std::size_t>(i)]) mass[i] += scores(i, e);
    }
    mass[i] /= scores.row(i).sum();
  }
  return mass;
}

/// The least-squares slope of y against x.
double slope_of(const Vector& x, const Vector& y) {
  const Vector centred = x.array() - x.mean();
  return centred.dot(y) / centred.squaredNorm();
}

/// Mean off-cluster mass of each cluster, (k), over random routers in dimension d.
struct MassDraws {
  Vector mass;
  double cosine = 0;  ///< mean over pairs of centres
};

MassDraws draw_masses(Engine& engine, int clusters, int dim, const CentreRule& rule) {
  MassDraws result{Vector::Zero(clusters), 0};
  std::vector<int> inputs;
  for (int i = 0; i < clusters * kRouterInputs; ++i) inputs.push_back(i % clusters);
  for (int router = 0; router < kRouters; ++router) {
    const Matrix centres = rule(engine, clusters, dim);
    for (int i = 1; i < clusters; ++i) {
      for (int j = 0; j < i; ++j)
        result.cosine += centres.row(i).normalized().dot(centres.row(j).normalized());
    }
    const std::vector<int> labels = draw_labels(engine, clusters);
    const Matrix rows = draw_inputs(engine, centres, labels);
    const Matrix x = draw_inputs(engine, centres, inputs);
    const Vector mass = off_cluster_mass(x * rows.transpose(), inputs, labels);
    for (Eigen::Index i = 0; i < mass.size(); ++i)
      result.mass[inputs[static_cast<std::size_t>(i)]] += mass[i];
  }
  result.mass /= kRouters * kRouterInputs;
  result.cosine /= kRouters * clusters * (clusters - 1) / 2.0;
  return result;
}

}  // namespace

Matrix random_centres(Engine& engine, int clusters, int dim) {
  const double d = dim;
  Matrix centres;
  do {
    centres = draw_normals(engine, clusters, dim);
    for (Eigen::Index c = 0; c < clusters; ++c)
      centres.row(c) *= std::sqrt(d) * std::pow(draw_uniform(engine), 1 / d) / centres.row(c).norm();
  } while (least_distance(centres) < kSeparation * std::sqrt(d));
  return centres;
}

Matrix ray_centres(Engine& engine, int clusters, int dim) {
  Eigen::RowVectorXd direction = draw_normals(engine, 1, dim);
  direction *= std::sqrt(static_cast<double>(dim)) / direction.norm();
  Matrix centres(clusters, dim);
  for (int c = 0; c < clusters; ++c) centres.row(c) = (2 * c + 1) * direction;
  return centres;
}

CheckFinding check_off_cluster_mass(const CheckEffort& effort, int clusters, const CentreRule& centres) {
  const int repetitions = kMassRepetitions * effort.seeds;
  const Eigen::Index count = std::size(kDims);
  const Vector dims = Eigen::Map<const Eigen::VectorXi>(kDims, count).cast<double>();
  Matrix masses = Matrix::Zero(count, clusters);
  double cosine = 0;
  std::vector<double> first_slopes, last_slopes;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    Engine engine = check_stream(effort, kMassId, repetition);
    Vector logarithms(count);
    for (Eigen::Index i = 0; i < count; ++i) {
      const MassDraws draws = draw_masses(engine, clusters, kDims[i], centres);
      logarithms[i] = std::log(draws.mass.mean());
      masses.row(i) += draws.mass.transpose() / repetitions;
      cosine += draws.cosine / static_cast<double>(repetitions * count);
    }
    first_slopes.push_back(slope_of(dims.head(2), logarithms.head(2)));
    last_slopes.push_back(slope_of(dims.tail(2), logarithms.tail(2)));
  }
  const MeanEstimate first = mean_estimate(first_slopes, kLevel), last = mean_estimate(last_slopes, kLevel);
  CheckFinding finding;
  finding.hypotheses = {{"random centres: mean cosine between two of them is 0 (|.| <= 0.02)", cosine,
                         std::abs(cosine) <= kRandomCosine},
                        {"d >= k", static_cast<double>(kDims[0]), kDims[0] >= clusters}};
  finding.relation = Relation::at_least;
  finding.predicted = kSlopesKept;
  // A mass that does not fall at first has no exponential to keep.
  finding.measured = first.mean < 0 ? last.interval->high / first.mean : 0;
  finding.error_origin = fmt::format("in the interval: {} repetitions", repetitions);
  finding.details = {{"slope between the two smallest d", first.mean},
                     {"slope between the two largest d", last.mean},
                     {"its upper end", last.interval->high}};
  for (Eigen::Index i = 0; i < count; ++i)
    finding.details.emplace_back(fmt::format("mean mass at d = {}", kDims[i]), masses.row(i).mean());
  for (int c = 0; c < clusters; ++c) {
    finding.details.emplace_back(fmt::format("of cluster {} at d = {}", c + 1, kDims[count - 1]),
                                 masses(count - 1, c));
  }
  return finding;
}

CheckFinding check_specialists(const CheckEffort& effort, double row_scale, double router_rate) {
  const int experts = router_rows(kRowFactor, kRouterClusters), wanted = kTrainings * effort.seeds;
  const DataOptions data =
      GaussianMixtureOptions{.clusters = kRouterClusters,
                             .dim = kTrainingDim,
                             .mean_std = 2.0,
                             .separation = 1.0,
                             .target = gaussian_mixture::ConstantTarget{.dim = kTrainingOutputs}};
  ModelOptions options;
  options.experts = experts;
  options.router = LinearRouterOptions{.init = "train_samples", .init_scale = row_scale, .bias = {}};
  options.expert = ConstantExpertOptions{};
  options.gating.train = SoftGatingOptions{.skip_below = 0.0};
  TrainOptions descent;
  descent.gradient = TrainOptions::Gradient::population;
  descent.rule = TrainOptions::Rule::quasi_monte_carlo;
  descent.points = kPoints;
  descent.steps = kTrainingSteps;
  descent.lr = PerGroup(1.0, router_rate);
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  double worst = 0, mass_before = 0, mass_after = 0;
  int trained = 0, left_out = 0;
  for (std::uint64_t index = 0; trained < wanted; ++index) {
    const Seeds seeds{effort.root, index};
    const std::unique_ptr<Problem> problem = draw_problem(data, seeds);
    const Dataset rows = draw_set(*problem, seeds, Purpose::train_data, experts);
    if (!covers_all(rows.cluster, kRouterClusters)) {
      ++left_out;
      continue;
    }
    Model<double> model(options, problem->layout(), Start{seeds, &rows.x});
    Workspace<double> workspace = model.network->make_workspace();
    const Dataset test = draw_set(*problem, seeds, Purpose::test_data, kTestPoints);
    const auto mean_mass = [&] {
      Matrix r(kTestPoints, experts);
      route(model, 0, test.x.data(), kTestPoints, workspace, r.data());
      // The softmax of log r is r.
      return off_cluster_mass(r.array().log(), test.cluster, rows.cluster).mean();
    };
    mass_before = std::max(mass_before, mean_mass());
    PopulationBatches<double> batches(*problem, descent, seeds);
    train<double>(model, {*loss}, batches, kTrainingSteps, descent,
                  {[](std::int64_t) {}, [](double) { return false; }}, workspace);
    mass_after = std::max(mass_after, mean_mass());
    Matrix outputs;
    for (const NamedArray<double>& array : arrays(model)) {
      if (array.name == "expert_output") outputs = MatrixView(array.values.data(), experts, kTrainingOutputs);
    }
    std::vector<double> nearest(kRouterClusters, std::numeric_limits<double>::infinity());
    for (int e = 0; e < experts; ++e) {
      // A constant target: that of the sample at which the row started.
      const double distance = (outputs.row(e) - rows.y.row(e)).norm() / rows.y.row(e).norm();
      double& least = nearest[static_cast<std::size_t>(rows.cluster[static_cast<std::size_t>(e)])];
      least = std::min(least, distance);
    }
    worst = std::max(worst, *std::max_element(nearest.begin(), nearest.end()));
    ++trained;
  }
  CheckFinding finding;
  finding.relation = Relation::at_most;
  finding.measured = worst;
  finding.error_bound = kNear;
  finding.error_origin = "what counts as o(1): 5 % of |v_c|";
  finding.details = {{"runs", trained},
                     {"routers left out, a cluster without a row", left_out},
                     {"largest mean off-cluster mass before training", mass_before},
                     {"after training", mass_after}};
  return finding;
}

std::vector<Check> dikkala2023_sample_router_checks() {
  const std::string source = "Dikkala et al. 2023, Theorem 2", mass = kMassId;
  return {
      {mass + ".random_centres", source,
       "random 0.5-separated centres of norm <= sqrt(d): the routing mass on other clusters' rows is "
       "exp(-Omega(d)): its "
       "logarithm falls from d = 32 to 64 at 1/2 of the slope from 8 to 16 or more, a power of d at 1/4 "
       "(flattest end of the 99.9 % interval)",
       CheckVerdict::holds,
       [](const CheckEffort& effort) { return check_off_cluster_mass(effort, kRouterClusters); }},
      {mass + ".one_ray", source,
       "the same for two centres on one ray, 1 sqrt(d) and 3 sqrt(d): separated, not random, and the first "
       "one loses all mass",
       CheckVerdict::hypotheses_not_met,
       [](const CheckEffort& effort) { return check_off_cluster_mass(effort, 2, ray_centres); }},
      {kSpecialistsId, source,
       "from rows at samples, training ends with a specialist u_j -> v_c for each cluster: the least "
       "|u_j - v_c| / |v_c| (largest over clusters and runs)",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_specialists(effort); }},
      {"dikkala2023.theorem2.frozen_specialists", source,
       "the same with rows that stay at their samples: it is where they start that the specialists come "
       "from, "
       "no learning of the router",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_specialists(effort, 1, 0); }},
      {"dikkala2023.theorem2.small_specialists", source + ", without rows at samples",
       "the same from a hundredth of the samples: such routers do not tell clusters apart, and there is no "
       "specialist for some",
       CheckVerdict::fails, [](const CheckEffort& effort) { return check_specialists(effort, 0.01); }}};
}

}  // namespace moelab
