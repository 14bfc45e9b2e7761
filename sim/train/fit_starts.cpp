#include "sim/train/fit_starts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/linear_algebra.h"

namespace moelab {
namespace {

constexpr int kMostRounds = 50;
/// Of the regressions, in units of the inputs' second moments: clusters may hold few samples.
constexpr double kClusterRidge = 1e-2;

/// Each row's nearest centre, and whether any is another than before.
bool assign(const Matrix& points, const Matrix& centres, std::vector<int>& nearest) {
  bool changed = false;
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    Eigen::Index best = 0;
    (centres.rowwise() - points.row(i)).rowwise().squaredNorm().minCoeff(&best);
    int& own = nearest[static_cast<std::size_t>(i)];
    changed |= own != static_cast<int>(best);
    own = static_cast<int>(best);
  }
  return changed;
}

/// k-means++ (Arthur and Vassilvitskii 2007): each centre a point, with probability by its squared distance
/// to the centres before it.
Matrix seed_centres(const Matrix& points, int count, Engine& engine) {
  Matrix centres(count, points.cols());
  Vector distances = Vector::Constant(points.rows(), std::numeric_limits<double>::infinity());
  for (int j = 0; j < count; ++j) {
    Eigen::Index chosen = 0;
    if (j == 0) {
      chosen = static_cast<Eigen::Index>(draw_uniform(engine) * static_cast<double>(points.rows()));
    } else {
      double left = draw_uniform(engine) * distances.sum();
      while (chosen + 1 < points.rows() && (left -= distances[chosen]) > 0) ++chosen;
    }
    centres.row(j) = points.row(chosen);
    distances = distances.cwiseMin((points.rowwise() - centres.row(j)).rowwise().squaredNorm());
  }
  return centres;
}

/// The cluster of each row.
std::vector<int> k_means(const Matrix& points, int count, Engine& engine) {
  Matrix centres = seed_centres(points, count, engine);
  std::vector<int> nearest(static_cast<std::size_t>(points.rows()), -1);
  for (int round = 0; round < kMostRounds && assign(points, centres, nearest); ++round) {
    Matrix sums = Matrix::Zero(count, points.cols());
    Vector sizes = Vector::Zero(count);
    for (Eigen::Index i = 0; i < points.rows(); ++i) {
      const int own = nearest[static_cast<std::size_t>(i)];
      sums.row(own) += points.row(i);
      sizes[own] += 1;
    }
    for (int j = 0; j < count; ++j) {
      if (sizes[j] > 0) centres.row(j) = sums.row(j) / sizes[j];
    }
  }
  return nearest;
}

/// What h = (a'x + b)^p is at a'x + b.
double before_power(const MixtureForm& form, double y) {
  if (form.expert == MixtureForm::Expert::relu || form.power == 1) return y;
  return std::copysign(std::pow(std::abs(y), 1.0 / form.power), y);
}

/// A fit's component of a truth, and how many fits it has.
struct SharedComponent {
  int component;
  int sharing;
};

SharedComponent component_of(const MixingMeasure& truth, int fit, int fits) {
  const auto within = [](int place, int of, int components) {
    return SharedComponent{place % components, (of - 1 - place % components) / components + 1};
  };
  const int groups = static_cast<int>(truth.group_gate.rows()), components = truth.components();
  if (groups == 0) return within(fit, fits, components);
  int g = 0;
  while (first_of_group(g + 1, groups, fits) <= fit) ++g;
  const int first = first_of_group(g, groups, fits), own = first_of_group(g, groups, components);
  SharedComponent found = within(fit - first, first_of_group(g + 1, groups, fits) - first,
                                 first_of_group(g + 1, groups, components) - own);
  found.component += own;
  return found;
}

/// Ridge regression on x and 1, (d + 1), of the rows that `takes` says; zero for none.
template <class Takes>
Vector affine_fit(const Matrix& x, const Vector& y, const Takes& takes) {
  const Eigen::Index dim = x.cols();
  Matrix moments = Matrix::Zero(dim + 1, dim + 1);
  Vector products = Vector::Zero(dim + 1), row(dim + 1);
  double size = 0;
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    if (!takes(i)) continue;
    row << x.row(i).transpose(), 1;
    moments += row * row.transpose();
    products += y[i] * row;
    size += 1;
  }
  if (size == 0) return products;
  moments.diagonal().array() += kClusterRidge * size;
  return least_norm_solution(moments, products);
}

