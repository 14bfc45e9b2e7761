#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/theory/acmoe2025.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

std::span<const double> span_of(const Vector& values) {
  return {values.data(), size(values.size())};
}

Vector vector_of(const std::vector<double>& values) {
  return Eigen::Map<const Vector>(values.data(), static_cast<Eigen::Index>(values.size()));
}

constexpr int kSeparationDim = 8;
constexpr int kSeparationInstances = 2000, kSeparationMeasured = 200000;
constexpr double kSeparationSpreads[] = {0.25, 0.5, 1, 2};
/// The rounding of sums of 8 products, relative to their size.
constexpr double kSeparationRounding = 32 * kEpsilon;

/// The diagonal of M and the squared differences δμ_q².
struct SeparationInstance {
  Vector metric;
  Vector squares;

  double weighted() const { return metric.dot(squares); }
  /// d Cov_q(m, δμ²).
  double scaled_covariance() const {
    return (metric.array() - metric.mean()).matrix().dot((squares.array() - squares.mean()).matrix());
  }
};

/// With `separated_where_tight` both are sorted: the tightest feature has the largest difference, and so on.
SeparationInstance draw_instance(Engine& engine, double spread, const MetricRule& rule,
                                 bool separated_where_tight) {
  Vector dispersion = draw_log_normal(engine, kSeparationDim, spread);
  Vector squares = draw_normals(engine, kSeparationDim, 1).cwiseAbs2();
  if (separated_where_tight) {
    std::sort(dispersion.begin(), dispersion.end());
    std::sort(squares.begin(), squares.end(), std::greater<>());
  }
  return {rule(dispersion), squares};
}

constexpr int kConcentratedFeatures = 3;
constexpr double kConcentration = 0.1;  // α

/// Three features are tight, and weights and differences on them are unrelated. Drawn until they have all
/// but α of the weights, and with `each_above_one` each at least the mean.
SeparationInstance draw_concentrated(Engine& engine, const MetricRule& rule, bool each_above_one) {
  while (true) {
    Vector dispersion = draw_log_normal(engine, kSeparationDim, 1);
    dispersion.tail(kSeparationDim - kConcentratedFeatures) *= 1e3;
    Vector squares = draw_normals(engine, kSeparationDim, 1).cwiseAbs2();
    std::partial_sort(squares.begin(), squares.begin() + kConcentratedFeatures, squares.end(),
                      std::greater<>());
    const SeparationInstance instance{rule(dispersion), squares};
    const Vector tight = instance.metric.head(kConcentratedFeatures);
    if (tight.sum() <= kSeparationDim - kConcentration) continue;
    if (each_above_one && tight.minCoeff() < 1) continue;
    return instance;
  }
}

constexpr int kAssignmentDim = 4, kAssignmentClusters = 6;
constexpr int kAssignmentProblems = 6, kAssignmentDraws = 100000;

/// Means N(0, 4 I), covariances Wishart(I, 2d)/(2d) with rows and columns scaled by log-normal factors, so
/// that features differ in width.
GaussianClusters draw_clusters(Engine& engine, int count) {
  GaussianClusters clusters{draw_normals(engine, count, kAssignmentDim, 2), {}};
  for (int i = 0; i < count; ++i) {
    const Vector widths = draw_log_normal(engine, kAssignmentDim, 0.5);
    const Matrix shape = draw_wishart(engine, kAssignmentDim, 2 * kAssignmentDim) / (2 * kAssignmentDim);
    clusters.covariances.emplace_back(widths.asDiagonal() * shape * widths.asDiagonal());
  }
  return clusters;
}

Matrix draw_noise(Engine& engine) {
  return draw_wishart(engine, kAssignmentDim, 2 * kAssignmentDim) / (4 * kAssignmentDim);
}

Metrics metrics_of(const GaussianClusters& clean, const CovarianceMetric& rule) {
  Metrics metrics;
  for (const Matrix& covariance : clean.covariances) metrics.push_back(rule(covariance));
  return metrics;
}

constexpr const char* kRootId = "acmoe2025.lemma3";
constexpr int kRootInstances = 500;

/// The rounding of eigenvalues.
double rounding_of(const Vector& dispersion, double lambda) {
  return 16 * static_cast<double>(dispersion.size()) * kEpsilon * (dispersion.maxCoeff() + lambda);
}

