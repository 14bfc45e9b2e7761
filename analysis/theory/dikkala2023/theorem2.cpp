#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/non_central_chi_squared.hpp>
#include <cmath>

#include "analysis/stats/intervals.h"
#include "analysis/theory/dikkala2023.h"
#include "sim/data/cluster_means.h"
#include "sim/data/gaussian_mixture.h"
#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "sim/train/trainer.h"

namespace moelab {
namespace {

constexpr const char* kCoverageId = "dikkala2023.theorem2.coverage";
constexpr const char* kDistanceId = "dikkala2023.theorem2.distance";
constexpr int kCoverageDraws = 2000;   // of routers for coverage
constexpr int kDistancePairs = 20000;  // of inputs for distances
constexpr double kRadius = 0.04;       // C

/// |share − p| in binomial standard errors, for p in (0, 1).
double standard_errors(int hits, int draws, double p) {
  return std::abs(static_cast<double>(hits) / draws - p) / std::sqrt(p * (1 - p) / draws);
}

/// E = ⌈c k ln k⌉.
int router_rows(double c, int clusters) {
  return static_cast<int>(std::ceil(c * clusters * std::log(static_cast<double>(clusters))));
}

/// Whether each of 0 … k − 1 is among the labels.
bool covers_all(const std::vector<int>& labels, int clusters) {
  std::vector<bool> owned(size(clusters), false);
  for (const int c : labels) owned[size(c)] = true;
  return std::find(owned.begin(), owned.end(), false) == owned.end();
}

std::unique_ptr<Problem> draw_gaussian_mixture(int clusters, const Seeds& seeds) {
  const DataOptions data = GaussianMixtureOptions{
      .clusters = clusters, .dim = 1, .target = gaussian_mixture::ConstantTarget{.dim = 1}};
  return draw_problem(data, seeds);
}

constexpr const char* kMassId = "dikkala2023.theorem2.off_cluster_mass";
constexpr const char* kSpecialistsId = "dikkala2023.theorem2.specialists";
constexpr int kRouterClusters = 4;
constexpr double kRowFactor = 2;     // c in E = c k ln k
constexpr double kSeparation = 0.5;  // c of c-separation
constexpr int kDims[] = {8, 16, 32, 64};
constexpr int kMassRepetitions = 16, kRouters = 300, kRouterInputs = 2;  // inputs per cluster and router
constexpr double kLevel = 0.999;
/// The slope of ln mass against d from 32 to 64 over the slope from 8 to 16 is 1 for exp(−a d) and (16 −
/// 8)/(64 − 32) for every power of d. This is halfway between the two in logarithms.
constexpr double kSlopesKept = 0.5;
/// Cosines of random directions have mean 0 and standard deviation 1/√d. Their mean over all draws is a
/// hundredth of that.
constexpr double kRandomCosine = 0.02;

constexpr int kTrainings = 8, kTrainingDim = 32, kTrainingOutputs = 4;
constexpr int kPoints = 512, kTrainingSteps = 500, kTestPoints = 1000;
/// The largest distance that counts as o(1): 5 % of ‖v_c‖.
constexpr double kNear = 0.05;

constexpr int kSampleClusters = 16, kSampleTrainings = 4;
constexpr double kStepFactor = 8, kSampleRouterRate = 0.01;
/// The largest 1 − cos that counts as no turn.
constexpr double kTurned = 0.01;

/// Labels of E rows with each cluster at least once.
std::vector<int> draw_labels(Engine& engine, int clusters) {
  std::vector<int> labels(size(router_rows(kRowFactor, clusters)));
  do {
    for (int& label : labels) label = draw_index(engine, clusters);
  } while (!covers_all(labels, clusters));
  return labels;
}

Matrix draw_inputs(Engine& engine, const Matrix& centres, const std::vector<int>& labels) {
  Matrix x = draw_normals(engine, static_cast<Eigen::Index>(labels.size()), centres.cols());
  for (Eigen::Index i = 0; i < x.rows(); ++i) x.row(i) += centres.row(labels[size(i)]);
  return x;
}

/// The mass that each input gives to rows of other labels, (n), from scores (n, E).
Vector off_cluster_mass(Matrix scores, const std::vector<int>& inputs, const std::vector<int>& rows) {
  Vector mass = Vector::Zero(scores.rows());
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    const double largest = scores.row(i).maxCoeff();
    scores.row(i) = (scores.row(i).array() - largest).exp();
    for (Eigen::Index e = 0; e < scores.cols(); ++e) {
      if (rows[size(e)] != inputs[size(i)]) mass[i] += scores(i, e);
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
    for (Eigen::Index i = 0; i < mass.size(); ++i) result.mass[inputs[size(i)]] += mass[i];
  }
  result.mass /= kRouters * kRouterInputs;
  result.cosine /= kRouters * clusters * (clusters - 1) / 2.0;
  return result;
}

}  // namespace

double coverage_probability(int clusters, int rows) {
  // chain[m]: the probability of m different values so far.
  std::vector<double> chain(size(clusters) + 1, 0.0);
  chain[0] = 1;
  for (int row = 0; row < rows; ++row) {
    for (std::size_t m = chain.size() - 1; m > 0; --m) {
      const double known = static_cast<double>(m) / clusters;
      chain[m] = known * chain[m] + (1 - static_cast<double>(m - 1) / clusters) * chain[m - 1];
    }
    chain[0] = 0;
  }
  return chain.back();
}

CheckFinding check_coverage(const CheckEffort& effort, const CoverageFormula& formula) {
  // More seeds give more draws: the largest of many comparisons would exceed any bound.
  const int draws = kCoverageDraws * effort.seeds;
  double largest = 0;
  CheckDetails details;
  for (const int clusters : {4, 16, 64}) {
    const std::unique_ptr<Problem> problem = draw_gaussian_mixture(clusters, Seeds{effort.root, 0});
    for (const double c : {1.0, 1.5}) {
      const int rows = router_rows(c, clusters);
      Engine engine = check_stream(effort, fmt::format("{} {} {}", kCoverageId, clusters, rows), 0);
      int covered = 0;
      for (int draw = 0; draw < draws; ++draw) {
        const Dataset samples = problem->draw(engine, {Purpose::evaluation, draw * rows, rows});
        if (covers_all(samples.cluster, clusters)) ++covered;
      }
      largest = std::max(largest, standard_errors(covered, draws, formula(clusters, rows)));
      details.emplace_back(fmt::format("share covered, k = {}, E = {}", clusters, rows),
                           static_cast<double>(covered) / draws);
      details.emplace_back(fmt::format("exact probability, k = {}, E = {}", clusters, rows),
                           coverage_probability(clusters, rows));
    }
  }
  return in_standard_errors(largest, std::move(details));
}

CheckFinding check_coverage_bound(const CoverageFormula& formula) {
  double largest = 0;
  for (const int clusters : {2, 4, 8, 16, 32, 64, 128, 256}) {
    for (const double c : {1.5, 2.0, 3.0}) {
      const double missed = 1 - formula(clusters, router_rows(c, clusters));
      largest = std::max(largest, missed * std::pow(static_cast<double>(clusters), c - 1));
    }
  }
  return {.relation = Relation::at_most,
          .predicted = 1,
          .measured = largest,
          .error_bound = 1e-9,
          .error_origin = "rounding: 1 - P to 1e-15, times at most 256^2"};
}

double near_probability(int dim, double separation, double radius) {
  const double d = dim;
  const boost::math::non_central_chi_squared law(d, separation * separation * d / 2);
  return boost::math::cdf(law, radius * radius * d / 2);
}

CheckFinding check_distance(double radius) {
  double largest = -kInfinity;
  int at = 0;
  for (int dim = 2; dim <= 1024; dim += std::max(1, dim / 16)) {
    const double excess = std::log10(near_probability(dim, 1.0, radius)) + 10 * std::log10(dim);
    if (excess > largest) {
      largest = excess;
      at = dim;
    }
  }
  return {.relation = Relation::at_most,
          .measured = largest,
          .error_bound = 1e-6,
          .error_origin = "rounding of the distribution function",
          .details = {{"C", radius}, {"d with the largest value", at}}};
}

CheckFinding check_distance_drawn(const CheckEffort& effort, const NearFormula& formula) {
  constexpr double kDrawnSeparation = 1, kSeen = 1.2;
  const int pairs = kDistancePairs * effort.seeds;
  double largest = 0;
  for (const int dim : {2, 4, 8, 16}) {
    Engine engine = check_stream(effort, kDistanceId, dim);
    const double reach = kSeen * std::sqrt(static_cast<double>(dim));
    int near = 0;
    Vector first(dim), second(dim);
    for (int pair = 0; pair < pairs; ++pair) {
      fill_normal(engine, 1.0, first.data(), size(dim));
      fill_normal(engine, 1.0, second.data(), size(dim));
      second.array() += kDrawnSeparation;  // in every coordinate, √d in total
      if ((first - second).norm() <= reach) ++near;
    }
    largest = std::max(largest, standard_errors(near, pairs, formula(dim, kDrawnSeparation, kSeen)));
  }
  return in_standard_errors(largest, {{"C", kSeen}, {"pairs per d", pairs}});
}

std::vector<Check> dikkala2023_theorem2_checks() {
  const std::string source = "Dikkala et al. 2023, proof of Theorem 2";
  const std::string coverage = kCoverageId, distance = kDistanceId;
  return {
      {coverage + ".exact", source,
       "E = c k ln k samples cover all k clusters with the coupon collector's probability k! S(E, k) / k^E "
       "(largest difference in standard errors)",
       CheckVerdict::holds, [](Effort effort) { return check_coverage(effort); }},
      {coverage + ".bound", source,
       "c k ln k samples cover all k clusters with probability P >= 1 - 1/poly(k): (1 - P) k^(c - 1) <= 1 "
       "for c > 1 (largest over k and c)",
       CheckVerdict::holds, [](Effort) { return check_coverage_bound(); }},
      {distance + ".exact", source + ", (1)",
       "Pr[|x_i - x_j| <= C sqrt(d)] <= d^-10 across 1-separated components for small C: log10(Pr d^10), "
       "largest over d",
       CheckVerdict::holds, [](Effort) { return check_distance(kRadius); }},
      {distance + ".drawn", source + ", (1)",
       "|x_i - x_j|^2 / 2 is non-central chi-squared: Pr against draws (largest difference in standard "
       "errors)",
       CheckVerdict::holds, [](Effort effort) { return check_distance_drawn(effort); }}};
}

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
  // A mass that does not fall at first is no exponential.
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

/// Separated clusters with constant targets.
DataOptions separated_clusters(int clusters) {
  return GaussianMixtureOptions{.clusters = clusters,
                                .dim = kTrainingDim,
                                .mean_std = 2.0,
                                .separation = 1.0,
                                .target = gaussian_mixture::ConstantTarget{.dim = kTrainingOutputs}};
}

/// Constant experts behind a linear router whose rows start at training samples.
ModelOptions specialists(int experts, double row_scale) {
  ModelOptions options;
  options.experts = experts;
  options.router = LinearRouterOptions{.init = "train_samples", .init_scale = row_scale, .bias = {}};
  options.expert = ConstantExpertOptions{};
  options.gating.train = SoftGatingOptions{.skip_below = 0.0};
  return options;
}

CheckFinding check_specialists(const CheckEffort& effort, double row_scale, double router_rate) {
  const int experts = router_rows(kRowFactor, kRouterClusters), wanted = kTrainings * effort.seeds;
  const DataOptions data = separated_clusters(kRouterClusters);
  const ModelOptions options = specialists(experts, row_scale);
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
    std::vector<double> nearest(kRouterClusters, kInfinity);
    for (int e = 0; e < experts; ++e) {
      // The constant target of the sample at which the row started.
      const double distance = (outputs.row(e) - rows.y.row(e)).norm() / rows.y.row(e).norm();
      double& least = nearest[size(rows.cluster[size(e)])];
      least = std::min(least, distance);
    }
    worst = std::max(worst, *std::max_element(nearest.begin(), nearest.end()));
    ++trained;
  }
  return {.relation = Relation::at_most,
          .measured = worst,
          .error_bound = kNear,
          .error_origin = "what counts as o(1): 5 % of |v_c|",
          .details = {{"runs", trained},
                      {"routers left out, a cluster without a row", left_out},
                      {"largest mean off-cluster mass before training", mass_before},
                      {"after training", mass_after}}};
}