/// The groups of two levels at the mean of their experts' clusters.
void start_groups(MixingMeasure& start) {
  const int groups = std::min(start.form.groups, start.components());
  start.group_gate.resize(groups, start.gate.cols());
  for (int g = 0; g < groups; ++g) {
    const int first = first_of_group(g, groups, start.components());
    const int count = first_of_group(g + 1, groups, start.components()) - first;
    start.group_gate.row(g) = start.gate.middleRows(first, count).colwise().mean();
  }
  start.group_bias = -0.5 * start.group_gate.rowwise().squaredNorm();
}

}  // namespace

Engine start_stream(const Seeds& seeds, int samples, int number) {
  return seeds.stream(Purpose::starts,
                      static_cast<std::uint64_t>(samples) << 16 | static_cast<std::uint64_t>(number));
}

MixingMeasure near_truth(const MixingMeasure& truth, int experts, double perturbation, Engine& engine) {
  const Eigen::Index dim = truth.gate.cols();
  MixingMeasure start{truth.form, Matrix(experts, dim), Vector(experts), Matrix(experts, dim),
                      Vector(experts)};
  const auto moved = [&](double value) { return value + perturbation * draw_normal(engine); };
  const auto move = [&](auto& values) {
    for (Eigen::Index i = 0; i < values.size(); ++i) values.data()[i] = moved(values.data()[i]);
  };
  for (int i = 0; i < experts; ++i) {
    const auto [component, sharing] = component_of(truth, i, experts);
    for (Eigen::Index j = 0; j < dim; ++j) start.gate(i, j) = moved(truth.gate(component, j));
    for (Eigen::Index j = 0; j < dim; ++j) start.slope(i, j) = moved(truth.slope(component, j));
    // A temperature divides the logarithms of weights, too.
    const double temperature = std::exp(-truth.log_scale);
    start.bias[i] = moved(truth.bias[component] - temperature * std::log(static_cast<double>(sharing)));
    start.intercept[i] = moved(truth.intercept[component]);
  }
  start.group_gate = truth.group_gate;
  start.group_bias = truth.group_bias;
  start.shared_slope = truth.shared_slope;
  start.shared_intercept = truth.shared_intercept;
  move(start.group_gate);
  move(start.group_bias);
  move(start.shared_slope);
  move(start.shared_intercept);
  start.log_scale = truth.form.temperature ? moved(truth.log_scale) : 0;
  return start;
}

MixingMeasure clustered_start(const MixtureForm& form, const TrainingSet<double>& data, int rows, int dim,
                              int experts, Engine& engine) {
  const Matrix x = Eigen::Map<const Matrix>(data.x.data(), rows, dim);
  const Vector y = Eigen::Map<const Vector>(data.y.data(), rows);
  const Eigen::RowVectorXd mean = x.colwise().mean();
  Matrix points(rows, dim + 1);
  points << x.rowwise() - mean, (y.array() - y.mean()).matrix();
  for (Eigen::Index j = 0; j <= dim; ++j) {
    const double deviation = std::sqrt(points.col(j).squaredNorm() / rows);
    if (deviation > 0) points.col(j) /= deviation;
  }
  const std::vector<int> cluster = k_means(points, experts, engine);
  MixingMeasure start{form, Matrix::Zero(experts, dim), Vector::Zero(experts), Matrix::Zero(experts, dim),
                      Vector::Zero(experts)};
  start.shared_slope = Matrix::Zero(form.shared, dim);
  start.shared_intercept = Vector::Zero(form.shared);
  Vector targets = y.unaryExpr([&](double value) { return before_power(form, value); });
  if (form.shared > 0) {
    const Vector shared = affine_fit(x, targets, [](Eigen::Index /*row*/) { return true; });
    start.shared_slope.row(0) = shared.head(dim).transpose();
    start.shared_intercept[0] = shared[dim];
    targets -= x * shared.head(dim) + Vector::Constant(rows, shared[dim]);
  }
  for (int e = 0; e < experts; ++e) {
    const auto is_own = [&](Eigen::Index i) { return cluster[static_cast<std::size_t>(i)] == e; };
    double size = 0;
    for (Eigen::Index i = 0; i < rows; ++i) {
      if (!is_own(i)) continue;
      start.gate.row(e) += x.row(i) - mean;
      size += 1;
    }
    if (size == 0) continue;
    start.gate.row(e) /= size;
    const bool affine =
        form.router == MixtureForm::Router::linear || form.router == MixtureForm::Router::two_level;
    if (affine) start.bias[e] = -0.5 * start.gate.row(e).squaredNorm();
    const Vector expert = affine_fit(x, targets, is_own);
    start.slope.row(e) = expert.head(dim).transpose();
    start.intercept[e] = expert[dim];
  }
  if (form.router == MixtureForm::Router::squared_distance) start.gate.rowwise() += mean;
  if (form.router == MixtureForm::Router::two_level) start_groups(start);
  return start;
}

}  // namespace moelab