/// d uniform on 2 … 12, log s ~ N(0, 1). With `ties` the last half of the features, rounded up, repeats
/// others.
Vector draw_dispersion(Engine& engine, bool ties) {
  const int dim = 2 + draw_index(engine, 11);
  Vector dispersion = draw_log_normal(engine, dim, 1);
  for (int q = dim / 2; ties && q < dim; ++q) dispersion[q] = dispersion[draw_index(engine, dim / 2)];
  return dispersion;
}

/// Whether each interval (p_j, p_{j+1}) of the poles, and (p_d, ∞), has one root, and there are no other
/// roots.
bool one_right_of_each(const std::set<double>& poles, const Vector& roots) {
  if (poles.size() != size(roots.size())) return false;
  Eigen::Index j = 0;
  for (auto pole = poles.begin(); pole != poles.end(); ++pole, ++j) {
    const auto next = std::next(pole);
    if (roots[j] <= *pole || (next != poles.end() && roots[j] >= *next)) return false;
  }
  return true;
}

constexpr const char* kEigenvalueId = "acmoe2025.lemma4";
constexpr int kEigenvalueInstances = 2000;
/// Eigenvectors nearer to the axes are drawn again, because rounding would decide.
constexpr double kSmallestEpsilon = 1e-6;

}  // namespace

Vector draw_log_normal(Engine& engine, int dim, double spread) {
  return draw_normals(engine, dim, 1, spread).array().exp();
}

Matrix draw_wishart(Engine& engine, int dim, int degrees) {
  const Matrix draws = draw_normals(engine, degrees, dim);
  return draws.transpose() * draws;
}

Matrix draw_near_axis_rotation(Engine& engine, int dim, double tilt) {
  const Matrix tilted = Matrix::Identity(dim, dim) + draw_normals(engine, dim, dim, tilt);
  Matrix rotation = qr_factors(tilted).q;
  for (Eigen::Index i = 0; i < dim; ++i) {
    if (rotation(i, i) < 0) rotation.col(i) = -rotation.col(i);
  }
  return rotation;
}

Vector inverse_weights(const Vector& dispersion) {
  return vector_of(inverse_dispersion_weights(span_of(dispersion)));
}

Vector optimal_weights(const Vector& dispersion, double lambda) {
  return vector_of(optimal_feature_weights(span_of(dispersion), lambda));
}

CheckFinding check_separation_criterion(const CheckEffort& effort, const MetricRule& rule) {
  const std::string id = "acmoe2025.lemma1.criterion";
  double largest = 0, mean_error = 0;
  int closer = 0, all = 0;
  for (const double spread : kSeparationSpreads) {
    Engine engine = check_stream(effort, id + fmt::format("{}", spread), 0);
    for (int i = 0; i < kSeparationInstances * effort.seeds; ++i) {
      const SeparationInstance instance = draw_instance(engine, spread, rule, false);
      const double plain = instance.squares.sum(), gain = instance.weighted() - plain;
      largest =
          larger(largest, std::abs(gain - instance.scaled_covariance()) / (instance.weighted() + plain));
      mean_error = larger(mean_error, std::abs(instance.metric.mean() - 1));
      if (gain < 0) ++closer;
      ++all;
    }
  }
  return {
      .hypotheses = {{"mean_q m_q = 1 (largest deviation)", mean_error, mean_error <= kSeparationRounding}},
      .measured = largest,
      .error_bound = kSeparationRounding,
      .error_origin = "rounding: 32 epsilon",
      .details = {{"instances", all}, {"of which closer in M than without", closer}}};
}

CheckFinding check_separated_where_tight(const CheckEffort& effort, const MetricRule& rule) {
  const std::string id = "acmoe2025.lemma1.separated_where_tight";
  double smallest = kInfinity;
  int farther = 0, all = 0;
  for (const double spread : kSeparationSpreads) {
    Engine engine = check_stream(effort, id + fmt::format("{}", spread), 0);
    for (int i = 0; i < kSeparationInstances * effort.seeds; ++i) {
      const SeparationInstance instance = draw_instance(engine, spread, rule, true);
      smallest = smaller(smallest, instance.scaled_covariance() / kSeparationDim);
      if (instance.weighted() >= instance.squares.sum()) ++farther;
      ++all;
    }
  }
  return every_instance(farther, all, "none: each instance is judged by itself",
                        {{"smallest Cov_q(m, dmu^2)", smallest}});
}