CheckFinding check_sample_specialists(const CheckEffort& effort, bool directions, double row_scale) {
  const int experts = router_rows(kRowFactor, kSampleClusters), wanted = kSampleTrainings * effort.seeds;
  const double logarithm = std::log(static_cast<double>(kSampleClusters));
  const int samples = static_cast<int>(std::ceil(kTrainingDim * kSampleClusters * logarithm));
  const int steps = static_cast<int>(std::ceil(kStepFactor * std::log(static_cast<double>(samples))));
  const DataOptions data = separated_clusters(kSampleClusters);
  const ModelOptions options = specialists(experts, row_scale);
  TrainOptions descent;
  descent.batch_size = samples;
  descent.steps = 2 * steps;
  descent.record_every = steps;
  // An expert that serves a share a of a cluster contracts by 1 − 2 a lr / k in a step.
  descent.lr = PerGroup(kSampleClusters / 2.0, kSampleRouterRate);
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  double worst = 0, least_cosine = 1, growth = 0;
  int trained = 0;
  for (std::uint64_t index = 0; trained < wanted; ++index) {
    const Seeds seeds{effort.root, index};
    const std::unique_ptr<Problem> problem = draw_problem(data, seeds);
    const Dataset drawn = draw_set(*problem, seeds, Purpose::train_data, samples);
    const std::vector<int> labels(drawn.cluster.begin(), drawn.cluster.begin() + experts);
    if (!covers_all(labels, kSampleClusters)) continue;
    Model<double> model(options, problem->layout(), Start{seeds, &drawn.x});
    Workspace<double> workspace = model.network->make_workspace();
    const TrainingSet<double> set{samples,
                                  {drawn.x.data(), drawn.x.data() + drawn.x.size()},
                                  {drawn.y.data(), drawn.y.data() + drawn.y.size()}};
    SampleBatches<double> batches(set, problem->layout(), samples, seeds);
    const auto array_of = [&](const std::string& name, int columns) {
      for (const NamedArray<double>& array : arrays(model)) {
        if (array.name == name) return Matrix(MatrixView(array.values.data(), experts, columns));
      }
      return Matrix();
    };
    Matrix outputs, rows;
    const auto at_step = [&](std::int64_t step) {
      if (step != steps) return;
      outputs = array_of("expert_output", kTrainingOutputs);
      rows = array_of("router_weight", kTrainingDim);
    };
    train<double>(model, {*loss}, batches, 2 * steps, descent, {at_step, [](double) { return false; }},
                  workspace);
    const Matrix last = array_of("router_weight", kTrainingDim);
    std::vector<double> nearest(kSampleClusters, kInfinity);
    for (int e = 0; e < experts; ++e) {
      const double distance = (outputs.row(e) - drawn.y.row(e)).norm() / drawn.y.row(e).norm();
      double& least = nearest[size(labels[size(e)])];
      least = std::min(least, distance);
      const double before = rows.row(e).norm(), after = last.row(e).norm();
      least_cosine = std::min(least_cosine, rows.row(e).dot(last.row(e)) / (before * after));
      growth += (after / before - 1) / (experts * wanted);
    }
    worst = std::max(worst, *std::max_element(nearest.begin(), nearest.end()));
    ++trained;
  }
  CheckFinding finding;
  finding.relation = directions ? Relation::at_least : Relation::at_most;
  finding.predicted = directions ? 1 : 0;
  finding.measured = directions ? least_cosine : worst;
  finding.error_bound = directions ? kTurned : kNear;
  finding.error_origin =
      directions ? "what counts as one direction: a cosine of 0.99" : "what counts as o(1): 5 % of |v_c|";
  finding.details = {{"runs", trained},
                     {"samples", samples},
                     {"steps", steps},
                     {"rows of the router", experts},
                     {"least cosine", least_cosine},
                     {"mean growth of norms", growth},
                     {"largest distance", worst}};
  return finding;
}

