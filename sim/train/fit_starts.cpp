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

}  // namespace

MixingMeasure near_truth(const MixingMeasure& truth, int experts, double perturbation, Engine& engine) {
  const int components = truth.components();
  const Eigen::Index dim = truth.gate.cols();
  MixingMeasure start{truth.form, Matrix(experts, dim), Vector(experts), Matrix(experts, dim),
                      Vector(experts)};
  for (int i = 0; i < experts; ++i) {
    const int component = i % components;
    const int sharing = (experts - 1 - component) / components + 1;
    const auto moved = [&](double value) { return value + perturbation * draw_normal(engine); };
    for (Eigen::Index j = 0; j < dim; ++j) start.gate(i, j) = moved(truth.gate(component, j));
    for (Eigen::Index j = 0; j < dim; ++j) start.slope(i, j) = moved(truth.slope(component, j));
    start.bias[i] = moved(truth.bias[component] - std::log(static_cast<double>(sharing)));
    start.intercept[i] = moved(truth.intercept[component]);
  }
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
  for (int e = 0; e < experts; ++e) {
    Matrix moments = Matrix::Zero(dim + 1, dim + 1);
    Vector products = Vector::Zero(dim + 1);
    double size = 0;
    for (Eigen::Index i = 0; i < rows; ++i) {
      if (cluster[static_cast<std::size_t>(i)] != e) continue;
      Vector row(dim + 1);
      row << x.row(i).transpose(), 1;
      moments += row * row.transpose();
      products += before_power(form, y[i]) * row;
      start.gate.row(e) += x.row(i) - mean;
      size += 1;
    }
    if (size == 0) continue;
    start.gate.row(e) /= size;
    if (form.router == MixtureForm::Router::linear) start.bias[e] = -0.5 * start.gate.row(e).squaredNorm();
    moments.diagonal().array() += kClusterRidge * size;
    const Vector expert = least_norm_solution(moments, products);
    start.slope.row(e) = expert.head(dim).transpose();
    start.intercept[e] = expert[dim];
  }
  return start;
}

}  // namespace moelab