CheckFinding check_concentrated(const CheckEffort& effort, bool each_above_one, const MetricRule& rule) {
  const int instances = kSeparationInstances * effort.seeds;
  Engine engine = check_stream(effort, "acmoe2025.lemma1.concentrated", each_above_one ? 1 : 0);
  int farther = 0;
  double least = kInfinity;
  for (int i = 0; i < instances; ++i) {
    const SeparationInstance instance = draw_concentrated(engine, rule, each_above_one);
    const double ratio = instance.weighted() / instance.squares.sum();
    least = smaller(least, ratio);
    if (ratio >= 1 - kSeparationRounding) ++farther;
  }
  return every_instance(farther, instances, "none: each instance is judged beyond rounding",
                        {{"smallest |dmu|_M^2 / |dmu|^2", least}});
}

CheckFinding check_separation_failures(const CheckEffort& effort, double spread, double predicted,
                                       const MetricRule& rule) {
  const int instances = kSeparationMeasured * effort.seeds;
  Engine engine = check_stream(effort, fmt::format("acmoe2025.lemma1.unrelated{}", spread), 0);
  int closer = 0;
  for (int i = 0; i < instances; ++i) {
    const SeparationInstance instance = draw_instance(engine, spread, rule, false);
    if (instance.weighted() < instance.squares.sum()) ++closer;
  }
  return measured_frequency(closer, instances, predicted, 0.01);
}

std::vector<Check> acmoe2025_lemma1_checks() {
  const std::string source = "Nielsen et al. 2025, Lemma 1";
  const std::string id = "acmoe2025.lemma1.";
  std::vector<Check> list = {
      {id + "criterion", source,
       "|dmu|_M^2 - |dmu|^2 = d Cov_q(m_q, dmu_q^2) for M = diag(m) of mean 1, so that |dmu|_M >= |dmu| if "
       "and only if Cov >= 0 (largest relative difference)",
       CheckVerdict::holds, [](Effort effort) { return check_separation_criterion(effort); }},
      {id + "separated_where_tight", source,
       "|dmu|_M >= |dmu| for M = diag(1/s) of mean 1 where the tighter of two features has the larger "
       "|dmu_q|: share of random instances",
       CheckVerdict::holds, [](Effort effort) { return check_separated_where_tight(effort); }},
      {id + "concentrated.as_printed", source,
       "|dmu|_M >= |dmu| by the proof's hypothesis: tight features have all but alpha = 0.1 of the weights "
       "and "
       "the largest |dmu_q|, 3 of 8 (share of random instances)",
       CheckVerdict::fails, [](Effort effort) { return check_concentrated(effort, false); }},
      {id + "concentrated.corrected", source,
       "|dmu|_M >= |dmu| where each tight feature has a weight of at least 1, the mean, and the largest "
       "|dmu_q|: share of random instances",
       CheckVerdict::holds, [](Effort effort) { return check_concentrated(effort, true); }}};
  struct Law {
    const char* name;
    double spread, frequency;
  };
  for (const Law& law :
       {Law{"025", 0.25, 0.52}, Law{"050", 0.5, 0.54}, Law{"100", 1, 0.57}, Law{"200", 2, 0.60}})
    list.push_back(
        {id + "unrelated.spread_" + law.name, source,
         fmt::format(
             "|dmu|_M < |dmu|, against the lemma, for dispersions and means that are unrelated, log s ~ N(0, "
             "{}^2), dmu ~ N(0, I), d = 8: frequency, a regression against {:.2f} of an earlier simulation",
             law.spread, law.frequency),
         CheckVerdict::regression,
         [law](Effort effort) { return check_separation_failures(effort, law.spread, law.frequency); }});
  return list;
}

Matrix euclidean_metric(const Matrix& covariance) {
  return Matrix::Identity(covariance.rows(), covariance.cols());
}

Matrix adaptive_metric(const Matrix& covariance) {
  return inverse_weights(covariance.diagonal().cwiseSqrt()).asDiagonal();
}

CheckFinding check_pair(const CheckEffort& effort, const CovarianceMetric& metric,
                        const MisassignmentFormula& formula) {
  double largest = 0, mean_share = 0;
  for (int problem = 0; problem < kAssignmentProblems; ++problem) {
    Engine engine = check_stream(effort, "acmoe2025.lemma2.pair", problem);
    const GaussianClusters clean = draw_clusters(engine, 2);
    const GaussianClusters noisy = contaminated(clean, draw_noise(engine));
    const Metrics metrics = metrics_of(clean, metric);
    const Vector difference = noisy.means.row(1) - noisy.means.row(0);
    // More seeds are more draws: the largest of many comparisons would pass any number of errors.
    const DrawnShare share = drawn_misassignment(noisy, metrics, 0, kAssignmentDraws * effort.seeds, engine);
    const double probability = formula(difference, noisy.covariances[0], metrics[0]);
    largest = larger(largest, std::abs(share.value - probability) / share.standard_error);
    mean_share += share.value / kAssignmentProblems;
  }
  return in_standard_errors(largest, {{"mean share drawn", mean_share}});
}