std::vector<Check> dikkala2023_sample_router_checks() {
  const std::string source = "Dikkala et al. 2023, Theorem 2", mass = kMassId;
  return {
      {mass + ".random_centres", source,
       "random 0.5-separated centres of norm <= sqrt(d): the routing mass on other clusters' rows is "
       "exp(-Omega(d)): its logarithm falls from d = 32 to 64 at 1/2 of the slope from 8 to 16 or more, "
       "a power of d at 1/4 (flattest end of the 99.9 % interval)",
       CheckVerdict::holds, [](Effort effort) { return check_off_cluster_mass(effort, kRouterClusters); }},
      {mass + ".one_ray", source,
       "two separated centres on one ray, at 1 sqrt(d) and 3 sqrt(d), are not random, and the first one "
       "loses all routing mass: the slopes of its logarithm as for random centres",
       CheckVerdict::hypotheses_not_met,
       [](Effort effort) { return check_off_cluster_mass(effort, 2, ray_centres); }},
      {kSpecialistsId, source,
       "from rows at samples, training ends with a specialist u_j -> v_c for each cluster: the least "
       "|u_j - v_c| / |v_c| (largest over clusters and runs)",
       CheckVerdict::holds, [](Effort effort) { return check_specialists(effort); }},
      {kSpecialistsId + std::string("_in_printed_setting"), source,
       "from rows at samples, 8 log n steps of descent on all n = d k log k samples end with a specialist "
       "u_j -> v_c for each of k = 16 clusters in d = 32: the least |u_j - v_c| / |v_c| (largest over "
       "clusters and runs)",
       CheckVerdict::holds, [](Effort effort) { return check_sample_specialists(effort, false); }},
      {"dikkala2023.theorem2.directions", source,
       "after 8 log n steps on n = d k log k samples (k = 16, d = 32), as many steps again keep the "
       "directions of the router's rows (least cosine of a row with itself)",
       CheckVerdict::holds, [](Effort effort) { return check_sample_specialists(effort, true); }},
      {"dikkala2023.theorem2.frozen_specialists", source,
       "with rows that stay at their samples, training also ends with a specialist u_j -> v_c for each "
       "cluster, so specialists need no learning of the router: the least |u_j - v_c| / |v_c| (largest over "
       "clusters and runs)",
       CheckVerdict::holds, [](Effort effort) { return check_specialists(effort, 1, 0); }},
      {"dikkala2023.theorem2.small_specialists", source + ", without rows at samples",
       "from rows at a hundredth of samples, which do not tell clusters apart, training ends with a "
       "specialist u_j -> v_c for each cluster: the least |u_j - v_c| / |v_c| (largest over clusters and "
       "runs)",
       CheckVerdict::fails, [](Effort effort) { return check_specialists(effort, 0.01); }}};
}

}  // namespace moelab
