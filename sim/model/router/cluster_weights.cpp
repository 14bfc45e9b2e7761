#include "sim/model/router/cluster_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/numerics.h"
#include "sim/model/router/routers.h"

namespace moelab {

template <class Real>
ClusterDispersion<Real>::ClusterDispersion(int clusters, int dim)
    : dim_(dim),
      values_(entries(clusters, dim)),
      means_(values_.size()),
      counts_(size(clusters)),
      first_rows_(size(clusters)) {}

template <class Real>
void ClusterDispersion<Real>::measure(const View<const Real>& x, const View<const Real>& probabilities,
                                      DispersionMeasure measure) {
  MOELAB_EXPECT(x.columns == dim_ && size(probabilities.columns) == counts_.size());
  MOELAB_EXPECT(x.rows == probabilities.rows);
  const std::size_t dim = size(dim_);
  cluster_of_row_.resize(size(x.rows));
  std::fill(counts_.begin(), counts_.end(), 0);
  std::fill(means_.begin(), means_.end(), 0.0);
  std::fill(values_.begin(), values_.end(), 0.0);
  for (int row = 0; row < x.rows; ++row) {
    const Real* const r = probabilities.row(row);
    const std::size_t k = size(std::max_element(r, r + probabilities.columns) - r);
    cluster_of_row_[size(row)] = k;
    // Sum differences from the cluster's first row, so that a constant feature has dispersion exactly 0.
    const Real* const own = x.row(row);
    if (counts_[k]++ == 0) first_rows_[k] = own;
    for (std::size_t q = 0; q < dim; ++q) {
      means_[k * dim + q] += static_cast<double>(own[q]) - static_cast<double>(first_rows_[k][q]);
    }
  }
  for (std::size_t k = 0; k < counts_.size(); ++k) {
    for (std::size_t q = 0; q < dim && counts_[k] > 0; ++q) {
      means_[k * dim + q] = static_cast<double>(first_rows_[k][q]) + means_[k * dim + q] / counts_[k];
    }
  }
  if (measure == DispersionMeasure::iqr) return measure_quartiles(x);
  const bool variance = measure == DispersionMeasure::variance;
  for (int row = 0; row < x.rows; ++row) {
    const std::size_t start = cluster_of_row_[size(row)] * dim;
    const Real* const own = x.row(row);
    for (std::size_t q = 0; q < dim; ++q) {
      const double deviation = static_cast<double>(own[q]) - means_[start + q];
      values_[start + q] += variance ? deviation * deviation : std::abs(deviation);
    }
  }
  for (std::size_t k = 0; k < counts_.size(); ++k) {
    for (std::size_t q = 0; q < dim && counts_[k] > 0; ++q) values_[k * dim + q] /= counts_[k];
  }
}

template <class Real>
void ClusterDispersion<Real>::measure_quartiles(const View<const Real>& x) {
  column_.reserve(size(x.rows));
  for (std::size_t k = 0; k < counts_.size(); ++k) {
    for (int q = 0; q < dim_ && counts_[k] > 1; ++q) {
      column_.clear();
      for (int row = 0; row < x.rows; ++row) {
        if (cluster_of_row_[size(row)] == k) column_.push_back(x.row(row)[q]);
      }
      // NaN cannot be sorted.
      if (!std::all_of(column_.begin(), column_.end(), [](Real value) { return std::isfinite(value); })) {
        values_[k * size(dim_) + size(q)] = std::numeric_limits<double>::quiet_NaN();
        continue;
      }
      std::sort(column_.begin(), column_.end());
      const auto quantile = [&](double share) {
        const double place = share * static_cast<double>(column_.size() - 1);
        const std::size_t below = static_cast<std::size_t>(place);
        const std::size_t above = std::min(below + 1, column_.size() - 1);
        const double low = static_cast<double>(column_[below]), high = static_cast<double>(column_[above]);
        return low + (place - static_cast<double>(below)) * (high - low);
      };
      values_[k * size(dim_) + size(q)] = quantile(0.75) - quantile(0.25);
    }
  }
}

template class ClusterDispersion<float>;
template class ClusterDispersion<double>;

namespace {

/// A dispersion below this share of its cluster's largest is rounding error.
constexpr double kNoSpread = 1e-12;
/// Standard deviation of an entry of a random M.
constexpr double kRandomDeviation = 0.5;

/// Scales the nonzero entries first, first + step, … before `end` to mean 1.
void give_mean_one(std::span<double> weights, std::size_t first, std::size_t step, std::size_t end) {
  double sum = 0, counted = 0;
  for (std::size_t i = first; i < end; i += step) {
    sum += weights[i];
    if (weights[i] > 0) ++counted;
  }
  for (std::size_t i = first; i < end && counted > 0; i += step) weights[i] *= counted / sum;
}

void weigh_together(const ClusterWeighting& weighting, std::span<const double> dispersions, std::size_t dim,
                    std::span<double> weights) {
  for (std::size_t first = 0; first < weights.size(); first += dim) {
    const std::span<const double> own = dispersions.subspan(first, dim);
    const double least_counted = kNoSpread * *std::max_element(own.begin(), own.end());
    for (std::size_t q = 0; q < dim; ++q) {
      weights[first + q] = own[q] > least_counted ? 1 / (own[q] + weighting.guard) : 0;
    }
  }
  switch (weighting.normalize) {
    case ClusterWeighting::Normalize::features:
      for (std::size_t first = 0; first < weights.size(); first += dim)
        give_mean_one(weights, first, 1, first + dim);
      break;
    case ClusterWeighting::Normalize::clusters:
      for (std::size_t q = 0; q < dim; ++q) give_mean_one(weights, q, dim, weights.size());
      break;
    case ClusterWeighting::Normalize::global:
      give_mean_one(weights, 0, 1, weights.size());
      break;
  }
  for (double& weight : weights) {
    if (weight == 0) weight = 1;
  }
}

}  // namespace

void weigh_clusters(const ClusterWeighting& weighting, std::span<const double> dispersions, std::size_t dim,
                    std::span<double> weights) {
  if (!std::all_of(dispersions.begin(), dispersions.end(), [](double s) { return std::isfinite(s); })) {
    std::fill(weights.begin(), weights.end(), std::numeric_limits<double>::quiet_NaN());
    return;
  }
  if (weighting.normalize == ClusterWeighting::Normalize::features && weighting.guard == 0) {
    for (std::size_t first = 0; first < weights.size(); first += dim)
      inverse_dispersion_weights(dispersions.subspan(first, dim), weights.subspan(first, dim));
  } else {
    weigh_together(weighting, dispersions, dim, weights);
  }
  if (!weighting.clip) return;
  for (double& weight : weights) weight = std::min(weight, *weighting.clip);
}

void draw_cluster_weights(Engine& engine, std::size_t dim, std::span<double> weights) {
  for (std::size_t first = 0; first < weights.size(); first += dim) {
    const std::span<double> own = weights.subspan(first, dim);
    double sum = 0;
    for (double& weight : own) {
      weight = std::max(0.0, 1 + kRandomDeviation * draw_normal(engine));
      sum += weight;
    }
    for (double& weight : own) {
      if (sum > 0) weight *= static_cast<double>(dim) / sum;
    }
  }
}

}  // namespace moelab