MisassignmentBounds nearest_only(const GaussianClusters& clusters, const Metrics& metrics) {
  double nearest = kInfinity, probability = 0;
  for (Eigen::Index j = 1; j < clusters.means.rows(); ++j) {
    const Vector difference = clusters.means.row(j) - clusters.means.row(0);
    const double distance = difference.dot(metrics[0] * difference);
    if (distance >= nearest) continue;
    nearest = distance;
    probability = misassignment_probability(difference, clusters.covariances[0], metrics[0]);
  }
  return {probability, probability};
}

MisassignmentBounds pairwise_bounds(const GaussianClusters& clusters, const Metrics& metrics) {
  const Matrix pairwise = pairwise_misassignment(clusters, metrics);
  return {pairwise.row(0).maxCoeff(), union_bounds(pairwise)[0]};
}

CheckFinding check_many(const CheckEffort& effort, const BoundRule& rule) {
  double largest = -kInfinity, mean_share = 0;
  for (int problem = 0; problem < kAssignmentProblems; ++problem) {
    Engine engine = check_stream(effort, "acmoe2025.lemma2.many", problem);
    const GaussianClusters clean = draw_clusters(engine, kAssignmentClusters);
    const GaussianClusters noisy = contaminated(clean, draw_noise(engine));
    for (const CovarianceMetric metric : {euclidean_metric, adaptive_metric}) {
      const Metrics metrics = metrics_of(clean, metric);
      const DrawnShare share =
          drawn_misassignment(noisy, metrics, 0, kAssignmentDraws * effort.seeds, engine);
      const MisassignmentBounds bounds = rule(noisy, metrics);
      const double outside = larger(bounds.lower - share.value, share.value - bounds.upper);
      largest = larger(largest, outside / share.standard_error);
      mean_share += share.value / (2 * kAssignmentProblems);
    }
  }
  CheckFinding finding = in_standard_errors(largest, {{"mean share drawn", mean_share}});
  finding.relation = Relation::at_most;
  return finding;
}

std::vector<Check> acmoe2025_lemma2_checks() {
  const std::string source = "Nielsen et al. 2025, Lemma 2";
  const std::string id = "acmoe2025.lemma2.";
  return {{id + "euclidean", source,
           "of two clusters, Pr[wrong] = 1 - Phi(|dmu|^2 / (2 sqrt(dmu'(S + S_eps) dmu))) for the nearest "
           "mean (largest difference from draws in standard errors)",
           CheckVerdict::holds, [](Effort effort) { return check_pair(effort, euclidean_metric); }},
          {id + "metric", source,
           "Pr[wrong] = 1 - Phi(dmu' M dmu / (2 sqrt(dmu' M (S + S_eps) M dmu))) for the nearest mean in the "
           "metric M = diag(1/s) of the clean cluster (largest difference from draws in standard errors)",
           CheckVerdict::holds, [](Effort effort) { return check_pair(effort, adaptive_metric); }},
          {id + "many.as_printed", source,
           "of six clusters, the formula for the nearest other mean gives Pr[wrong] (largest difference from "
           "draws in standard errors)",
           CheckVerdict::fails, [](Effort effort) { return check_many(effort, nearest_only); }},
          {id + "many.corrected", source,
           "of six clusters, the largest pairwise probability <= Pr[wrong] <= their sum (largest violation "
           "in standard errors of the draws)",
           CheckVerdict::holds, [](Effort effort) { return check_many(effort, pairwise_bounds); }}};
}

Vector weight_equation_roots(const Vector& dispersion, double lambda) {
  const Eigen::Index dim = dispersion.size();
  Matrix secular = Matrix::Constant(dim, dim, lambda / static_cast<double>(dim));
  secular.diagonal() -= dispersion;
  const Vector values = symmetric_eigenvalues(secular);
  std::vector<double> sorted(dispersion.begin(), dispersion.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> roots;
  for (const double value : values) {
    const auto repeats = [&](auto place) {
      return std::next(place) != sorted.end() && *place == *std::next(place) &&
             std::abs(value + *place) <= rounding_of(dispersion, lambda);
    };
    bool is_pole = false;
    for (auto place = sorted.begin(); place != sorted.end(); ++place) is_pole = is_pole || repeats(place);
    if (!is_pole) roots.push_back(value);
  }
  return vector_of(roots);
}

CheckFinding check_root_count(const CheckEffort& effort, bool as_printed, const RootFinder& roots) {
  const int instances = kRootInstances * effort.seeds;
  int right = 0, tied = 0;
  double most = 0;
  for (int i = 0; i < instances; ++i) {
    Engine engine = check_stream(effort, kRootId, i);
    const Vector dispersion = draw_dispersion(engine, i % 2 == 1);
    const double lambda = dispersion.mean() * std::pow(10, 2 * draw_uniform(engine) - 1);
    const Vector found = roots(dispersion, lambda);
    std::set<double> poles;
    for (const double s : dispersion) poles.insert(-s);
    if (static_cast<Eigen::Index>(poles.size()) < dispersion.size()) ++tied;
    most = std::max(most, static_cast<double>(found.size()));
    if (as_printed ? found.size() == dispersion.size() : one_right_of_each(poles, found)) ++right;
  }
  return every_instance(right, instances, "none: numbers are counted",
                        {{"instances with ties", tied}, {"largest number of solutions", most}});
}

std::vector<Check> acmoe2025_lemma3_checks() {
  const std::string source = "Nielsen et al. 2025, Lemma 3", id = kRootId;
  return {{id + ".as_printed", source,
           "sum_q 1/(s_q + alpha) = d/lambda has exactly d real solutions: share of random dispersions, "
           "every second with ties",
           CheckVerdict::fails, [](Effort effort) { return check_root_count(effort, true); }},
          {id + ".corrected", source,
           "sum_q 1/(s_q + alpha) = d/lambda has one solution to the right of each different -s_q, before "
           "the next one, and no other: share of random dispersions, every second with ties",
           CheckVerdict::holds, [](Effort effort) { return check_root_count(effort, false); }}};
}

double factor_as_printed(double epsilon) {
  return epsilon;
}

double corrected_factor(double epsilon) {
  return epsilon * (2 - epsilon);
}

CheckFinding check_eigenvalue_bound(const CheckEffort& effort, const BoundFactor& factor) {
  const int instances = kEigenvalueInstances * effort.seeds;
  double largest = 0, largest_epsilon = 0;
  for (int i = 0; i < instances; ++i) {
    Engine engine = check_stream(effort, kEigenvalueId, i);
    const int dim = 2 + draw_index(engine, 7);
    const Vector eigenvalues = draw_log_normal(engine, dim, 1);
    const double tilt = 0.02 + 0.1 * draw_uniform(engine);
    Matrix vectors = draw_near_axis_rotation(engine, dim, tilt);
    while (1 - vectors.diagonal().minCoeff() < kSmallestEpsilon)
      vectors = draw_near_axis_rotation(engine, dim, tilt);
    const Matrix covariance = vectors * eigenvalues.asDiagonal() * vectors.transpose();
    const double epsilon = 1 - vectors.diagonal().minCoeff();
    largest_epsilon = std::max(largest_epsilon, epsilon);
    for (int q = 0; q < dim; ++q) {
      const double widest = (eigenvalues.array() - eigenvalues[q]).abs().maxCoeff();
      const double deviation = std::abs(eigenvalues[q] - covariance(q, q));
      largest = larger(largest, deviation / (factor(epsilon) * widest));
    }
  }
  return {.hypotheses = {{"v_i.b_i > 0: epsilon < 1 (largest)", largest_epsilon, largest_epsilon < 1}},
          .relation = Relation::at_most,
          .predicted = 1,
          .measured = largest,
          .error_bound = 1e-4,
          .error_origin = "rounding: 1e-15 of the sides, as small as 1e-6 times a difference of eigenvalues",
          .details = {{"instances", instances}}};
}

std::vector<Check> acmoe2025_lemma4_checks() {
  const std::string source = "Nielsen et al. 2025, Lemma 4", id = kEigenvalueId;
  return {
      {id + ".as_printed", source,
       "v_i.b_i >= 1 - eps for all eigenvectors implies |lambda_i - S_ii| <= eps max_j |lambda_i - lambda_j| "
       "(largest quotient of the sides)",
       CheckVerdict::fails, [](Effort effort) { return check_eigenvalue_bound(effort, factor_as_printed); }},
      {id + ".corrected", source,
       "v_i.b_i >= 1 - eps for all eigenvectors implies |lambda_i - S_ii| <= (2 eps - eps^2) max_j |lambda_i "
       "- lambda_j| (largest quotient of the sides)",
       CheckVerdict::holds, [](Effort effort) { return check_eigenvalue_bound(effort, corrected_factor); }}};
}

}  // namespace moelab
